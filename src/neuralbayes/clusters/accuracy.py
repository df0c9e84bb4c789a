"""Agreement of clusters with classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment


def clustering_accuracy(labels: NDArray[np.int64], truth: NDArray[np.int64]) -> float:
    """Accuracy of clusters under the best one-to-one matching of clusters to classes (Hungarian method).

    Parameters
    ----------
    labels, truth : ndarray of shape (n,), integers from 0
        Clusters and classes. If their numbers differ, some stay unmatched.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> clustering_accuracy(np.array([2, 2, 0, 0]), np.array([0, 0, 1, 0]))
    0.75
    """
    if labels.shape != truth.shape or labels.ndim != 1 or not labels.size:
        raise ValueError(
            f"`labels` and `truth` must be of one length of at least 1, got shapes {labels.shape} and {truth.shape}"
        )
    for name, values in (("labels", labels), ("truth", truth)):
        if values.dtype.kind not in "iu" or values.min() < 0:
            raise ValueError(f"`{name}` must be integers from 0, got {values.dtype} from {values.min()}")
    table = np.zeros(2 * (int(max(labels.max(), truth.max())) + 1,), dtype=np.int64)
    np.add.at(table, (labels, truth), 1)
    return int(table[linear_sum_assignment(table, maximize=True)].sum()) / len(truth)
