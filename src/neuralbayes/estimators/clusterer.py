"""What every clusterer has: labels, probabilities of new samples, a score, and a folder to be saved in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

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
from neuralbayes.estimators.table_vectorizer import TableVectorizer
from neuralbayes.training.inference import in_blocks

if TYPE_CHECKING:
    import pandas as pd

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
        "cluster_means_": array("f", 2),
        "column_scale_": array("f", 1),
        "prototypes_": array("i", 2),
    }
    _fitted_sometimes: ClassVar[dict[str, Check]] = {
        "feature_names_in_": names,
        "selection_": columns,
        "vectorizer_": lambda value: isinstance(value, TableVectorizer),
    }

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

    def describe(self, X: Any = None) -> pd.DataFrame:
        """What tells each cluster from the rest, as a data frame.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns), optional
            The rows that were fitted, or new ones, with any columns: numbers, text, booleans, dates, also those that
            were left out of the fit, with cells missing or not. Rows without the fitted columns must be those that
            were fitted, in their order. By default what `fit` kept of its rows: the means of the fitted columns. For
            images there is no more than that.

        Returns
        -------
        DataFrame
            One row for each cluster: a proposed "name", "size" and "share" of the rows, "differences" from the rest in
            words, the most telling first, and "prototypes", the most typical rows. With `X` also a "rule" of at most
            three conditions with its "precision" and "recall", and the "borderline" rows, whose second most probable
            cluster is close. Rows are named by the index of the frame or a column of ids or names, else by number.

        Examples
        --------
        >>> import neuralbayes as nb
        >>> from sklearn.datasets import load_iris
        >>> flowers = load_iris(as_frame=True).data
        >>> clusterer = nb.InformationClusterer(3, random_state=0).fit(flowers)
        >>> clusterer.describe(flowers).set_index("name").loc["low petal width", "rule"]
        'petal length (cm) ≤ 2'
        """
        from neuralbayes.clusters.description import describe_clusters
        from neuralbayes.clusters.summary import Summary, summary_frame
        from neuralbayes.estimators.frames import as_frame, column_names

        check_is_fitted(self)
        if X is None:
            summary = Summary(self.cluster_means_, self.column_scale_, self.prototypes_)
            return summary_frame(summary, self.labels_, None if self.image_shape_ else column_names(self))
        if self.image_shape_ is not None:
            raise ValueError("`X` must be None, since images have no columns to tell clusters apart by")
        frame = as_frame(self, X)
        labels, p_zx = self._labels_of(frame)
        return describe_clusters(frame, labels, self.n_clusters_, p_zx=p_zx, fitted=column_names(self)).to_frame()

    def _labels_of(self, frame: pd.DataFrame) -> tuple[NDArray[np.int64], Array | None]:
        """Labels and probabilities of rows that have the fitted columns, or the labels of those that were fitted."""
        from neuralbayes.estimators.frames import fitted_columns

        rows = fitted_columns(self, frame)
        if rows is not None:
            p_zx = self.predict_proba(rows)
            return p_zx.argmax(axis=1), p_zx
        if len(frame) != len(self.labels_):
            raise ValueError(
                f"`X` must have the {self.n_features_in_} columns that were fitted, complete and numeric, or the "
                f"{len(self.labels_):,} rows that were, got shape {frame.shape}"
            )
        return self.labels_, None

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
        self._summarize(samples)
        return order

    def _summarize(self, samples: Samples) -> None:
        """Keep what `describe` needs: of images the prototypes alone."""
        from neuralbayes.clusters.summary import summarize

        center, basis = self.module_.center, self.module_.basis

        def read(rows: NDArray[np.int64]) -> Array:
            x = tensor_of(samples, rows) if self.image_shape_ is None else torch.empty(len(rows), 0)
            return np.asarray(x.numpy())

        def points(rows: NDArray[np.int64]) -> Array:
            centered = tensor_of(samples, rows).flatten(1).double() - center
            return np.asarray((centered @ basis if basis.ndim == 2 else centered * basis).float())

        summary = summarize(read, points, self.labels_, self.n_clusters_, self.n_features_in_)
        self.cluster_means_, self.column_scale_ = summary.means, summary.scale
        self.prototypes_ = summary.prototypes

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
        vectorizer = getattr(self, "vectorizer_", None)
        if vectorizer is not None and len(vectorizer.get_feature_names_out()) != self.n_features_in_:
            raise ValueError(f"'vectorizer_' must give {self.n_features_in_} columns")
        for name in ("prior_", "separation_"):
            if getattr(self, name).shape != (self.n_clusters_,):
                raise ValueError(f"{name!r} must have a value for each of {self.n_clusters_} clusters")
        if not ((self.labels_ >= 0) & (self.labels_ < self.n_clusters_)).all():
            raise ValueError(f"'labels_' must be from 0 to {self.n_clusters_ - 1}")
        n_columns = self.n_features_in_ if self.image_shape_ is None else 0
        if self.cluster_means_.shape != (self.n_clusters_, n_columns) or self.column_scale_.shape != (n_columns,):
            raise ValueError(f"'cluster_means_' and 'column_scale_' must be of {n_columns} columns")
        if (
            len(self.prototypes_) != self.n_clusters_
            or not ((self.prototypes_ >= -1) & (self.prototypes_ < len(self.labels_))).all()
        ):
            raise ValueError(f"'prototypes_' must be rows, from -1 to {len(self.labels_) - 1}, of each cluster")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)


def tensor_of(samples: Samples, indices: NDArray[np.int64]) -> Tensor:
    """Samples at some indices: rows as they are, images (n, C, H, W) in [0, 1]."""
    if isinstance(samples, np.ndarray):
        return torch.from_numpy(np.asarray(samples[indices]))
    return torch.from_numpy(samples.read(indices)).permute(0, 3, 1, 2).float() / 255.0
