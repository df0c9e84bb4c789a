"""The samples of each step. They depend only on the seed and the step, so a run can resume anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Batches:
    """An endless sequence of batches of indices, with random access.

    The order of an epoch depends only on (`seed`, epoch), so a resumed run sees exactly the batches of an uninterrupted
    one. ``len(batches)`` is the number of batches in an epoch.

    Parameters
    ----------
    n_samples : int
    batch_size : int
        Samples per step, over all processes. If there are fewer samples, an epoch is one batch.
    seed : int, default=0
        Non-negative.
    shuffle : bool, default=True
        Draw a new order in each epoch; otherwise the order is 0, 1, 2, ...
    drop_last : bool, default=False
        Skip the last batch of an epoch if it is smaller than the others. Otherwise every sample is seen once per epoch.

    Examples
    --------
    >>> batches = Batches(n_samples=5, batch_size=2, shuffle=False)
    >>> len(batches)
    3
    >>> [batches.indices(step).tolist() for step in range(4)]
    [[0, 1], [2, 3], [4], [0, 1]]
    """

    n_samples: int
    batch_size: int
    seed: int = 0
    shuffle: bool = True
    drop_last: bool = False

    def __post_init__(self) -> None:
        for name, minimum in (("n_samples", 1), ("batch_size", 1), ("seed", 0)):
            object.__setattr__(self, name, check_integer(name, getattr(self, name), minimum))
        if self.drop_last and self.batch_size > self.n_samples:
            raise ValueError(
                f"`batch_size` must be at most n_samples = {self.n_samples} with drop_last=True, "
                f"got {self.batch_size}: no batch would be left"
            )

    def __len__(self) -> int:
        whole, rest = divmod(self.n_samples, self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def indices(self, step: int) -> Tensor:
        """Indices of the global batch of `step`, counted from 0 over all epochs: shape (n_in_batch,), int64."""
        epoch, position = divmod(check_integer("step", step, 0), len(self))
        start = position * self.batch_size
        stop = min(start + self.batch_size, self.n_samples)
        if not self.shuffle:
            return torch.arange(start, stop)
        return _order(self.n_samples, self.seed, epoch)[start:stop].clone()


def batches_for(n_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = False) -> Batches:
    """Batches without a last one of a single sample, which has no batch statistics."""
    single = n_samples > batch_size and n_samples % batch_size == 1
    return Batches(n_samples, batch_size, seed=seed, drop_last=drop_last or single)


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`, or raise an error that names it."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"`{name}` must be an integer, got {value!r}")
    if value < minimum:
        raise ValueError(f"`{name}` must be at least {minimum}, got {value}")
    return int(value)


@lru_cache(maxsize=1)  # consecutive steps of an epoch share one order
def _order(n_samples: int, seed: int, epoch: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n_samples))
