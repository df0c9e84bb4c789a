"""Linear systems of a random walk: symmetric, positive definite, and as sparse as the graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.sparse.csgraph import reverse_cuthill_mckee

Array = NDArray[np.float64]

MAX_BAND = 2**23
"""Numbers of a band (64 MB) beyond which the factors are kept sparse instead."""


class Solver:
    """Solves (diag(d) - W) x = b, factored once.

    The points are numbered along the graph (reverse Cuthill-McKee), so neighbours have numbers close to each other, and
    all non-zeros lie in a band around the diagonal. LAPACK factors a band several times faster than SuperLU factors a
    sparse matrix. That is so in many dimensions too, where the band is nearly the whole matrix.

    Parameters
    ----------
    diagonal : ndarray of shape (n,)
        d, larger than the sums of the rows of W.
    weight : csr_matrix of shape (n, n)
        W, symmetric and non-negative, with a diagonal of zeros.

    Examples
    --------
    >>> solve = Solver(np.array([2.0, 2.0]), sp.csr_matrix([[0.0, 1.0], [1.0, 0.0]]))
    >>> solve(np.array([[0.0], [3.0]])).round(12)
    array([[1.],
           [2.]])
    """

    def __init__(self, diagonal: Array, weight: sp.csr_matrix) -> None:
        n = len(diagonal)
        self._order = reverse_cuthill_mckee(weight, symmetric_mode=True)
        place = np.empty(n, np.int64)
        place[self._order] = np.arange(n)
        row = np.repeat(place, np.diff(weight.indptr))
        below = row - place[weight.indices]  # the diagonal
        width = int(below.max(initial=0)) + 1
        self._sparse = None
        if width * n > MAX_BAND:
            self._sparse = sparse_factors(diagonal, weight)
            return
        band = np.zeros((width, n), order="F")
        band[0, place] = diagonal
        lower = below > 0
        band[below[lower], (row - below)[lower]] = -weight.data[lower]
        self._band, failed = lapack.dpbtrf(band, lower=1, overwrite_ab=1)
        if failed:
            raise ValueError("`diagonal` must be larger than the sums of the rows of `weight`")

    def __call__(self, b: Array) -> Array:
        """X of as many systems as `b` has columns: (n, n_columns) -> (n, n_columns)."""
        if self._sparse is not None:
            solved: Array = self._sparse.solve(b)
            return solved
        x = np.empty_like(b)
        x[self._order] = lapack.dpbtrs(self._band, b[self._order], lower=1)[0]
        return x


def sparse_factors(diagonal: Array, weight: sp.csr_matrix) -> sp.linalg.SuperLU:
    """Factors without pivoting, which a dominant diagonal does not need, in an order that keeps them sparse."""
    from scipy.sparse.linalg import splu

    return splu(
        (sp.diags(diagonal) - weight).tocsc(),
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
