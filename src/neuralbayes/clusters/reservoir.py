"""A random sample of all rows that a clusterer has seen, which `update` goes by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

MAX_RESERVOIR = 20_000
"""Rows that stand for all that were seen: 64 numbers each take 5 MB."""


def mixed_reservoir(
    old: Array, n_seen: int, new: Array, rng: np.random.RandomState, *, at_most: int = MAX_RESERVOIR
) -> NDArray[np.float32]:
    """A random sample of all rows so far, from one of `n_seen` of them and from those that came since."""
    if len(old) + len(new) <= at_most:
        return np.concatenate([old, new]).astype(np.float32)
    share_new = len(new) / (n_seen + len(new))
    n_new = int(np.clip(rng.binomial(at_most, share_new), at_most - len(old), len(new)))
    kept = [rows[rng.permutation(len(rows))[:n]] for rows, n in ((old, at_most - n_new), (new, n_new))]
    return np.concatenate(kept).astype(np.float32)
