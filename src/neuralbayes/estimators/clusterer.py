"""What every clusterer has: labels, probabilities of new samples, a score, and a folder to be saved in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from neuralbayes.bayes import js_divergence
from neuralbayes.data.sources import ImageSource
from neuralbayes.estimators.attributes import (
    Check,
    array,
    check_features,
    columns,
    count,
    names,
    number,
    numbers,
    shape_or_none,
)
from neuralbayes.estimators.inputs import Rows, SparseRows, as_fitted
from neuralbayes.estimators.persistence import SavedEstimator
from neuralbayes.training.inference import in_blocks

Array = NDArray[Any]
Samples = Array | SparseRows | ImageSource


class Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SavedEstimator):  # type: ignore[misc]
    """A clusterer whose `module_` returns the logits of p(z|x), one for each cluster.

    A subclass fits the module and hands it to `_keep`.
    """

    _block: ClassVar[int] = 2000
    """Samples that pass through the network at once."""

    _fitted: ClassVar[dict[str, Check]] = {
        "labels_": array("i", 1),
        "n_clusters_": count,
        "n_dimensions_": count,
        "prior_": array("f", 1),
        "separation_": array("f", 1),
        "objective_": number,
        "loss_curve_": numbers,
        "n_iter_": count,
        "n_hidden_": count,
        "image_shape_": shape_or_none,
        "n_features_in_": count,
    }
    _fitted_sometimes: ClassVar[dict[str, Check]] = {"feature_names_in_": names, "selection_": columns}

    def transform(self, X: Rows) -> Array:
        """Logits of p(z|x).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
        """
        check_is_fitted(self)
        return self._over_blocks(self.module_, self._samples(X))

    def predict_proba(self, X: Rows) -> Array:
        """p(z|x).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_); rows sum to 1.
        """
        check_is_fitted(self)
        return self._over_blocks(lambda x: self.module_(x).softmax(dim=1), self._samples(X))

    def predict(self, X: Rows) -> NDArray[np.int64]:
        """The most probable cluster of each sample.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._labels(self._samples(X))

    def score(self, X: Rows, y: object = None) -> float:
        """Mean Jensen-Shannon divergence of a cluster from the rest on `X`: log 2 minus the DML loss.

        Parameters
        ----------
        X : as in `fit`
        y : ignored

        Returns
        -------
        float
            In nats, from 0 to log 2; higher is better. 0 where there is a single cluster.
        """
        p_zx = torch.from_numpy(self.predict_proba(X))
        return float(js_divergence(p_zx).mean()) if self.n_clusters_ > 1 else 0.0

    def _keep(self, module: nn.Module, samples: Samples, verbose: bool) -> NDArray[np.intp]:
        """Label the samples with the module, and return the clusters in the order of their size, the largest first."""
        self.module_: Any = module.eval().requires_grad_(False)
        total = torch.zeros(())

        def label(x: Tensor) -> Tensor:
            nonlocal total
            p_zx = self.module_(x).softmax(dim=1)
            total = total + p_zx.sum(dim=0, dtype=torch.float64)
            return p_zx.argmax(dim=1)

        labels = self._over_blocks(label, samples, verbose)
        prior = total.numpy() / len(samples)
        order = np.argsort(-prior, kind="stable")
        self.n_clusters_ = len(order)
        self.labels_ = np.argsort(order)[labels]
        self.prior_ = prior[order]
        return order

    def _samples(self, X: Rows) -> Samples:
        """`X` as samples of the kind that was fitted."""
        return as_fitted(self, X, self.image_shape_)

    def _labels(self, samples: Samples) -> NDArray[np.int64]:
        return self._over_blocks(lambda x: self.module_(x).argmax(dim=1), samples)

    def _over_blocks(self, function: Callable[[Tensor], Tensor], samples: Samples, verbose: bool = False) -> Array:
        """What `function` gives for all samples, a block at a time, numbers in the precision of rows."""
        single = isinstance(samples, np.ndarray | SparseRows) and samples.dtype != np.float64

        def of_block(rows: NDArray[np.int64]) -> Tensor:
            found = function(tensor_of(samples, rows))
            return found.float() if single and found.is_floating_point() else found

        return in_blocks(of_block, len(samples), block=self._block, description="blocks labelled", verbose=verbose)

    def _check_fitted(self, weights: Mapping[str, Tensor]) -> None:
        check_features(self)
        for name in ("prior_", "separation_"):
            if getattr(self, name).shape != (self.n_clusters_,):
                raise ValueError(f"{name!r} must have a value for each of {self.n_clusters_} clusters")
        if not ((self.labels_ >= 0) & (self.labels_ < self.n_clusters_)).all():
            raise ValueError(f"'labels_' must be from 0 to {self.n_clusters_ - 1}")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)


def tensor_of(samples: Samples, indices: NDArray[np.int64]) -> Tensor:
    """Samples at some indices: rows in float32 or float64, sparse ones as such; images (n, C, H, W) in [0, 1]."""
    if isinstance(samples, SparseRows):
        return samples.read(_slice_of(indices))
    if not isinstance(samples, np.ndarray):
        return torch.from_numpy(samples.read(indices)).permute(0, 3, 1, 2).float() / 255.0
    rows = torch.from_numpy(np.array(samples[_slice_of(indices)]))  # a copy: a mapped file must not be written to
    return rows.float() if rows.dtype == torch.float16 else rows


def _slice_of(indices: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Indices that follow one another as a slice, which is read in one piece."""
    if len(indices) and (np.diff(indices) == 1).all():
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices
