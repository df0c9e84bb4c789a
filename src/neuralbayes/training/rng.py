"""The random number generators that a training step may draw from, as one state to save and to restore."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


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
    """Restore what :func:`get_rng_state` returned; a run moved to another kind of device keeps its generator."""
    version, words, next_gauss = state["python"]
    random.setstate((version, tuple(words.tolist()), next_gauss))
    name, keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if device.type in state:
        torch.get_device_module(device).set_rng_state(state[device.type])
