"""Reduce sparse rows with many columns to dense rows with few, by a truncated singular value decomposition."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

N_ITER = 5
"""Number of power iterations, as in scikit-learn's TruncatedSVD."""

SMALLEST = 1e-6
"""Singular values below this share of the largest are rounding errors, with arbitrary vectors."""


def fit_reduction(
    rows: sp.csr_array,
    chosen: NDArray[np.int64],
    n_components: int,
    rng: np.random.RandomState,
    *,
    weight: NDArray[np.float64] | None = None,
    unit: bool = False,
) -> NDArray[np.float64]:
    """Compute the right singular vectors of the rows at the indices `chosen`, which stay sparse.

    Parameters
    ----------
    rows : csr_array of shape (n_rows, n_features)
    chosen : ndarray of int
    n_components : int
        Maximum number of vectors, in the order of their singular values, the largest first; at most n_features.
    rng : RandomState
    weight : ndarray of shape (n_rows,), optional
        Weight of each row.
    unit : bool, default=False
        Whether to scale rows to unit length, so only their directions count.

    Returns
    -------
    ndarray of shape (n_features, at most n_components)
        Multiply rows by it to get their coordinates.

    Examples
    --------
    >>> rows = sp.csr_array(np.outer([1.0, 2.0, 3.0], [0.0, 3.0, 0.0, 4.0]))
    >>> np.abs(fit_reduction(rows, np.arange(3), 2, np.random.RandomState(0))).round(6).tolist()
    [[0.0], [0.6], [0.0], [0.8]]
    """
    some = rows[chosen].astype(np.float64)
    if unit:
        some = normalize(some)
    if weight is not None:
        some = (sp.diags_array(np.sqrt(weight[chosen])) @ some).tocsr()
    _, values, vectors = randomized_svd(some, min(n_components, *some.shape), n_iter=N_ITER, random_state=rng)
    kept = values > SMALLEST * values[0]
    kept[0] = True
    return np.ascontiguousarray(vectors[kept].T)
