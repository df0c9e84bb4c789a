"""Agreement of clusters with classes."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics.cluster import contingency_matrix


def clustering_accuracy(labels: NDArray[Any], truth: NDArray[Any]) -> float:
    """Accuracy of clusters under the best one-to-one matching of clusters to classes (Hungarian method).

    Parameters
    ----------
    labels, truth : ndarray of shape (n,)
        Clusters and classes, as numbers or names. If there are more of one than of the other, some stay unmatched.

    Returns
    -------
    float in [0, 1]

    Examples
    --------
    >>> import numpy as np
    >>> clustering_accuracy(np.array([2, 2, 0, 0]), np.array([0, 0, 1, 0]))
    0.75
    """
    if labels.shape != truth.shape or labels.ndim != 1 or not labels.size:
        raise ValueError(
            f"`labels` and `truth` must be of one length of at least 1, got shapes {labels.shape} and {truth.shape}"
        )
    table = contingency_matrix(truth, labels)
    return int(table[linear_sum_assignment(table, maximize=True)].sum()) / len(truth)
