"""Readers of the official formats, on files written byte by byte from the descriptions of the formats."""

from __future__ import annotations

import contextlib
import io
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from image_files import cifar_bytes, grey_arrays, idx_bytes, stl_bytes
from PIL import Image

from neuralbayes.data.cifar import CIFAR10, CIFAR100, SHEETS, read_cifar, read_sheet, read_sheet_labels
from neuralbayes.data.class_names import CIFAR100 as CIFAR100_NAMES
from neuralbayes.data.digits import read_digits
from neuralbayes.data.idx import IDX, read_idx
from neuralbayes.data.stl import STL10, read_stl_images, read_stl_labels


def stream(data: bytes) -> io.BytesIO:
    return io.BytesIO(data)


# IDX


def test_idx_is_read_in_the_shape_of_its_header() -> None:
    images = np.arange(2 * 3 * 5, dtype=np.uint8).reshape(2, 3, 5)
    np.testing.assert_array_equal(read_idx(stream(idx_bytes(images))), images)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "cut short"),
        (b"\0\0\x08", "cut short"),
        (idx_bytes(np.zeros(5))[:-1], "after 4 of 5 bytes"),
        (idx_bytes(np.zeros(5)) + b"\0", "5 bytes in its header"),
        (b"\0\0\x0d\x01" + struct.pack(">I", 1) + b"\0\0\0\0", "unsigned bytes"),  # float32
        (b"\0\0\x08\x03" + struct.pack(">3I", 2**31, 2**31, 2**31), "refused"),
        (b"PK\3\4" + bytes(100), "not an IDX file"),
    ],
)
def test_a_damaged_or_hostile_idx_is_refused(data: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_idx(stream(data))


def test_the_four_idx_files_become_images_with_a_channel_and_int64_labels() -> None:
    arrays = grey_arrays()
    members = [(name, stream(idx_bytes(array))) for name, array in zip(IDX.files, arrays.values(), strict=True)]
    decoded = IDX.from_members(reversed(members), "memory")
    assert decoded["train_images"].shape == (20, 28, 28, 1)
    assert decoded["test_labels"].dtype == np.int64
    for name, array in arrays.items():
        np.testing.assert_array_equal(decoded[name].reshape(array.shape), array)


# CIFAR


def colour_images(n: int, side: int = 32) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 256, (n, side, side, 3), np.uint8)


def test_cifar_planes_become_pixels() -> None:
    images, labels = colour_images(4), np.array([6, 9, 9, 4])
    read_images, read_labels = read_cifar(stream(cifar_bytes(images, labels)), label_bytes=1, n_classes=10)
    np.testing.assert_array_equal(read_images, images)
    np.testing.assert_array_equal(read_labels, labels)


def test_cifar100_takes_the_fine_label() -> None:
    coarse, fine = np.array([19, 3]), np.array([99, 0])
    data = cifar_bytes(colour_images(2), coarse, fine)
    _, labels = read_cifar(stream(data), label_bytes=2, n_classes=100)
    np.testing.assert_array_equal(labels, fine)
    assert len(set(CIFAR100_NAMES)) == 100


@pytest.mark.parametrize("data", [b"", bytes(3072), bytes(3073 + 5)])
def test_a_cifar_file_of_another_length_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="multiple of 3073"):
        read_cifar(stream(data), label_bytes=1, n_classes=10)


def test_a_cifar_label_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="below 10, got 10"):
        read_cifar(stream(bytes([10]) + bytes(3072)), label_bytes=1, n_classes=10)


def test_cifar_batches_come_in_the_order_of_their_numbers_whatever_the_order_in_the_archive() -> None:
    images = colour_images(6)
    names = list(CIFAR10.files)
    members = [(names[i], stream(cifar_bytes(images[i : i + 1], np.array([i])))) for i in (5, 3, 1, 0, 2, 4)]
    decoded = CIFAR10.from_members(members, "memory")
    np.testing.assert_array_equal(decoded["train_labels"], np.arange(5))
    np.testing.assert_array_equal(decoded["train_images"], images[:5])
    np.testing.assert_array_equal(decoded["test_images"], images[5:])


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ValueError, match=r"memory: .* lacks test\.bin"):
        CIFAR100.from_members([("train.bin", stream(bytes(3074)))], "memory")


def test_the_damaged_file_is_named() -> None:
    with pytest.raises(ValueError, match=r"memory: train\.bin: its length"):
        CIFAR100.from_members([("train.bin", stream(b"abc"))], "memory")


def png_bytes(pixels: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()


def test_a_row_of_a_sheet_is_an_image() -> None:
    images = colour_images(3)
    np.testing.assert_array_equal(read_sheet(stream(png_bytes(images.reshape(3, 1024, 3)))), images)


def test_sheets_are_joined_in_the_order_of_their_numbers() -> None:
    images = colour_images(6)
    sheets = [png_bytes(image.reshape(1, 1024, 3)) for image in images]
    members = [(name, stream(data)) for name, data in zip(list(SHEETS.files)[:6], sheets, strict=True)]
    members += [("train_lables.json", stream(b"[0,1,2,3,4]")), ("test_lables.json", stream(b"[5]"))]
    decoded = SHEETS.from_members(reversed(members), "memory")
    np.testing.assert_array_equal(decoded["train_images"], images[:5])
    np.testing.assert_array_equal(decoded["train_labels"], np.arange(5))
    np.testing.assert_array_equal(decoded["test_images"], images[5:])


@pytest.mark.parametrize(
    "data", [b"", b"no picture", png_bytes(np.zeros((2, 100, 3), np.uint8)), png_bytes(np.zeros((2, 1024), np.uint8))]
)
def test_what_is_not_a_sheet_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"must be an RGB picture|not a readable PNG"):
        read_sheet(stream(data))


@pytest.mark.parametrize("data", [b"", b"{}", b"[1, 2, 10]", b"[1, true]", b"[1.0]", b'["1"]', b"[" * 10_000])
def test_what_are_not_labels_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"JSON|integers from 0 to 9"):
        read_sheet_labels(stream(data))


# STL-10


def test_stl_columns_become_rows_and_blocks_their_mean() -> None:
    images = colour_images(2, 96)
    mean = images.reshape(2, 32, 3, 32, 3, 3).astype(np.float64).mean(axis=(2, 4))
    np.testing.assert_array_equal(read_stl_images(stream(stl_bytes(images))), np.rint(mean))


def test_stl_images_stand_upright() -> None:
    image = np.zeros((1, 96, 96, 3), np.uint8)
    image[0, :48] = 255  # white above, black below
    read = read_stl_images(stream(stl_bytes(image)))[0]
    assert (read[:16] == 255).all()
    assert (read[16:] == 0).all()


def test_stl_is_read_in_pieces() -> None:
    data = stl_bytes(colour_images(5, 96))
    whole = read_stl_images(stream(data))
    np.testing.assert_array_equal(read_stl_images(stream(data), at_once=2), whole)


def test_stl_labels_count_from_zero() -> None:
    np.testing.assert_array_equal(read_stl_labels(stream(bytes([1, 10]))), [0, 9])


@pytest.mark.parametrize("data", [b"", bytes([0]), bytes([11])])
def test_stl_labels_out_of_range_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="from 1 to 10"):
        read_stl_labels(stream(data))


@pytest.mark.parametrize("data", [b"", bytes(27_647), bytes(27_649)])
def test_stl_images_cut_short_are_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"multiple of 27648|empty"):
        read_stl_images(stream(data))


def test_stl_has_an_unlabelled_part() -> None:
    pictures = stl_bytes(colour_images(1, 96))
    members = [(name, stream(pictures if "X" in name else b"\1")) for name in STL10.files]
    assert STL10.from_members(members, "memory")["unlabeled_images"].shape == (1, 32, 32, 3)


# digits


def test_digits_are_those_of_scikit_learn_on_the_scale_of_bytes() -> None:
    from sklearn.datasets import load_digits

    arrays = read_digits()
    images = np.concatenate([arrays["train_images"], arrays["test_images"]])[..., 0]
    np.testing.assert_allclose(images / 255 * 16, load_digits().images, atol=0.04)
    assert images.max() == 255
    assert len(arrays["test_labels"]) == 360
    assert np.bincount(arrays["test_labels"]).min() >= 30


@given(st.binary(max_size=200))
def test_readers_of_noise_raise_nothing_but_value_errors(data: bytes) -> None:
    readers = (read_idx, read_sheet, read_sheet_labels, read_stl_images, read_stl_labels)
    for reader in readers:
        with contextlib.suppress(ValueError):
            reader(stream(data))
