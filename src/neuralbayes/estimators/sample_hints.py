"""Weights, known classes and links of samples, as passed to `fit`."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import _check_sample_weight

from neuralbayes.clusters.known import Hints, make_hints


def as_hints(
    n_samples: int,
    sample_weight: ArrayLike | None,
    known: ArrayLike | None,
    must_link: ArrayLike | None,
    cannot_link: ArrayLike | None,
) -> tuple[NDArray[np.float64] | None, Hints, NDArray[np.int64]]:
    """Checked weights (n_samples,) or None, hints about the samples with positive weight, and their indices."""
    everything = np.arange(n_samples)
    weight = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, everything[:, None], dtype=np.float64, ensure_non_negative=True)
        everything = np.flatnonzero(weight > 0.0)
        if not len(everything):
            raise ValueError("`sample_weight` must be positive for some samples, got only 0")
    hints = make_hints(n_samples, weight=weight, known=known, must_link=must_link, cannot_link=cannot_link)
    return weight, hints if weight is None else hints.of(everything), everything
