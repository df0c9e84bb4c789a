"""Files that are complete or absent."""

import json
import os
import stat
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from neuralbayes.system.files import MAX_JSON_BYTES, atomic_write, read_json, read_tensors, write_json, write_tensors


@pytest.fixture
def umask() -> Iterator[None]:
    before = os.umask(0o027)
    yield
    os.umask(before)


# Atomic writing


def test_a_file_takes_its_place_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with atomic_write(path) as temporary:
        temporary.write_text("new")
        assert not path.exists()
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write() -> None:
        with atomic_write(path) as temporary:
            temporary.write_text("half of the ne")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_the_temporary_file_is_beside_its_place_and_of_its_format(tmp_path: Path) -> None:
    """In the same folder, so the rename is atomic; with the same suffix, because matplotlib and pandas use it."""
    with atomic_write(tmp_path / "picture.png") as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".png"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no umask")
@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize("exists", [False, True], ids=["new", "replaced"])
def test_permissions_are_those_of_an_ordinary_file(tmp_path: Path, exists: bool) -> None:
    path = tmp_path / "a.json"
    if exists:
        write_json(path, 0)
    write_json(path, 1)
    ordinary = tmp_path / "ordinary"
    ordinary.touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(ordinary.stat().st_mode) == 0o640
    assert os.umask(0o027) == 0o027  # unchanged


# JSON


def test_json_comes_back(tmp_path: Path) -> None:
    value = {"name": "Körper", "values": [1, 2.5, None, True], "nested": {"a": []}}
    write_json(tmp_path / "a.json", value)
    assert read_json(str(tmp_path / "a.json")) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}], ids=repr)
def test_what_is_not_json_is_refused_and_the_old_file_stays(tmp_path: Path, value: object) -> None:
    path = tmp_path / "a.json"
    write_json(path, "old")
    with pytest.raises((ValueError, TypeError), match="JSON"):
        write_json(path, value)
    assert read_json(path) == "old"
    assert os.listdir(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    "content",
    [b"", b'{"a": 1', b"\xff\xfe", b"[" * 100_000, b'{"a": 1} trailing'],
    ids=["empty", "cut-short", "not-text", "too-deep", "trailing"],
)
def test_a_damaged_json_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json is not a valid JSON file .* damaged or cut short") as error:
        read_json(path)
    assert str(path) in str(error.value)


def test_a_json_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    with open(path, "wb") as file:
        file.truncate(6 * 2**30)  # takes no space on the disk
    tracemalloc.start()
    with pytest.raises(ValueError, match=rf"config\.json must have at most {MAX_JSON_BYTES} bytes"):
        read_json(path)
    assert tracemalloc.get_traced_memory()[1] < 2 * MAX_JSON_BYTES
    tracemalloc.stop()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_pipe_or_a_device_in_the_place_of_json_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "device.json").symlink_to("/dev/zero")
    for name in ("pipe.json", "device.json"):
        with pytest.raises(OSError, match=f"is not a file.*{name}"):
            read_json(tmp_path / name)


# Tensors


def test_tensors_come_back_with_their_metadata(tmp_path: Path) -> None:
    shared = torch.arange(4.0)  # tied weights: one tensor under several names
    tensors = {
        "tied": shared,
        "same": shared,
        "part": shared[1:],
        "weight": torch.randn(3, 2, requires_grad=True),
        "transposed": torch.randn(3, 2, dtype=torch.float64).T,
        "scalar": torch.tensor(3),
        "empty": torch.zeros(0, 4),
        "half": torch.randn(4).bfloat16(),
    }
    write_tensors(tmp_path / "a.safetensors", tensors, {"format": "neuralbayes 1"})
    back, metadata = read_tensors(str(tmp_path / "a.safetensors"))
    assert metadata == {"format": "neuralbayes 1"}
    assert back.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert back[name].dtype == tensor.dtype
        assert torch.equal(back[name], tensor.detach())


def whole_file(tmp_path: Path) -> bytes:
    write_tensors(tmp_path / "whole.safetensors", {"x": torch.randn(100)}, {"a": "b"})
    return (tmp_path / "whole.safetensors").read_bytes()


@pytest.mark.parametrize("damage", ["empty", "cut-header", "cut-data", "garbage", "huge-header", "pickle"])
def test_a_damaged_tensor_file_is_named(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "model.safetensors"
    whole = whole_file(tmp_path)
    content = {
        "empty": b"",
        "cut-header": whole[:20],
        "cut-data": whole[:-7],
        "garbage": bytes(200),
        "huge-header": b"\xff" * 8 + whole[8:],
        "pickle": b"\x80\x04}\x94.",
    }
    path.write_bytes(content[damage])
    with pytest.raises(ValueError, match=r"model\.safetensors is not a valid safetensors file .* damaged") as error:
        read_tensors(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}},
        {"x": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}},
        {"x": {"dtype": "F32", "shape": [2]}},
        {"x": None},
        [],
        "x",
    ],
    ids=str,
)
def test_a_tensor_file_of_another_length_than_its_header_says_is_not_read(tmp_path: Path, header: object) -> None:
    path = tmp_path / "model.safetensors"
    content = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(content).to_bytes(8, "little") + content)
        file.truncate(2**33)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"model\.safetensors is not a valid safetensors file"):
        read_tensors(path)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_a_header_of_tensors_that_is_too_long_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with open(path, "wb") as file:
        file.write((MAX_JSON_BYTES + 1).to_bytes(8, "little"))
        file.truncate(2**33)
    with pytest.raises(ValueError, match=f"header must have at most {MAX_JSON_BYTES} bytes, got {MAX_JSON_BYTES + 1}"):
        read_tensors(path)
