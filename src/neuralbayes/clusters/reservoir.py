"""The reservoir: a random sample of all rows that a clusterer has seen, for `update`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

MAX_RESERVOIR = 20_000
"""Maximum number of rows in the reservoir; with 64 numbers each they take 5 MB."""


def mixed_reservoir(
    old: Array, n_seen: int, new: Array, rng: np.random.RandomState, *, at_most: int = MAX_RESERVOIR
) -> NDArray[np.float32]:
    """Draw a random sample of all rows so far, from a sample of the first `n_seen` rows and the new rows."""
    if len(old) + len(new) <= at_most:
        return np.concatenate([old, new]).astype(np.float32)
    share_new = len(new) / (n_seen + len(new))
    n_new = int(np.clip(rng.binomial(at_most, share_new), at_most - len(old), len(new)))
    kept = [rows[rng.permutation(len(rows))[:n]] for rows, n in ((old, at_most - n_new), (new, n_new))]
    return np.concatenate(kept).astype(np.float32)
