"""Arrays of images on disk: mapped, never unpickled; sources return the same images for any storage."""

from __future__ import annotations

import contextlib
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from neuralbayes.data.arrays import npz_keys, open_npy, open_npz
from neuralbayes.data.sources import ArraySource, FittedSource, ImageSource, SubsetSource, as_source

IMAGES = np.random.default_rng(0).integers(0, 256, (12, 9, 7, 3), np.uint8)


class Unpickled:
    """An object that shows when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return pytest.fail, ("something was unpickled",)


def test_npy_is_mapped_and_not_read(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    array = open_npy(tmp_path / "a.npy")
    assert isinstance(array, np.memmap)
    assert not array.flags.writeable
    np.testing.assert_array_equal(array, IMAGES)


@pytest.mark.parametrize("array", [IMAGES, np.asfortranarray(IMAGES), IMAGES.astype(">f4") / 255, IMAGES[:0]])
def test_every_order_of_bytes_and_axes_is_read(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "b.npz", images=array)
    np.savez_compressed(tmp_path / "c.npz", images=array)
    np.testing.assert_array_equal(open_npy(tmp_path / "a.npy"), array)
    np.testing.assert_array_equal(open_npz(tmp_path / "b.npz", "images"), array)
    np.testing.assert_array_equal(open_npz(tmp_path / "c.npz", "images"), array)


def test_a_stored_npz_is_mapped(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", labels=np.arange(12), images=IMAGES)
    assert set(npz_keys(tmp_path / "a.npz")) == {"labels", "images"}
    assert isinstance(open_npz(tmp_path / "a.npz", "images"), np.memmap)
    np.testing.assert_array_equal(open_npz(tmp_path / "a.npz", "labels"), np.arange(12))


def test_pickles_are_refused(tmp_path: Path) -> None:
    evil = np.array([Unpickled()], object)
    np.save(tmp_path / "a.npy", evil, allow_pickle=True)
    np.savez(tmp_path / "b.npz", images=evil)
    with pytest.raises(ValueError, match=r"a\.npy .*a pickle"):
        open_npy(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"b\.npz .*a pickle"):
        open_npz(tmp_path / "b.npz", "images")


def test_files_cut_short_or_of_another_kind_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    whole = (tmp_path / "a.npy").read_bytes()
    for content in (b"", b"text", whole[:50], whole[:-1]):
        (tmp_path / "a.npy").write_bytes(content)
        with pytest.raises(ValueError, match=r"a\.npy is not a readable \.npy"):
            open_npy(tmp_path / "a.npy")
    np.savez(tmp_path / "b.npz", images=IMAGES)
    whole = (tmp_path / "b.npz").read_bytes()
    for content in (b"", b"text", whole[:-30], whole[100:]):
        (tmp_path / "b.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"b\.npz"):
            open_npz(tmp_path / "b.npz", npz_keys(tmp_path / "b.npz")[0])


def test_a_header_that_claims_more_than_there_is_allocates_nothing(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"descr": "|u1", "fortran_order": False, "shape": (2**40, 32, 32)})
    (tmp_path / "a.npy").write_bytes(buffer.getvalue() + bytes(100))
    with pytest.raises(ValueError, match="cut short"):
        open_npy(tmp_path / "a.npy")
    for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        with zipfile.ZipFile(tmp_path / "b.npz", "w", method) as archive:
            archive.writestr("images.npy", buffer.getvalue() + bytes(100))
        with pytest.raises(ValueError, match="must have"):
            open_npz(tmp_path / "b.npz", "images")


def test_a_packed_array_beyond_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neuralbayes.data.arrays.MAX_PACKED_BYTES", 1_000)
    np.savez_compressed(tmp_path / "a.npz", images=np.zeros((10, 20, 20), np.uint8))
    with pytest.raises(ValueError, match=r"unpacks to 4000 bytes, more than 1000"):
        open_npz(tmp_path / "a.npz", "images")


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_npy(tmp_path / "a.npy")
    with pytest.raises(FileNotFoundError):
        npz_keys(tmp_path / "a.npz")


@given(st.binary(max_size=300), st.integers(0, 10_000), st.integers(0, 255))
def test_damage_anywhere_raises_nothing_but_value_errors(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, position: int, value: int
) -> None:
    folder = tmp_path_factory.mktemp("damage")
    np.savez_compressed(folder / "a.npz", images=IMAGES[:2])
    np.save(folder / "b.npy", IMAGES[:2])
    for name in ("a.npz", "b.npy"):
        data = bytearray((folder / name).read_bytes())
        data[position % min(len(data), 200)] = value
        for content in (bytes(data), noise, bytes(data[:100]) + noise):
            (folder / name).write_bytes(content)
            with contextlib.suppress(ValueError):
                open_npy(folder / name)
            with contextlib.suppress(ValueError):
                for key in npz_keys(folder / name):
                    open_npz(folder / name, key)


# sources


def test_every_layout_gives_the_same_images(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", IMAGES)
    sources = [
        ArraySource(IMAGES),
        ArraySource(IMAGES.transpose(0, 3, 1, 2)),
        ArraySource(IMAGES / 255),
        ArraySource((IMAGES / 255).astype(np.float32)),
        ArraySource(open_npy(tmp_path / "a.npy")),
        SubsetSource(ArraySource(np.concatenate([IMAGES[::-1], IMAGES])), np.arange(12, 24)),
    ]
    for source in sources:
        assert isinstance(source, ImageSource)
        assert (len(source), source.shape) == (12, (9, 7, 3))
        for order in ([3, 3, 0], np.array([11]), torch.tensor([5, 1]), [], range(12)):
            batch = source.read(order)
            assert batch.dtype == np.uint8
            np.testing.assert_array_equal(batch, IMAGES[np.array(list(order), int)])


def test_what_is_read_is_a_copy() -> None:
    array = IMAGES.copy()
    ArraySource(array).read([0])[:] = 0
    np.testing.assert_array_equal(array, IMAGES)


def test_grey_images_without_a_channel_axis_get_one() -> None:
    assert ArraySource(IMAGES[..., 0]).shape == (9, 7, 1)
    assert ArraySource(IMAGES[..., 0]).read([1]).shape == (1, 9, 7, 1)
    assert ArraySource(IMAGES[:, np.newaxis, :, :, 0]).shape == (9, 7, 1)


def test_the_axis_of_the_channels_can_be_named() -> None:
    five = np.zeros((4, 5, 8, 8), np.uint8)
    with pytest.raises(ValueError, match="channels_first"):
        ArraySource(five)
    assert ArraySource(five, channels_first=True).shape == (8, 8, 5)
    assert ArraySource(np.zeros((4, 3, 8, 3), np.uint8), channels_first=True).shape == (8, 3, 3)


@pytest.mark.parametrize("array", [np.zeros((2, 8, 8), np.int64), np.zeros((2, 8, 8), bool), np.array(["a"])])
def test_other_types_are_refused(array: np.ndarray) -> None:
    with pytest.raises(TypeError, match="`array` must be of uint8"):
        ArraySource(array)


@pytest.mark.parametrize("shape", [(3,), (3, 3), (1, 2, 3, 4, 5), (0, 8, 8), (4, 0, 8)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="`array` must have shape"):
        ArraySource(np.zeros(shape, np.uint8))


@pytest.mark.parametrize("value", [-0.1, 1.1, np.nan, np.inf])
def test_floats_outside_0_to_1_are_refused_when_read(value: float) -> None:
    array = np.full((3, 4, 4), 0.5)
    array[2, 1, 1] = value
    source = ArraySource(array)
    assert (source.read([0, 1]) == 128).all()
    with pytest.raises(ValueError, match=r"must be in \[0, 1\]"):
        source.read([2])


@pytest.mark.parametrize(
    ("indices", "error"),
    [([12], IndexError), ([-1], IndexError), ([0.5], TypeError), ([[0]], TypeError), (3, TypeError), ("a", TypeError)],
)
def test_bad_indices_are_named(indices: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="`indices` must be"):
        ArraySource(IMAGES).read(indices)  # type: ignore[arg-type]


def test_large_images_are_fitted_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 256, (7, 20, 30, 3), np.uint8)
    source = ArraySource(images)
    whole = FittedSource(source, (4, 4), 3).read([6, 0, 3, 3, 1])
    most: list[int] = []
    read = source.read
    monkeypatch.setattr(source, "read", lambda indices: most.append(len(indices)) or read(indices))
    fitted = FittedSource(source, (4, 4), 3, waiting_bytes=2 * 20 * 30 * 3)
    np.testing.assert_array_equal(fitted.read([6, 0, 3, 3, 1]), whole)
    assert max(most) == 2


def test_a_fitted_source_resizes_and_recolours() -> None:
    flat = np.full((2, 64, 48, 3), (250, 130, 10), np.uint8)
    small = FittedSource(ArraySource(flat), (8, 8), 3)
    np.testing.assert_array_equal(small.read([1, 0]), np.broadcast_to(flat[:, :8, :8], (2, 8, 8, 3)))
    grey = FittedSource(ArraySource(flat), (64, 48), 1)
    assert abs(int(grey.read([0]).mean()) - round(0.299 * 250 + 0.587 * 130 + 0.114 * 10)) <= 1
    colour = FittedSource(ArraySource(flat[..., 0]), (64, 48), 3)
    np.testing.assert_array_equal(colour.read([0]), np.full((1, 64, 48, 3), 250))
    with pytest.raises(ValueError, match="1 or 3 channels"):
        FittedSource(ArraySource(np.zeros((1, 8, 8, 5), np.uint8), channels_first=False), (4, 4), 3)


def test_as_source_takes_arrays_and_sources_and_says_so() -> None:
    source = ArraySource(IMAGES)
    assert as_source(source) is source
    assert as_source(IMAGES).shape == (9, 7, 3)
    with pytest.raises(TypeError, match="`images` must be a folder, paths, PIL images, arrays, tensors"):
        as_source([1, 2, 3])  # type: ignore[arg-type]
