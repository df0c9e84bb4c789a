"""Base class of clusterers with `typicality`, which can reject atypical samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from neuralbayes import clusters
from neuralbayes.clusters.typicality import Typicality, check_level, reject_atypical
from neuralbayes.estimators.attributes import Check, array, number
from neuralbayes.estimators.clusterer import Clusterer, Samples, tensor_of
from neuralbayes.estimators.inputs import Rows
from neuralbayes.training.inference import in_blocks

if TYPE_CHECKING:
    from neuralbayes.clusters.coordinates import Coordinates


class TypicalClusterer(Clusterer):
    """A clusterer with `typicality`.

    A subclass passes coordinates and typicality to `_keep_typicality`.
    """

    _fitted: ClassVar[dict[str, Check]] = Clusterer._fitted | {
        "typical_center_": array("f", 1),
        "typical_scale_": number,
        "typical_reference_": array("f", 2),
        "typical_spacing_": array("f", 1),
        "typical_floor_": number,
        "typical_scores_": array("f", 1),
        "typical_length_": number,
    }
    _fitted_sometimes: ClassVar[dict[str, Check]] = Clusterer._fitted_sometimes | {
        "typical_components_": array("f", 2),
    }

    def predict(self, X: Rows, *, reject: float | None = None) -> NDArray[np.int64]:
        """Return the most probable cluster of each sample.

        Parameters
        ----------
        X : as in `fit`
        reject : float, optional
            Label samples -1 if their `typicality` is at most this value. It bounds the share of ordinary samples that
            are rejected. By default, no sample is rejected.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        if reject is None:
            return super().predict(X)
        check_level(reject)
        check_is_fitted(self)
        samples = self._samples(X)
        return reject_atypical(self._labels(samples), self._typicality(samples), reject)

    def typicality(self, X: Rows) -> NDArray[np.float64]:
        """Return how typical samples are of the training data, as conformal p-values.

        Typicality is the share of ordinary samples that lie at least as far out, measured by distances to nearest
        neighbours. If new samples come from the distribution of the training data, at most a share a of them have a
        typicality of a or less, on average over fits. This is exact if enough samples (a quarter of all, or 5,000) were
        not among the `max_samples` used for training. Otherwise, it depends on how well the principal components fit
        new samples.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
            Values from 1 / (m + 1) to 1, where m is a quarter of the fitted samples, but at most 5,000. With fewer than
            396 samples, no typicality is 0.01 or less.
        """
        check_is_fitted(self)
        return self._typicality(self._samples(X))

    def _typicality(self, samples: Samples) -> NDArray[np.float64]:
        typical, coordinates = self.typical_parts()

        def p_values(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            return typical.p_values(coordinates(self.module_, tensor_of(samples, rows)))

        return in_blocks(p_values, len(samples), block=self._block)

    def typical_parts(self) -> tuple[Typicality, Coordinates]:
        """The reference of `typicality`, and its coordinates."""
        typical = Typicality(**{name: getattr(self, f"typical_{name}_") for name in Typicality.__annotations__})
        return typical, clusters.Coordinates(getattr(self, "typical_components_", None), self.typical_length_)

    def _keep_typicality(self, coordinates: Coordinates, typicality: Typicality) -> None:
        for name, value in vars(typicality).items():
            setattr(self, f"typical_{name}_", value)
        self.typical_length_ = coordinates.length
        if coordinates.components is not None:
            self.typical_components_ = coordinates.components

    def _check_fitted(self, weights: Mapping[str, Tensor]) -> None:
        super()._check_fitted(weights)
        components = getattr(self, "typical_components_", None)
        n_features = getattr(self, "n_components_", 0) or self.n_features_in_
        if components is not None and len(components) != n_features:
            raise ValueError(f"'typical_components_' must be of {n_features} features")
        n_dimensions = self.n_dimensions_ if components is None else components.shape[1]
        if self.typical_length_ < 0.0 or len(self.typical_center_) != n_dimensions + (self.typical_length_ > 0.0):
            raise ValueError("'typical_length_' and 'typical_center_' must fit the principal components")
        self.typical_parts()
