import hashlib
import io
import math

import pytest
import torch
from torch.utils._pytree import tree_flatten

from neuralbayes.training import load_checkpoint, read_checkpoint, save_checkpoint


def files(run_dir):
    return sorted((run_dir / "checkpoints").iterdir())


def damage(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def assert_same(left, right):
    (ours, form), (theirs, other) = tree_flatten(left), tree_flatten(right)
    assert form == other
    for a, b in zip(ours, theirs, strict=True):
        assert type(a) is type(b)
        if isinstance(a, torch.Tensor):
            assert a.dtype == b.dtype
            assert torch.equal(a, b)
        else:
            assert a == b or (math.isnan(a) and math.isnan(b))


def test_nested_state_comes_back_equal(tmp_path):
    state = {
        "step": 3,
        "none": None,
        "text": "é",
        "flag": True,
        "numbers": [1, 0.1, math.nan, -math.inf, 2**70],
        "tuple": (1, (2.5, "x"), []),
        "by number": {0: torch.arange(3), 1: torch.zeros(())},
        "dtypes": [
            torch.ones(2, dtype=d) for d in (torch.bool, torch.bfloat16, torch.float64, torch.uint8, torch.int64)
        ],
        "empty": torch.empty(0, 3),
        "a": {"b": torch.ones(1)},
        "a/b": torch.zeros(1),
        "transposed": torch.arange(6).reshape(2, 3).T,
    }
    assert_same(read_checkpoint(save_checkpoint(tmp_path, 3, state)), state)


def test_an_object_that_could_run_code_when_read_is_refused(tmp_path):
    class Thing:
        pass

    with pytest.raises((TypeError, AttributeError)):
        save_checkpoint(tmp_path, 1, {"callbacks": {"thing": Thing()}})
    with pytest.raises(TypeError, match="PosixPath"):
        save_checkpoint(tmp_path, 1, {"callbacks": {"folder": tmp_path}})
    assert load_checkpoint(tmp_path) is None


def test_the_last_two_are_kept(tmp_path):
    for step in (5, 10, 1000):
        save_checkpoint(tmp_path, step, {"step": step})
    assert [read_checkpoint(path)["step"] for path in files(tmp_path)] == [10, 1000]
    assert load_checkpoint(tmp_path) == {"step": 1000}


def test_every_kind_of_damage_is_noticed(tmp_path):
    path = save_checkpoint(tmp_path, 1, {"weights": torch.arange(4.0), "rate": 0.25, "text": "abc"})
    content = path.read_bytes()
    for position in (0, 9, content.index(b"abc"), len(content) // 2, len(content) - 3):
        changed = bytearray(content)
        changed[position] ^= 2
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=path.name):
            read_checkpoint(path)
    for length in (0, 4, 30, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=path.name):
            read_checkpoint(path)


class Attack:
    def __reduce__(self):
        return print, ("code of the file ran",)


def test_a_file_with_code_is_refused_and_not_run(tmp_path, capsys):
    content = io.BytesIO()
    torch.save({"weights": Attack()}, content)
    path = tmp_path / "checkpoints" / f"step-000000001-{hashlib.sha256(content.getvalue()).hexdigest()[:16]}.pt"
    path.parent.mkdir()
    path.write_bytes(content.getvalue())
    with pytest.raises(ValueError, match=path.name):
        read_checkpoint(path)
    assert capsys.readouterr().out == ""


def test_a_damaged_newest_one_falls_back_with_a_warning_and_gives_way(tmp_path):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, {"step": torch.tensor(step)})
    damage(files(tmp_path)[-1])
    with pytest.warns(RuntimeWarning, match=r"step-000000002-\w+.pt is damaged.*going back to .*step-000000001"):
        assert load_checkpoint(tmp_path)["step"] == 1
    # If the damaged checkpoint counted among the last two, an intact one would have been deleted.
    save_checkpoint(tmp_path, 1, {"step": torch.tensor(1)})
    assert [path.name[:14] for path in files(tmp_path)] == ["step-000000001"]


def test_two_damaged_ones_are_an_error(tmp_path):
    for step in (1, 2):
        save_checkpoint(tmp_path, step, {"step": torch.tensor(step)})
    for path in files(tmp_path):
        damage(path)
    with pytest.raises(ValueError, match=r"no checkpoint in .* can be read: .*step-000000002.*step-000000001"):
        load_checkpoint(tmp_path)


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"cannot write the checkpoint .*file/checkpoints/step-000000001"):
        save_checkpoint(tmp_path / "file", 1, {})
