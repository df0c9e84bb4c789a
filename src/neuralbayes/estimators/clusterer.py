"""What every clusterer has: labels, probabilities of new samples, a score, and a folder to be saved in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
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
from neuralbayes.estimators.inputs import Rows, as_fitted
from neuralbayes.estimators.persistence import SavedEstimator
from neuralbayes.training.inference import in_blocks

Array = NDArray[Any]
Samples = Array | ImageSource


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
        return self._logits(as_fitted(self, X, self.image_shape_))

    def predict_proba(self, X: Rows) -> Array:
        """p(z|x).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_); rows sum to 1.
        """
        p_zx: Array = softmax(self.transform(X), axis=1)
        return p_zx

    def predict(self, X: Rows) -> NDArray[np.int64]:
        """The most probable cluster of each sample.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        labels: NDArray[np.int64] = self.transform(X).argmax(axis=1)
        return labels

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

    def _keep(
        self,
        module: nn.Module,
        samples: Samples,
        verbose: bool,
        *,
        weight: NDArray[np.float64] | None = None,
        named: NDArray[np.int64] | None = None,
    ) -> NDArray[np.intp]:
        """Label the samples with the module, and return the clusters in the order of their size, the largest first.

        Clusters that are `named` keep their numbers.
        """
        self.module_: Any = module.eval().requires_grad_(False)
        p_zx = softmax(self._logits(samples, verbose), axis=1)
        prior = p_zx.mean(axis=0, dtype=np.float64) if weight is None else np.average(p_zx, axis=0, weights=weight)
        order = np.argsort(-prior, kind="stable")
        if named is not None and len(named):
            others = order[~np.isin(order, named)]
            order = np.arange(len(order))
            order[~np.isin(order, named)] = others
        self.n_clusters_ = len(order)
        self.labels_ = p_zx[:, order].argmax(axis=1)
        self.prior_ = prior[order]
        return order

    def _logits(self, samples: Samples, verbose: bool = False) -> Array:
        """The module on all samples, a block at a time, in the precision of rows: (n_samples, n_clusters)."""
        return in_blocks(
            lambda rows: self.module_(tensor_of(samples, rows)),
            len(samples),
            block=self._block,
            dtype=samples.dtype if isinstance(samples, np.ndarray) else None,
            description="blocks labelled",
            verbose=verbose,
        )

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
    """Samples at some indices: rows as they are, images (n, C, H, W) in [0, 1]."""
    if isinstance(samples, np.ndarray):
        return torch.from_numpy(np.asarray(samples[indices]))
    return torch.from_numpy(samples.read(indices)).permute(0, 3, 1, 2).float() / 255.0
