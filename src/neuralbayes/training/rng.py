"""Save, restore and seed all random number generators that a training step may use."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

if TYPE_CHECKING:
    from lightning_fabric import Fabric


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


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """Seed the global generators with `seed` inside the block, and restore them afterwards."""
    earlier = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  augmentation draws from it; a checkpoint holds its state
        try:
            yield
        finally:
            np.random.set_state(earlier[0])  # noqa: NPY002
            random.setstate(earlier[1])  # set when resuming


def noise_of_rank(fabric: Fabric, seed: int) -> AbstractContextManager[None]:
    """Seed the generators of this process, one of several, differently from those of the others."""
    return seeded_globally(int(np.random.SeedSequence([seed, fabric.global_rank]).generate_state(1)[0]))
