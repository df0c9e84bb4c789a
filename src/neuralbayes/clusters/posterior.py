r"""p(z|x) of rows: the softmax of a quadratic function of x, or a network.

Both are a parameterization L(x) of p(z|x) as in the paper, with p(z) = E[L(x)]; they differ in what can be learnt. A
mixture of Gaussians has a quadratic posterior,

.. math:: L_k(x) \propto \exp\left( b_k - \tfrac12 \lVert R_k (x - \mu_k) \rVert^2 \right),

which is fitted in milliseconds and saved as three arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Softmax of a quadratic function.

    Attributes
    ----------
    offsets : ndarray of shape (n_clusters,)
    centers : ndarray of shape (n_clusters, n_dimensions)
    roots : ndarray of shape (n_clusters, n_dimensions, n_dimensions)
        Lower triangular.
    """

    offsets: Array
    centers: Array
    roots: Array

    def logits(self, x: Array) -> Array:
        """Logarithms of p(z|x), up to a constant of each row: (n, n_dimensions) -> (n, n_clusters)."""
        result = np.empty((len(x), len(self.offsets)))
        for k, (offset, center, root) in enumerate(zip(self.offsets, self.centers, self.roots, strict=True)):
            result[:, k] = offset - 0.5 * np.square((x - center) @ root.T).sum(axis=1)
        return result
