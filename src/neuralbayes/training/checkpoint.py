"""Checkpoints: one safetensors file with tensors, JSON for the rest, and a checksum. No pickle."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from neuralbayes.system.files import inside, read_tensors, write_tensors

FORMAT = "neuralbayes-checkpoint-1"
FOLDER = "checkpoints"
KEPT = 2  # the newest, and a fallback in case the newest is damaged


def save_checkpoint(run_dir: str | Path, step: int, state: Mapping[str, Any]) -> Path:
    """Write `state` as the checkpoint of `step` in `run_dir`, atomically, and delete all but the last two.

    Parameters
    ----------
    run_dir : path
    step : int
    state : nested dictionaries, lists and tuples of tensors, numbers, strings and None
        For example the state dictionaries of modules and optimisers.

    Returns
    -------
    Path of the file.

    Examples
    --------
    >>> path = save_checkpoint("run", 100, {"weights": torch.ones(2), "epoch": 3})
    >>> path.as_posix()
    'run/checkpoints/step-000000100.safetensors'
    """
    path = inside(run_dir, FOLDER, f"step-{step:09d}.safetensors")
    tensors: dict[str, Tensor] = {}
    tree = json.dumps(_pack(state, "", tensors), allow_nan=False)
    try:
        write_tensors(path, tensors, {"format": FORMAT, "tree": tree, "sha256": _digest(tensors, tree)})
    except OSError as error:
        raise OSError(error.errno, f"cannot write the checkpoint ({error.strerror})", str(path)) from error
    # Files of later steps are damaged: the run resumed from an earlier one.
    files = _newest_first(run_dir)
    kept = [file for file in files if _step(file) <= step][:KEPT]
    for file in set(files) - set(kept):
        file.unlink()
    return path


def load_checkpoint(run_dir: str | Path) -> dict[str, Any] | None:
    """Read the newest undamaged checkpoint of a run; None if there is no checkpoint.

    A damaged file causes a warning if an earlier checkpoint is intact, and a ValueError otherwise.

    Examples
    --------
    >>> path = save_checkpoint("run", 100, {"weights": torch.ones(2), "epoch": 3})
    >>> load_checkpoint("run")
    {'weights': tensor([1., 1.]), 'epoch': 3}
    >>> load_checkpoint("another") is None
    True
    """
    damage: list[str] = []
    for path in _newest_first(run_dir):
        try:
            state = read_checkpoint(path)
        except ValueError as error:
            damage.append(str(error))
            continue
        if damage:
            warnings.warn(f"{'; '.join(damage)}; going back to {path}", RuntimeWarning, stacklevel=2)
        return state
    if damage:
        raise ValueError(
            f"no checkpoint in {Path(run_dir) / FOLDER} can be read: {'; '.join(damage)}. "
            "Delete that folder to start from the beginning"
        )
    return None


def read_checkpoint(path: str | Path) -> dict[str, Any]:
    """Read a checkpoint and verify its checksum. A damaged file raises a ValueError that names it.

    Examples
    --------
    >>> path = save_checkpoint("run", 100, {"weights": torch.ones(2), "epoch": 3})
    >>> read_checkpoint(path)["epoch"]
    3
    """
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != FORMAT or not {"tree", "sha256"} <= metadata.keys():
        raise ValueError(f"{path} is not a checkpoint in the format {FORMAT}")
    if _digest(tensors, metadata["tree"]) != metadata["sha256"]:
        raise ValueError(f"{path} is damaged: its content does not match its checksum")
    try:
        state: dict[str, Any] = _unpack(json.loads(metadata["tree"]), tensors)
    except (
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ) as error:  # a checksum does not prove that the content is valid
        raise ValueError(f"{path} does not hold the state of a run ({error!r})") from error
    return state


def _pack(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Copy the tensors of `value` into `tensors`, and return the rest as JSON that refers to them by name.

    Dictionaries keep the order and type of their keys (optimisers number their parameters), and tuples stay tuples, so
    reading restores exactly what was saved.
    """
    if isinstance(value, Tensor):
        while name in tensors:  # {"a": {"b": ...}, "a/b": ...}
            name += "'"
        # Copy: safetensors refuses to write the shared memory of tied weights twice.
        tensors[name] = value.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": name}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(float(value))}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        if not all(isinstance(key, (str, int)) for key in value):
            raise TypeError(f"the keys of state {name!r} must be strings or integers, got {list(value)}")
        return {"dict": [[key, _pack(item, f"{name}/{key}".lstrip("/"), tensors)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        items = [_pack(item, f"{name}/{index}", tensors) for index, item in enumerate(value)]
        return {"tuple": items} if isinstance(value, tuple) else items
    raise TypeError(
        f"state {name!r} must be made of tensors, numbers, strings, None, lists, tuples and dictionaries, "
        f"got {type(value).__name__}"
    )


def _unpack(node: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(node, list):
        return [_unpack(item, tensors) for item in node]
    if not isinstance(node, dict):
        return node
    ((kind, content),) = node.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "float":
        return float(content)
    if kind == "tuple":
        return tuple(_unpack(item, tensors) for item in content)
    return {key: _unpack(item, tensors) for key, item in content}


def _digest(tensors: Mapping[str, Tensor], tree: str) -> str:
    digest = hashlib.sha256(tree.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _newest_first(run_dir: str | Path) -> list[Path]:
    found = inside(run_dir, FOLDER).glob("step-*.safetensors")
    return sorted((inside(run_dir, FOLDER, path.name) for path in found), key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))
