"""Results in parts: who computes what, what is kept, and whose folder it is."""

import numpy as np
import pytest

from neuralbayes.distributed.launch import Share
from neuralbayes.parts import announced, begin, contents, file_stamp, files, job, join, parts_folder, stamps
from neuralbayes.system.files import read_json, write_json

X = np.random.default_rng(0).normal(size=(23, 3))
ASKED = {"layer": "relu4", "encoder": "blake2b:01"}


class Rows:
    """Doubles the rows it is asked for, and counts them."""

    def __init__(self, error_at=None):
        self.asked, self.error_at = [], error_at

    def __call__(self, rows):
        if rows.start == self.error_at:
            raise KeyboardInterrupt
        self.asked.append(rows.start // 5)
        return 2 * X[rows]


@pytest.fixture
def folder(tmp_path):
    return parts_folder(tmp_path / "out.npy")


ALONE = Share()


def begun(folder, share=ALONE, asked=ASKED, *, data="blake2b:02", n_rows=23, force=False, listing=None):
    return begin(
        folder, asked, data=data, n_rows=n_rows, part_rows=5, like=X[:1], listing=listing, share=share, force=force
    )


def joined(folder, rank, world):
    return join(folder, ASKED, folder.parent / "out.npy", Share(rank, world))


def merged(parts):
    return np.concatenate([array for _, array in parts])


def test_one_process_computes_every_part_once_in_order(folder):
    parts, rows = begun(folder), Rows()
    assert list(parts.fill(rows)) == [5, 5, 5, 5, 3]
    assert rows.asked == [0, 1, 2, 3, 4]
    assert [part for part, _ in parts] == [slice(0, 5), slice(5, 10), slice(10, 15), slice(15, 20), slice(20, 23)]
    np.testing.assert_array_equal(merged(parts), 2 * X)
    parts.remove()
    assert list(folder.parent.iterdir()) == []


def test_what_was_finished_is_not_computed_again_by_any_number_of_processes(folder):
    first = Rows(error_at=15)
    with pytest.raises(KeyboardInterrupt):
        list(begun(folder).fill(first))
    leader, helper = Rows(), Rows()
    zero = begun(folder, Share(0, 2))
    assert zero.n_finished() == 3
    assert list(joined(folder, 1, 2).fill(helper)) == [5]
    assert list(zero.fill(leader)) == [3]
    assert first.asked + helper.asked + leader.asked == [0, 1, 2, 3, 4]
    np.testing.assert_array_equal(merged(zero), 2 * X)


def test_each_process_has_its_own_parts(folder):
    begun(folder, Share(0, 3))
    shares = [Rows(), Rows(), Rows()]
    for rank in (2, 1):
        list(joined(folder, rank, 3).fill(shares[rank]))
    list(begun(folder, Share(0, 3)).fill(shares[0]))
    assert [share.asked for share in shares] == [[0, 3], [1, 4], [2]]
    assert list(joined(folder, 7, 8).fill(Rows())) == []  # more processes than parts


def test_process_0_computes_what_does_not_come(folder, monkeypatch):
    monkeypatch.setattr(files, "PATIENCE", 0.0)
    parts, rows = begun(folder, Share(0, 4)), Rows()
    assert sorted(parts.fill(rows)) == [3, 5, 5, 5, 5]
    assert rows.asked[:2] == [0, 4]
    assert sorted(rows.asked) == [0, 1, 2, 3, 4]


def test_process_0_waits_for_the_parts_of_others(folder, monkeypatch):
    parts, rows, other = begun(folder, Share(0, 2)), Rows(), Rows()
    monkeypatch.setattr(files.time, "sleep", lambda seconds: next(files_of_the_other, None))
    files_of_the_other = joined(folder, 1, 2).fill(other)
    assert sum(parts.fill(rows)) == 23
    assert (rows.asked, other.asked) == ([0, 2, 4], [1, 3])


def test_who_comes_when_process_0_is_done_makes_no_folder_again(folder):
    zero = begun(folder, Share(0, 2))
    late = joined(folder, 1, 2)
    list(begun(folder).fill(Rows()))
    zero.remove()
    assert list(late.fill(Rows())) == []
    assert not folder.exists()


def test_process_0_says_that_somebody_deleted_its_folder(folder):
    parts = begun(folder)
    parts.remove()
    with pytest.raises(FileNotFoundError, match="is gone, where the finished parts were kept"):
        list(parts.fill(Rows()))


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: path.write_bytes(path.read_bytes()[:-1]),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_text("no array"),
        lambda path: np.save(path, np.zeros((5, 4))),
        lambda path: np.save(path, np.zeros((4, 3))),
        lambda path: np.save(path, np.zeros((5, 3), np.float32)),
        lambda path: np.save(path, np.array([{}]), allow_pickle=True),
    ],
)
def test_a_damaged_or_foreign_part_is_computed_again(folder, damage):
    list(begun(folder).fill(Rows()))
    damage(sorted(folder.glob("part-*.npy"))[2])
    parts, rows = begun(folder), Rows()
    assert parts.n_finished() == 4
    assert list(parts.fill(rows)) == [5]
    assert rows.asked == [2]
    np.testing.assert_array_equal(merged(parts), 2 * X)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"asked": {**ASKED, "layer": "relu2"}}, r"another job \(layer was 'relu4'\); --force begins anew"),
        ({"asked": {**ASKED, "encoder": "blake2b:09"}}, r"\(encoder has changed\)"),
        ({"asked": {"layer": "relu4"}}, r"\(encoder has changed\)"),
        ({"asked": {**ASKED, "limit": 5}}, r"\(limit was None\)"),
        ({"data": "blake2b:03", "n_rows": 20}, r"\(data has changed, rows was 23\)"),
    ],
)
def test_parts_of_another_job_are_not_mixed_in(folder, change, message):
    list(begun(folder).fill(Rows()))
    with pytest.raises(ValueError, match=message):
        begun(folder, **change)
    assert begun(folder).n_finished() == 5  # still there
    parts = begun(folder, **change, force=True)
    assert parts.n_finished() == 0
    assert {path.name for path in folder.iterdir()} == {"job.json", "listing.json"}
    list(parts.fill(Rows()))
    np.testing.assert_array_equal(merged(parts), 2 * X[: parts.n_rows])


def test_other_files_are_neither_deleted_nor_written_among(folder):
    folder.mkdir()
    (folder / "part of my thesis.txt").write_text("x")
    for force in (False, True):
        with pytest.raises(ValueError, match=r"holds other files: part of my thesis\.txt"):
            begun(folder, force=force)
    (folder / "part of my thesis.txt").unlink()
    parts = begun(folder)
    (folder / "notes.txt").write_text("x")
    parts.remove()
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_a_file_in_the_place_of_the_folder_is_named(folder):
    folder.write_text("x")
    with pytest.raises(NotADirectoryError, match=r"out\.npy\.parts is a file"):
        begun(folder)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_damaged_job_is_begun_again(folder, text):
    list(begun(folder).fill(Rows()))
    (folder / "job.json").write_text(text)
    assert begun(folder).n_finished() == 0


def test_others_wait_for_their_job_and_get_what_it_holds(folder, monkeypatch):
    begun(folder, asked={"layer": "relu2"})
    looks = []

    def sleep(seconds):
        looks.append(read_json(folder / "job.json")["asked"]["layer"])
        begun(folder, Share(0, 2), listing=["a.png"], force=True)

    monkeypatch.setattr(job.time, "sleep", sleep)
    parts = joined(folder, 1, 2)
    assert looks == ["relu2"]
    assert (parts.share, parts.n_rows, parts.n_columns, parts.dtype) == (Share(1, 2), 23, 3, "float64")
    assert parts.listing() == ["a.png"]


def test_others_leave_when_process_0_has_written_the_result(folder, monkeypatch):
    out = folder.parent / "out.npy"
    out.write_text("old")
    monkeypatch.setattr(job.time, "sleep", lambda seconds: write_json(out, "new"))
    assert joined(folder, 1, 2) is None


def test_others_leave_in_the_end_when_nobody_begins(folder, monkeypatch):
    monkeypatch.setattr(job, "TRY", 0.0)
    assert joined(folder, 1, 2) is None


def test_a_folder_is_announced_and_goes_when_nothing_was_begun(folder):
    def fail(there):
        assert folder.is_dir() == there
        raise OSError("no data")

    for share in (Share(0, 2), Share()):
        with pytest.raises(OSError, match="no data"), announced(folder, share):
            fail(there=share.world > 1)
        assert not folder.exists()


def test_a_result_of_another_shape_means_that_the_data_have_changed(folder):
    with pytest.raises(ValueError, match=r"part 4 must have the shape \(5, 3\), got \(3, 3\): the data have changed"):
        list(begun(folder, n_rows=30).fill(Rows()))


def test_digests_change_with_what_they_are_of(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("x")
    seen = [contents(a, b), stamps([a])]
    b.write_text("")
    assert contents(a, b) == seen[0]
    a.write_text("yy")
    b.write_text("x")
    seen += [contents(a, b), contents(b, a), stamps([a]), stamps([b]), stamps([])]
    assert len(set(seen)) == len(seen)
    assert (file_stamp(a), file_stamp(tmp_path), file_stamp(tmp_path / "none")) == (stamps([a]), None, None)
