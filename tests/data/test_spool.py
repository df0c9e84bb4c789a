"""Decoded images in a temporary file."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from neuralbayes.data.folder import FolderSource
from neuralbayes.data.spool import Spool


@pytest.fixture
def pixels(tmp_path: Path) -> np.ndarray:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 20, 30, 3), np.uint8)
    for i, image in enumerate(pixels):
        Image.fromarray(image).save(tmp_path / f"{i:02}.png")
    (tmp_path / "05.png").write_bytes(b"no picture")
    return np.delete(pixels, 5, axis=0)


def test_images_without_room_in_memory_are_decoded_once(tmp_path: Path, pixels: np.ndarray) -> None:
    source = FolderSource(tmp_path, memory_limit=0)
    for path in source.paths:
        path.unlink()
    rows = np.array([10, 0, 3, 3])
    np.testing.assert_array_equal(source.read(rows), pixels[rows])
    assert source.read([]).shape == (0, 20, 30, 3)


def test_without_room_on_the_disk_files_are_decoded_again(
    tmp_path: Path, pixels: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spool, "has_room", lambda n_bytes: False)
    source = FolderSource(tmp_path, memory_limit=0)
    np.testing.assert_array_equal(source.read([2, 7]), pixels[[2, 7]])
    source.paths[2].unlink()
    with pytest.raises(OSError, match="could be read at the start"):
        source.read([2])


def test_another_process_decodes_for_itself(tmp_path: Path, pixels: np.ndarray) -> None:
    source = pickle.loads(pickle.dumps(FolderSource(tmp_path, memory_limit=0)))  # noqa: S301
    np.testing.assert_array_equal(source.read([4]), pixels[[4]])


def test_a_disk_that_does_not_answer_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: str) -> None:
        raise OSError(path)

    monkeypatch.setattr("neuralbayes.data.spool.shutil.disk_usage", fail)
    assert not Spool.has_room(1)
