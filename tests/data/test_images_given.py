"""`nb.load_images` on a list of paths, an array, a tensor and a source."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import neuralbayes as nb

IMAGES = np.random.default_rng(0).integers(0, 256, (6, 8, 10, 3), np.uint8)


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"{i}.png" for i in range(6)]
    for path, image in zip(files, IMAGES, strict=True):
        Image.fromarray(image).save(path)
    return files


def test_a_list_of_paths_keeps_its_order_and_says_its_files(paths: list[Path]) -> None:
    chosen = [paths[4], str(paths[1]), paths[4]]
    images = nb.load_images(chosen)
    assert (len(images), images.shape, images.labels) == (3, (8, 10, 3), None)
    assert np.array_equal(images.read(np.arange(3)), IMAGES[[4, 1, 4]])
    assert images.source.paths == (paths[4], paths[1], paths[4])


def test_pictures_of_other_sizes_are_fitted(paths: list[Path]) -> None:
    Image.fromarray(IMAGES[0, :, :4]).save(paths[0])
    assert nb.load_images(paths).shape == (8, 10, 3)  # the most common size
    assert nb.load_images(tuple(paths), size=4, channels=1).read([0, 5]).shape == (2, 4, 4, 1)


def test_the_check_is_asked_before_anything_is_decoded(paths: list[Path]) -> None:
    def refuse(n: int, shape: tuple[int, int, int]) -> None:
        raise MemoryError(f"{n} of {shape}")

    with pytest.raises(MemoryError, match=r"6 of \(8, 10, 3\)"):
        nb.load_images(paths, check=refuse)


@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"half")], ids=["gone", "damaged"])
def test_a_file_that_cannot_be_read_is_an_error_for_rows_must_stay_in_step(paths: list[Path], spoil) -> None:
    spoil(paths[2])
    with pytest.raises(ValueError, match=r"`paths` must be readable pictures .*; .*2\.png: "):
        nb.load_images(paths)


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor], ids=["array", "tensor"])
def test_an_array_and_a_tensor_are_images(kind) -> None:
    images = nb.load_images(kind(IMAGES))
    assert np.array_equal(images.read([3]), IMAGES[[3]])
    assert nb.load_images(kind(IMAGES), size=(4, 5), channels=1).shape == (4, 5, 1)
    first = nb.load_images(kind(IMAGES.transpose(0, 3, 1, 2) / 255.0))
    assert np.array_equal(first.read([3]), IMAGES[[3]])


def test_images_and_sources_pass_through_with_their_labels() -> None:
    digits = nb.load_images("digits")
    again = nb.load_images(digits, size=10)
    assert (again.name, again.shape) == ("digits", (10, 10, 1))
    assert again.labels is digits.labels
    assert nb.load_images(digits) is digits
    assert len(nb.load_images(digits.source)) == len(digits)


def test_a_test_part_stays_one() -> None:
    assert nb.load_images(nb.load_images("digits", split="test"), size=10).split == "test"


def test_they_go_into_an_estimator(paths: list[Path]) -> None:
    images = nb.load_images(paths, size=24)
    encoder = nb.MIMEncoder(encoder="tiny", max_epochs=1, batch_size=3, random_state=0).fit(images)
    assert len(encoder.transform(images)) == 6


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        ([], TypeError, "`images` must be a folder, paths, PIL images, arrays, tensors"),
        (["a.png", IMAGES[1]], TypeError, "`data` must contain only paths if it starts with one, got ndarray"),
        (IMAGES.astype(np.int64), TypeError, "`array` must be of uint8"),
        (IMAGES[0, 0], ValueError, r"`array` must have shape \(n, H, W\)"),
        (3, TypeError, "`images` must be a folder, paths, PIL images, arrays, tensors"),
    ],
)
def test_what_is_no_image_is_refused(data, error, message) -> None:
    with pytest.raises(error, match=message):
        nb.load_images(data)


def test_only_what_has_parts_has_a_test_part() -> None:
    with pytest.raises(ValueError, match="`split` must be 'train' unless `data` is a name"):
        nb.load_images(IMAGES, split="test")
