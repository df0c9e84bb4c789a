"""Base class of the clusterers: labels, probabilities, score, description, and saving."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from neuralbayes.clusters.merging import divergence
from neuralbayes.estimators.inputs import (
    Rows,
    Samples,
    as_fitted,
    column_names,
    fitted_columns,
    n_rows,
    named_frame,
    read,
)
from neuralbayes.estimators.saving import SavingMixin, is_array, is_count, is_list, is_table
from neuralbayes.training.progress import progress

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

TYPICAL_OF = 10_000  # rows, drawn at random, among which `fit` ranks the most typical ones
N_TYPICAL = 5  # typical rows that it keeps per cluster

POSITIVE = Interval(Integral, 1, None, closed="left")
CONSTRAINTS: dict[str, list[Any]] = {  # of the parameters that clusterers share
    "n_clusters": [POSITIVE, StrOptions({"auto"})],
    "n_neighbors": [POSITIVE],
    "max_samples": [Interval(Integral, 2, None, closed="left")],
    "max_clusters": [Interval(Integral, 2, None, closed="left")],
    "vectorizer": [HasMethods(["fit", "transform", "get_feature_names_out", "state"]), None],
    "random_state": ["random_state"],
    "device": [str],
    "verbose": ["verbose"],
}


class Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SavingMixin, BaseEstimator):  # type: ignore[misc]
    """A clusterer with p(z|x). A subclass defines `_points` and `_logits`, and calls `_keep` in `fit`."""

    _block: ClassVar[int] = 2000  # samples that are read at once

    def _points(self, samples: Any) -> Array:
        """Coordinates of some samples, as `read` returns them: (n, ...) -> (n, n_dimensions_)."""
        raise NotImplementedError

    def _logits(self, samples: Any) -> Array:
        """Logarithms of p(z|x), up to a constant of each sample: (n, ...) -> (n, n_clusters_)."""
        raise NotImplementedError

    def transform(self, X: Rows) -> Array:
        """Logits of p(z|x): (n_samples, n_clusters_), from samples like those of `fit`."""
        check_is_fitted(self)
        return self._of_logits(lambda logits: logits, self._samples(X))

    def predict_proba(self, X: Rows) -> Array:
        """p(z|x), the probability of each cluster: (n_samples, n_clusters_), from samples like those of `fit`."""
        check_is_fitted(self)
        return self._of_logits(lambda logits: softmax(logits, axis=1), self._samples(X))

    def predict(self, X: Rows) -> NDArray[np.int64]:
        """The most probable cluster of each sample: (n_samples,), from samples like those of `fit`."""
        check_is_fitted(self)
        return self._of_logits(lambda logits: logits.argmax(axis=1), self._samples(X))

    def coordinates(self, X: Rows) -> Array:
        """The coordinates in which the clusters are found: (n_samples, n_dimensions_)."""
        check_is_fitted(self)
        samples = self._samples(X)
        return np.concatenate([self._points(read(samples, rows)) for rows in self._blocks(n_rows(samples))])

    def score(self, X: Rows, y: object = None) -> float:
        """Mean Jensen-Shannon divergence between a cluster and the rest on `X`: log 2 minus the DML loss.

        It is in nats, from 0 to log 2; higher is better. With a single cluster it is 0.
        """
        return float(divergence(self.predict_proba(X)).mean())

    def describe(self, X: Any = None) -> pd.DataFrame:
        """Describe what sets each cluster apart, as a data frame.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns), optional
            The fitted rows or new rows, with any columns, including columns that were not fitted. If the fitted columns
            are missing, the rows must be the fitted rows in the same order. Without `X`, and for images, only what
            `fit` has kept is known.

        Returns
        -------
        DataFrame
            One row per cluster: the "size", the "share" and the "typical" rows. With `X`, also a "name", the "claims"
            that it makes with the shares of rows of which they are true, all "differences" from the rest, a "rule" of
            at most three conditions with its "precision" and "recall", and the "borderline" rows, whose second most
            probable cluster is close. Rows are identified by the index of the frame, a column of ids or names, or their
            number.

        Examples
        --------
        >>> import neuralbayes as nb
        >>> from sklearn.datasets import load_iris
        >>> flowers = load_iris(as_frame=True).data
        >>> clusterer = nb.InformationClusterer(3, random_state=0).fit(flowers)
        >>> clusterer.describe(flowers).set_index("name").loc["low petal length", "rule"]
        'petal length (cm) ≤ 2'
        """
        import pandas as pd

        from neuralbayes.explain.description import describe

        check_is_fitted(self)
        if X is None:
            sizes = np.bincount(self.labels_, minlength=self.n_clusters_)
            typical = [rows[rows >= 0].tolist() for rows in self.prototypes_]
            frame = pd.DataFrame({"size": sizes, "share": sizes / len(self.labels_), "typical": typical})
            return frame.rename_axis("cluster")
        if self.image_shape_ is not None:
            raise ValueError("`X` must be None for images, which have no columns to describe clusters by")
        frame = named_frame(self, X)
        rows = fitted_columns(self, frame)
        if rows is None and len(frame) != len(self.labels_):
            raise ValueError(
                f"`X` must have the {len(column_names(self))} columns that were fitted, or the "
                f"{len(self.labels_):,} rows that were, got shape {frame.shape}"
            )
        p_zx = None if rows is None else self.predict_proba(rows)
        labels = self.labels_ if p_zx is None else p_zx.argmax(axis=1)
        return describe(frame, labels, n_clusters=self.n_clusters_, proba=p_zx, fitted=column_names(self)).to_frame()

    def _keep(self, samples: Samples, weight: Array | None = None, named: Array | None = None) -> NDArray[np.intp]:
        """Keep labels, prior and typical rows; returns the clusters by size, the order that parameters are to have."""
        labels, total = np.empty(n_rows(samples), np.int64), np.zeros(self.n_clusters_)
        n_blocks = -(-len(labels) // self._block)
        with progress(n_blocks, description="blocks labelled", enabled=bool(self.verbose)) as display:
            for rows in self._blocks(len(labels)):
                p_zx = softmax(self._logits(read(samples, rows)), axis=1)
                total += p_zx.sum(axis=0) if weight is None else weight[rows] @ p_zx
                labels[rows] = p_zx.argmax(axis=1)
                display.advance(samples=len(rows))
        order = np.argsort(-total, kind="stable")  # the largest first; those in `named` keep their numbers
        if named is not None and len(named):
            others = order[~np.isin(order, named)]
            order = np.arange(self.n_clusters_)
            order[~np.isin(order, named)] = others
        self.labels_ = np.argsort(order)[labels]
        self.prior_ = total[order] / (len(labels) if weight is None else weight.sum())
        self._keep_typical(samples)
        return order

    def _keep_typical(self, samples: Samples) -> None:
        """Keep the most typical rows of each cluster, padded with -1, from at most `TYPICAL_OF` rows."""
        from neuralbayes.explain.prototypes import at_most, rank_members

        rows = at_most(np.arange(len(self.labels_)), TYPICAL_OF, np.random.default_rng(0))
        points = self._points(read(samples, rows))
        self.prototypes_ = np.full((self.n_clusters_, N_TYPICAL), -1, np.int64)
        for k, ranked in enumerate(rank_members(points, self.labels_[rows], self.n_clusters_)):
            self.prototypes_[k, : len(ranked)] = rows[ranked[:N_TYPICAL]]

    def _samples(self, X: Rows) -> Samples:
        """Convert `X` to samples of the fitted kind."""
        return as_fitted(self, X, self.image_shape_)

    def _of_logits(self, function: Callable[[Array], Array], samples: Samples) -> Array:
        """Apply `function` to the logits of all samples, one block at a time, in the precision of the rows."""
        single = hasattr(samples, "dtype") and samples.dtype != np.float64
        parts = []
        for rows in self._blocks(n_rows(samples)):
            found = function(self._logits(read(samples, rows)))
            parts.append(found.astype(np.float32) if single and found.dtype.kind == "f" else found)
        return np.concatenate(parts)

    def _blocks(self, n: int) -> Iterator[NDArray[np.int64]]:
        """The indices of n samples, one block at a time."""
        return (np.arange(start, min(start + self._block, n)) for start in range(0, max(n, 1), self._block))

    def _checks(self) -> dict[str, bool]:
        n, k = len(self.labels_), self.n_clusters_
        vectorizer: Any = getattr(self, "vectorizer_", None)
        return super()._checks() | {
            "n_clusters_": is_count(k),
            "labels_": is_array(self.labels_, "i", None, low=0, high=k - 1),
            "prior_": is_array(self.prior_, "f", k),
            "separation_": is_array(self.separation_, "f", k),
            "prototypes_": is_array(self.prototypes_, "i", k, None, low=-1, high=n - 1),
            "n_dimensions_": is_count(self.n_dimensions_),
            "selection_": is_table(getattr(self, "selection_", {})),
            "loss_curve_": is_list(self.loss_curve_),
            "n_iter_": is_count(self.n_iter_),
            "vectorizer_": vectorizer is None or len(vectorizer.get_feature_names_out()) == self.n_features_in_,
        }

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)
