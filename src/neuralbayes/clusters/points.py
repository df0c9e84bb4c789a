"""Principal components of the data, and reading samples in blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils.extmath import randomized_svd
from torch import Tensor

from neuralbayes.training.progress import progress

Array = NDArray[Any]

Read = Callable[[NDArray[np.int64]], Tensor]
"""Returns the samples at some indices in their original form: (m, n_features) or (m, C, H, W)."""

SPAN_NUMBERS = 2**25
"""Maximum number of values to compute the principal components from: a quarter of a gigabyte."""

BLOCK = 2000
"""Number of samples to read, or to pass through the network, at once."""


def span(
    read: Read,
    chosen: NDArray[np.int64],
    n_dimensions: int,
    rng: np.random.RandomState,
    weight: NDArray[np.float64] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Compute center (n_features,), factors (n_features,) and components (n_features, n_dimensions), in double.

    A row of weight 2 counts as two; `weight` holds the weights of the rows in `chosen`.
    """
    n_features = read(chosen[:1])[0].numel()
    few = rng.permutation(len(chosen))[: max(2, SPAN_NUMBERS // n_features)]
    sample = blocks(read, chosen[np.sort(few)], verbose=False)
    rows = np.concatenate([x.flatten(1).double().numpy() for x in sample])
    share = None if weight is None else weight[np.sort(few)] / weight[few].sum()
    center = rows.mean(axis=0) if share is None else share @ rows
    rows -= center
    variance = np.square(rows).mean(axis=0) if share is None else share @ np.square(rows)
    if not variance.any():
        raise ValueError("X must contain at least 2 distinct samples, got 1 repeated; check how X was read or made")
    scale = np.full(n_features, 1.0 / np.sqrt(variance.mean()))
    rows *= scale
    n_dimensions = min(n_dimensions, n_features, len(rows) - 1)
    if share is None:
        components = PCA(n_dimensions, random_state=rng).fit(rows).components_
    else:  # the weighted mean is 0; PCA would subtract the unweighted mean
        components = randomized_svd(rows * np.sqrt(share)[:, None], n_dimensions, random_state=rng)[2]
    return torch.from_numpy(center), torch.from_numpy(scale), torch.from_numpy(components.T.copy())


def blocks(read: Read, indices: NDArray[np.int64], verbose: bool) -> Iterator[Tensor]:
    """Yield the samples, one block at a time."""
    starts = range(0, len(indices), BLOCK)
    with progress(len(starts), description="parts read", enabled=verbose) as display:
        for start in starts:
            x = read(indices[start : start + BLOCK])
            yield x
            display.advance(samples=len(x))
