"""The first layer of models of rows: the metric, and the reduction of sparse rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from neuralbayes import clusters
from neuralbayes.estimators.clusterer import Samples
from neuralbayes.estimators.inputs import SparseRows, check_directions
from neuralbayes.networks.rows import RowLayer

METRICS = ("euclidean", "cosine")


def fit_row_layer(
    estimator: BaseEstimator,
    samples: Samples,
    fitted: NDArray[np.int64],
    weight: NDArray[np.float64] | None,
    rng: np.random.RandomState,
) -> tuple[RowLayer, NDArray[np.int64]]:
    """The layer, and the indices of the rows used to reduce sparse ones; empty without a reduction.

    `estimator` has the parameters of :class:`neuralbayes.InformationClusterer`; `fitted` are the indices of the fitted
    samples.
    """
    unit = estimator.metric == "cosine"
    if unit and isinstance(samples, np.ndarray | SparseRows):
        check_directions(samples)
    if not isinstance(samples, SparseRows) or samples.matrix.shape[1] <= estimator.n_components:
        return RowLayer(unit=unit), np.empty(0, np.int64)
    if estimator.standardize:
        raise ValueError(
            "`standardize` must be False for sparse rows of more than n_components columns, got True: divide the "
            "columns first, such as by sklearn.preprocessing.MaxAbsScaler, which keeps rows sparse"
        )
    chosen = np.sort(rng.permutation(fitted)[: estimator.max_samples])
    reduction = clusters.fit_reduction(samples.matrix, chosen, estimator.n_components, rng, weight=weight, unit=unit)
    return RowLayer(reduction, unit=unit), chosen
