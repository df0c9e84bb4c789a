"""Checkpoints: one file of `torch.save` for each, whose name contains its digest, read with ``weights_only=True``.

They hold the states of all random generators that a step may draw from.
"""

from __future__ import annotations

import hashlib
import pickle
import random
import warnings
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.serialization import get_unsafe_globals_in_checkpoint

from neuralbayes.system.files import atomic_write, inside

FOLDER = "checkpoints"
KEPT = 2  # the newest, and a fallback in case the newest is damaged


def save_checkpoint(run_dir: str | Path, step: int, state: Mapping[str, Any]) -> Path:
    """Write `state` as the checkpoint of `step` in `run_dir`, atomically, and delete all but the last two.

    `state` is made of dictionaries, lists and tuples of tensors, numbers, strings and None, such as the state
    dictionaries of modules and optimisers.

    Examples
    --------
    >>> path = save_checkpoint("run", 100, {"weights": torch.ones(2), "epoch": 3})
    >>> path.parent.as_posix(), path.name[:15]
    ('run/checkpoints', 'step-000000100-')
    >>> load_checkpoint("run")
    {'weights': tensor([1., 1.]), 'epoch': 3}
    """
    buffer = BytesIO()
    torch.save(dict(state), buffer)
    buffer.seek(0)
    if unsafe := get_unsafe_globals_in_checkpoint(buffer):
        raise TypeError(
            "a state must be made of tensors, numbers, strings, None, lists, tuples and dictionaries, "
            f"got {', '.join(unsafe)}"
        )
    content = buffer.getvalue()
    path = inside(run_dir, FOLDER, f"step-{step:09d}-{_digest(content)}.pt")
    try:
        with atomic_write(path) as temporary:
            temporary.write_bytes(content)
    except OSError as error:
        raise OSError(error.errno, f"cannot write the checkpoint ({error.strerror})", str(path)) from error
    # Files of later steps are damaged: the run resumed from an earlier one.
    kept = [path, *(file for file in _newest_first(run_dir) if _step(file) < step)][:KEPT]
    for file in set(_newest_first(run_dir)) - set(kept):
        file.unlink()
    return path


def load_checkpoint(run_dir: str | Path) -> dict[str, Any] | None:
    """The newest undamaged checkpoint of a run; None if there is no checkpoint.

    A damaged file causes a warning if an earlier checkpoint is intact, and a ValueError otherwise.
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
    """Read a checkpoint and verify its digest. A damaged file raises a ValueError that names it."""
    path = Path(path)
    content = path.read_bytes()
    if _digest(content) != path.stem.rpartition("-")[2]:
        raise ValueError(f"{path} is damaged: its content does not match the digest in its name")
    try:
        state = torch.load(BytesIO(content), map_location="cpu", weights_only=True)
    except (RuntimeError, ValueError, EOFError, KeyError, pickle.UnpicklingError) as error:  # a digest proves no format
        raise ValueError(f"{path} does not hold the state of a run ({error})") from error
    if not isinstance(state, dict):
        raise ValueError(f"{path} does not hold the state of a run, but {type(state).__name__}")
    return state


def get_rng_state(device: torch.device) -> dict[str, Any]:
    """States of the global generators of Python, NumPy, torch on the CPU and torch on `device`."""
    version, words, next_gauss = random.getstate()
    # The global NumPy generator is not used here, but a user's augmentation may draw from it.
    name, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    state = {
        "python": (version, torch.tensor(words), next_gauss),
        "numpy": (name, torch.from_numpy(np.asarray(keys, dtype=np.int64)), position, has_gauss, gauss),
        "torch": torch.get_rng_state(),
    }
    if device.type != "cpu":
        state[device.type] = torch.get_device_module(device).get_rng_state()
    return state


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Restore the result of :func:`get_rng_state`. On another kind of device, its generator is left unchanged."""
    version, words, next_gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), next_gauss))
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if device.type in state:
        torch.get_device_module(device).set_rng_state(state[device.type])


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


def _newest_first(run_dir: str | Path) -> list[Path]:
    found = inside(run_dir, FOLDER).glob("step-*-*.pt")
    return sorted((inside(run_dir, FOLDER, path.name) for path in found), key=_step, reverse=True)


def _step(path: Path) -> int:
    return int(path.stem.split("-")[1])
