"""Finished blocks of a result: kept, never mixed with blocks of another job, and nothing else is touched."""

import numpy as np
import pytest

from neuralbayes.distributed.blocks import Blocks, stamps
from neuralbayes.distributed.workers import Workers

SIZES = [3, 3, 2]


def rows(model, piece):
    return np.full((SIZES[piece], 2), model * piece, np.float32)


def begin(folder, job=None, sizes=SIZES, force=False):
    return Blocks.begin(folder / "out.npy", job or {"layer": "relu4", "encoder": "blake2b:1"}, sizes, force=force)


def filled(folder, **changes):
    blocks = begin(folder, **changes)
    assert list(blocks.fill(Workers(), rows, 10.0, lambda i: i)) == SIZES
    return blocks


def interrupted(folder):
    """A job that Ctrl-C interrupted after two blocks."""

    def piece(i):
        if i == 2:
            raise KeyboardInterrupt
        return i

    blocks = begin(folder)
    with pytest.raises(KeyboardInterrupt, match=r"kept in .*out\.npy\.parts;"):
        list(blocks.fill(Workers(), rows, 10.0, piece))
    return blocks


def test_blocks_come_in_order_and_leave_nothing(tmp_path):
    blocks = filled(tmp_path)
    np.testing.assert_array_equal(np.concatenate(list(blocks))[:, 1], [0, 0, 0, 10, 10, 10, 20, 20])
    blocks.remove()
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_job_goes_on(tmp_path):
    interrupted(tmp_path)
    assert begin(tmp_path).missing() == [2]
    assert list(begin(tmp_path).fill(Workers(), rows, 10.0, lambda i: i)) == [2]


@pytest.mark.parametrize("damage", [lambda data: data[:-3], lambda data: b"", lambda data: b"\x93NUMPY nonsense"])
def test_a_damaged_block_is_computed_again(tmp_path, damage):
    interrupted(tmp_path)
    path = min((tmp_path / "out.npy.parts").glob("block-*"))
    path.write_bytes(damage(path.read_bytes()))
    assert begin(tmp_path).missing() == [0, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job": {"layer": "relu2", "encoder": "blake2b:1"}}, "layer was 'relu4'"),
        ({"job": {"layer": "relu4", "encoder": "blake2b:2"}}, "encoder has changed"),
        ({"sizes": [3, 3, 3]}, "rows was 8"),
    ],
)
def test_blocks_of_another_job_are_not_mixed_in(tmp_path, changes, words):
    interrupted(tmp_path)
    with pytest.raises(ValueError, match=rf"holds blocks of another job \({words}.*--force starts again"):
        begin(tmp_path, **changes)
    assert begin(tmp_path).missing() == [2]  # and they are still there
    assert begin(tmp_path, **changes, force=True).missing() == [0, 1, 2]


@pytest.mark.parametrize("job", [b"", b"[1]", b"{", b'{"a": NaN'])
def test_a_damaged_job_begins_anew(tmp_path, job):
    interrupted(tmp_path)
    (tmp_path / "out.npy.parts" / "job.json").write_bytes(job)
    assert begin(tmp_path).missing() == [0, 1, 2]


def test_other_files_are_neither_used_nor_deleted(tmp_path):
    blocks = filled(tmp_path)
    (blocks.folder / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"must only contain blocks .* got notes\.txt"):
        begin(tmp_path)
    blocks.remove()
    assert [path.name for path in blocks.folder.iterdir()] == ["notes.txt"]
    (tmp_path / "file.npy.parts").touch()
    with pytest.raises(NotADirectoryError, match=r"file\.npy\.parts must be a folder"):
        Blocks.begin(tmp_path / "file.npy", {}, SIZES, force=True)


def test_a_block_of_another_shape_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"block 0 must have 3 rows, got shape \(4, 2\)"):
        list(begin(tmp_path).fill(Workers(), lambda model, piece: np.zeros((4, 2)), None, lambda i: i))


def test_a_block_that_vanishes_is_missed(tmp_path):
    blocks = filled(tmp_path)
    min(blocks.folder.glob("block-*")).unlink()
    with pytest.raises(FileNotFoundError, match=r"block-00000.* is missing"):
        list(blocks)


def test_stamps_change_with_a_file(tmp_path):
    (tmp_path / "a").write_text("1")
    before = stamps([tmp_path / "a"])
    assert stamps([tmp_path / "a"]) == before
    (tmp_path / "a").write_text("12")
    assert stamps([tmp_path / "a"]) != before
