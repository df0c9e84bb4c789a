"""Named data sets: where their files are found, how they are verified and decoded, and what an error says."""

import gzip
import hashlib
import io
import os
import struct
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from neuralbayes import datasets
from neuralbayes.data.named import SETS, NamedSet, data_folder, find_set, is_name, is_present, load_set

N = {"train": 20, "test": 10, "unlabeled": 510}
RNG = np.random.default_rng(0)
Made = tuple[NamedSet, dict[str, bytes], list[np.ndarray]]


def idx_bytes(array: np.ndarray) -> bytes:
    head = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return head + array.astype(np.uint8).tobytes()


def cifar_bytes(images: np.ndarray, *labels: np.ndarray) -> bytes:
    """Each record has the labels, then all red, all green and all blue, row by row."""
    planes = [image.transpose(2, 0, 1).tobytes() for image in images]
    return b"".join(bytes(map(int, own)) + one for own, one in zip(zip(*labels, strict=True), planes, strict=True))


def stl_bytes(images: np.ndarray) -> bytes:
    """Each image has all red, all green and all blue, column by column."""
    return b"".join(image[:, column, c].tobytes() for image in images for c in range(3) for column in range(96))


def small(name: str, contents: Mapping[str, bytes], n: Mapping[str, int], **changes: object) -> NamedSet:
    """A data set with these files instead of the official ones, and without an address that answers."""
    known = SETS[name]
    files = {
        key: file._replace(n=n[key], sha256=hashlib.sha256(contents[key]).hexdigest() if file.sha256 else "")
        for key, file in known.files.items()
    }
    return replace(known, files=files, addresses=("https://127.0.0.1:1/",), **changes)  # type: ignore[arg-type]


def tar_of(contents: Mapping[str, bytes], folder: str) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def mnist() -> Made:
    images = RNG.integers(0, 256, (30, 28, 28), np.uint8)
    arrays = [images[:20], np.arange(20) % 10, images[20:], np.arange(10)]
    contents = dict(zip(SETS["mnist"].files, map(idx_bytes, arrays), strict=True))
    n = dict(zip(contents, map(len, arrays), strict=True))
    return small("mnist", contents, n), contents, arrays


def write(folder: Path, contents: Mapping[str, bytes], *, packed: bool = False):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        path = folder / (f"{name}.gz" if packed else name)
        path.write_bytes(gzip.compress(content) if packed else content)


@pytest.mark.parametrize(
    ("folder", "packed", "dotted"), [("mnist", False, False), ("MNIST/raw", True, False), ("mnist", True, True)]
)
def test_official_files_are_found_where_people_have_them(tmp_path, mnist, folder, packed, dotted):
    known, contents, arrays = mnist
    assert not is_present(known, tmp_path)
    spelt = {name.replace("-idx", ".idx") if dotted else name: content for name, content in contents.items()}
    write(tmp_path / folder, spelt, packed=packed)
    assert is_present(known, tmp_path)
    data = load_set(known, tmp_path, offline=True)
    assert (data.shape, data.unlabeled, len(data.class_names)) == ((28, 28, 1), None, 10)
    for part, images, labels in ((data.train, arrays[0], arrays[1]), (data.test, arrays[2], arrays[3])):
        assert np.array_equal(part.images[..., 0], images)
        assert np.array_equal(part.labels, labels)
        assert part.labels.dtype == np.int64


def test_cifar_is_read_from_its_files_and_from_its_archive(tmp_path):
    images, labels = RNG.integers(0, 256, (30, 32, 32, 3), np.uint8), np.arange(30) % 10
    names = SETS["cifar10"].files
    contents = {name: cifar_bytes(images[i * 5 :][:5], labels[i * 5 :][:5]) for i, name in enumerate(names)}
    archive = tar_of({"readme.html": b"x", **contents}, "cifar-10-batches-bin/")
    digest = hashlib.sha256(archive).hexdigest()
    known = small("cifar10", contents, dict.fromkeys(names, 5), archive_sha256=digest)
    write(tmp_path / "files" / "cifar10", contents)
    write(tmp_path / "archive" / "cifar10", {"cifar-10-binary.tar.gz": archive})
    for place in ("files", "archive"):
        data = load_set(known, tmp_path / place, offline=True)
        assert np.array_equal(data.train.images, images[:25])
        assert np.array_equal(data.test.images, images[25:])
        assert np.array_equal(data.train.labels, labels[:25])
    damaged = bytearray(archive)
    damaged[-20] ^= 1
    write(tmp_path / "archive" / "cifar10", {"cifar-10-binary.tar.gz": bytes(damaged)})
    with pytest.raises(FileNotFoundError, match=f"SHA-256 must be {digest}"):
        load_set(known, tmp_path / "archive", offline=True)


def test_the_fine_labels_of_cifar100_count(tmp_path):
    images = RNG.integers(0, 256, (3, 32, 32, 3), np.uint8)
    content = cifar_bytes(images, np.array([0, 1, 2]), np.array([99, 7, 50]))
    archive = tar_of({"train.bin": content, "test.bin": content}, "cifar-100-binary/")
    n = {"train.bin": 3, "test.bin": 3}
    known = small("cifar100", {}, n, archive_sha256=hashlib.sha256(archive).hexdigest())
    write(tmp_path / "cifar100", {"cifar-100-binary.tar.gz": archive})
    data = load_set(known, tmp_path, offline=True)
    assert [data.class_names[k] for k in data.train.labels] == ["worm", "beetle", "mouse"]


def test_stl_is_averaged_to_a_third_of_its_size(tmp_path):
    images = {split: RNG.integers(0, 256, (n, 96, 96, 3), np.uint8) for split, n in N.items()}
    contents = {f"{split}_X.bin": stl_bytes(part) for split, part in images.items()}
    contents |= {f"{split}_y.bin": bytes(range(1, 11)) * (N[split] // 10) for split in ("train", "test")}
    archive = tar_of(contents, "stl10_binary/")
    n = {name: N[name[:-6]] for name in contents}
    known = small("stl10", {}, n, archive_sha256=hashlib.sha256(archive).hexdigest())
    write(tmp_path / "stl10", {"stl10_binary.tar.gz": archive})
    data = load_set(known, tmp_path, offline=True)
    assert data.unlabeled.labels is None
    assert np.array_equal(data.test.labels, np.arange(10))
    for split, part in images.items():
        means = part.reshape(-1, 32, 3, 32, 3, 3).mean(axis=(2, 4))
        assert np.array_equal(getattr(data, split).images, np.rint(means).astype(np.uint8))


def test_the_digits_need_no_file():
    data = datasets.load("Digits", offline=True)
    assert (data.train.images.shape, data.test.images.shape) == ((1437, 8, 8, 1), (360, 8, 8, 1))
    digest = hashlib.sha256(data.train.images.tobytes()).hexdigest()
    assert digest == "1a5fd3b5c524e826767083c882fe4f8c91850d3568a78caadaa66eb3fe78f5b6"


def test_changed_files_are_refused_with_the_reason(tmp_path, mnist):
    known, contents, arrays = mnist
    name = "t10k-images-idx3-ubyte"
    for changed, reason in (
        (contents[name][:-1], "cut short"),
        (contents[name] + b"x", "longer"),
        (contents[name][:-1] + bytes([contents[name][-1] ^ 1]), "SHA-256 must be"),
        (idx_bytes(arrays[2][::-1]), "SHA-256 must be"),  # the order counts
    ):
        write(tmp_path / "mnist", {**contents, name: changed})
        with pytest.raises(FileNotFoundError, match=f"{name}: .*{reason}"):
            load_set(known, tmp_path, offline=True)
    write(tmp_path / "mnist", {name: contents[name] + bytes(50_000_000)}, packed=True)  # is not unpacked whole
    (tmp_path / "mnist" / name).unlink()
    with pytest.raises(FileNotFoundError, match=f"{name}: .*longer"):
        load_set(known, tmp_path, offline=True)
    write(tmp_path / "MNIST" / "raw", contents)
    assert len(load_set(known, tmp_path, offline=True).train) == 20  # the next place is right


def test_the_error_says_what_was_tried_and_what_to_put_where(tmp_path, mnist, monkeypatch):
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(FileNotFoundError) as caught:
        load_set(mnist[0], tmp_path, progress=False)
    message = str(caught.value)
    for part in ("https://127.0.0.1:1/: ", "train-images-idx3-ubyte", str(tmp_path / "mnist"), "$NEURALBAYES_DATA"):
        assert part in message
    with pytest.raises(
        FileNotFoundError, match=r"offline(.|\n)*cifar-100-binary\.tar\.gz from https://www\.cs\.toronto"
    ):
        datasets.load("cifar100", root=tmp_path, offline=True)


def test_a_download_is_kept_in_the_data_folder(tmp_path, mnist, monkeypatch):
    known, contents, _ = mnist

    def answer(self: object, url: str, output_file: io.BufferedWriter, pooch: object):
        name = url.removeprefix("https://127.0.0.1:1/").removesuffix(".gz")
        Path(output_file).write_bytes(gzip.compress(contents[name]))  # type: ignore[arg-type]

    monkeypatch.setattr("pooch.HTTPDownloader.__call__", answer)
    assert len(load_set(known, tmp_path).train) == 20
    monkeypatch.undo()
    assert len(load_set(known, tmp_path, offline=True).train) == 20


def test_a_name_may_be_spelt_in_every_usual_way():
    assert {find_set(name).name for name in ("cifar10", "CIFAR-10", "cifar_10", "Cifar 10")} == {"cifar10"}
    assert not is_name("fashon")
    with pytest.raises(ValueError, match="`name` must be one of digits, mnist"):
        datasets.load("fashon")


def test_every_set_is_verified():
    for known in SETS.values():
        assert all(address.startswith("https://") for address in known.addresses)
        assert all(file.sha256 for file in known.files.values()) or known.archive_sha256


def test_the_root_comes_from_the_argument_then_the_variable_then_the_system(tmp_path, monkeypatch):
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "variable"))
    assert data_folder(tmp_path) == tmp_path
    assert data_folder() == tmp_path / "variable"
    monkeypatch.delenv("NEURALBAYES_DATA")
    assert data_folder().name == "neuralbayes"
    assert os.fspath(tmp_path) not in str(data_folder())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_the_real_files_are_the_official_ones(name):
    if not is_present(SETS[name], data_folder()):
        pytest.skip(f"{name} is not on this machine")
    data = datasets.load(name, offline=True)  # compares SHA-256
    assert (len(data.train), len(data.test)) == (SETS[name].sizes["train"], SETS[name].sizes["test"])
    assert set(data.train.labels) == set(range(10))
