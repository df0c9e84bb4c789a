"""Base class of the clusterers: labels, probabilities, score, description, and saving."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from neuralbayes.estimators.attributes import (
    Check,
    array,
    check_features,
    columns,
    count,
    names,
    shape_or_none,
)
from neuralbayes.estimators.inputs import Rows, Samples, as_fitted, n_rows, read
from neuralbayes.estimators.persistence import SavedEstimator
from neuralbayes.training.progress import progress

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[Any]

TYPICAL_OF, N_TYPICAL = 10_000, 5
"""Number of rows, drawn at random, among which `fit` ranks the most typical ones, and how many it keeps per cluster."""


class Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SavedEstimator):  # type: ignore[misc]
    """A clusterer with p(z|x).

    A subclass defines `_points` and `_logits`, and calls `_keep` in `fit`.
    """

    _block: ClassVar[int] = 2000
    """Samples that are read at once."""

    _fitted: ClassVar[dict[str, Check]] = {
        "labels_": array("i", 1),
        "n_clusters_": count,
        "n_dimensions_": count,
        "prior_": array("f", 1),
        "separation_": array("f", 1),
        "image_shape_": shape_or_none,
        "n_features_in_": count,
        "prototypes_": array("i", 2),
    }
    _fitted_sometimes: ClassVar[dict[str, Check]] = {
        "feature_names_in_": names,
        "selection_": columns,
        "vectorizer_": lambda value: hasattr(value, "encoders_"),  # already checked by its own reader
    }

    def _points(self, samples: Any) -> Array:
        """Coordinates of some samples, as `read` returns them: (n, ...) -> (n, n_dimensions_)."""
        raise NotImplementedError

    def _logits(self, samples: Any) -> Array:
        """Logarithms of p(z|x), up to a constant of each sample: (n, ...) -> (n, n_clusters_)."""
        raise NotImplementedError

    def transform(self, X: Rows) -> Array:
        """Return the logits of p(z|x).

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
        """
        check_is_fitted(self)
        return self._over_blocks(lambda logits: logits, self._samples(X))

    def predict_proba(self, X: Rows) -> Array:
        """Return p(z|x), the probability of each cluster.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_); rows sum to 1.
        """
        check_is_fitted(self)
        return self._over_blocks(lambda logits: softmax(logits, axis=1), self._samples(X))

    def predict(self, X: Rows) -> NDArray[np.int64]:
        """Return the most probable cluster of each sample.

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
        """Return the mean Jensen-Shannon divergence between a cluster and the rest on `X`: log 2 minus the DML loss.

        Parameters
        ----------
        X : as in `fit`
        y : ignored

        Returns
        -------
        float
            In nats, from 0 to log 2. Higher is better. It is 0 if there is a single cluster.
        """
        from neuralbayes.clusters.merging import divergence

        return float(divergence(self.predict_proba(X)).mean())

    def describe(self, X: Any = None) -> pd.DataFrame:
        """Describe what sets each cluster apart, as a data frame.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n_samples, n_columns), optional
            The fitted rows or new rows, with any columns (numbers, text, booleans, dates, missing cells), including
            columns that were not fitted. If the fitted columns are missing, the rows must be the fitted rows in the
            same order. Without `X`, and for images, only what `fit` has kept is known.

        Returns
        -------
        DataFrame
            One row per cluster: the "size", the "share" and the "typical" rows. With `X`, also a "name", the "claims"
            that it makes with the shares of rows of which they are true, all "differences" from the rest (the most
            informative first), a "rule" of at most three conditions with its "precision" and "recall", and the
            "borderline" rows, whose second most probable cluster is close. Rows are identified by the index of the
            frame, a column of ids or names, or their number.

        Examples
        --------
        >>> import neuralbayes as nb
        >>> from sklearn.datasets import load_iris
        >>> flowers = load_iris(as_frame=True).data
        >>> clusterer = nb.InformationClusterer(3, random_state=0).fit(flowers)
        >>> clusterer.describe(flowers).set_index("name").loc["low petal length", "rule"]
        'petal length (cm) ≤ 2'
        """
        import pandas

        from neuralbayes.estimators.frames import column_names, named_frame
        from neuralbayes.explain.description import describe

        check_is_fitted(self)
        if X is None:
            sizes = np.bincount(self.labels_, minlength=self.n_clusters_)
            typical = [rows[rows >= 0].tolist() for rows in self.prototypes_]
            index = pandas.RangeIndex(self.n_clusters_, name="cluster")
            kept = {"size": sizes, "share": sizes / len(self.labels_), "typical": typical}
            frame: pd.DataFrame = pandas.DataFrame(kept, index=index)
            return frame
        if self.image_shape_ is not None:
            raise ValueError("`X` must be None for images, which have no columns to describe clusters by")
        frame = named_frame(self, X)
        labels, p_zx = self._labels_of(frame)
        return describe(frame, labels, n_clusters=self.n_clusters_, proba=p_zx, fitted=column_names(self)).to_frame()

    def _labels_of(self, frame: pd.DataFrame) -> tuple[NDArray[np.int64], Array | None]:
        """Labels and probabilities of rows with the fitted columns, or the labels of the fitted rows."""
        from neuralbayes.estimators.frames import column_names, fitted_columns

        rows = fitted_columns(self, frame)
        if rows is not None:
            p_zx = self.predict_proba(rows)
            return p_zx.argmax(axis=1), p_zx
        if len(frame) != len(self.labels_):
            raise ValueError(
                f"`X` must have the {len(column_names(self))} columns that were fitted, or the "
                f"{len(self.labels_):,} rows that were, got shape {frame.shape}"
            )
        return self.labels_, None

    def _keep(
        self,
        samples: Samples,
        n_clusters: int,
        verbose: bool,
        *,
        weight: Array | None = None,
        named: NDArray[np.int64] | None = None,
    ) -> NDArray[np.intp]:
        """Label the samples, keep labels, prior and the most typical rows, and return the clusters sorted by size.

        The caller sorts its parameters in this order afterwards. Clusters in `named` keep their numbers.
        """
        total = np.zeros(n_clusters)

        def label(logits: Array, rows: NDArray[np.int64]) -> NDArray[np.int64]:
            p_zx = softmax(logits, axis=1)
            np.add(total, p_zx.sum(axis=0) if weight is None else weight[rows] @ p_zx, out=total)
            labels: NDArray[np.int64] = p_zx.argmax(axis=1)
            return labels

        labels = self._in_blocks(lambda some, rows: label(self._logits(some), rows), samples, verbose)
        order = largest_first(total, named)
        self.n_clusters_ = n_clusters
        self.labels_ = np.argsort(order)[labels]
        self.prior_ = total[order] / (len(labels) if weight is None else weight.sum())
        self._keep_typical(samples)
        return order

    def _keep_typical(self, samples: Samples) -> None:
        """Keep the most typical rows of each cluster, padded with -1, from at most `TYPICAL_OF` rows."""
        from neuralbayes.explain.prototypes import rank_members, some

        rows = some(np.arange(len(self.labels_)), TYPICAL_OF, np.random.default_rng(0))
        points = self._points(read(samples, rows))
        self.prototypes_ = np.full((self.n_clusters_, N_TYPICAL), -1, np.int64)
        for k, ranked in enumerate(rank_members(points, self.labels_[rows], self.n_clusters_)):
            self.prototypes_[k, : len(ranked)] = rows[ranked[:N_TYPICAL]]

    def _samples(self, X: Rows) -> Samples:
        """Convert `X` to samples of the fitted kind."""
        return as_fitted(self, X, self.image_shape_)

    def _labels(self, samples: Samples) -> NDArray[np.int64]:
        return self._over_blocks(lambda logits: logits.argmax(axis=1), samples)

    def _over_blocks(self, function: Callable[[Array], Array], samples: Samples) -> Array:
        """Apply `function` to the logits of all samples, one block at a time, in the precision of the rows."""
        single = hasattr(samples, "dtype") and samples.dtype != np.float64

        def of_block(some: Any, rows: NDArray[np.int64]) -> Array:
            found = function(self._logits(some))
            return found.astype(np.float32) if single and found.dtype.kind == "f" else found

        return self._in_blocks(of_block, samples)

    def _in_blocks(
        self, function: Callable[[Any, NDArray[np.int64]], Array], samples: Samples, verbose: bool = False
    ) -> Array:
        """Apply `function` to all samples and their indices, one block at a time."""
        n = n_rows(samples)
        blocks = [np.arange(start, min(start + self._block, n)) for start in range(0, max(n, 1), self._block)]
        parts = []
        with progress(len(blocks), description="blocks labelled", enabled=verbose) as display:
            for rows in blocks:
                parts.append(function(read(samples, rows), rows))
                display.advance(samples=len(rows))
        return np.concatenate(parts)

    def _check_fitted(self, weights: Mapping[str, Any]) -> None:
        check_features(self)
        vectorizer = getattr(self, "vectorizer_", None)
        if vectorizer is not None and len(vectorizer.get_feature_names_out()) != self.n_features_in_:
            raise ValueError(f"'vectorizer_' must give {self.n_features_in_} columns")
        for name in ("prior_", "separation_"):
            if getattr(self, name).shape != (self.n_clusters_,):
                raise ValueError(f"{name!r} must have a value for each of {self.n_clusters_} clusters")
        if not ((self.labels_ >= 0) & (self.labels_ < self.n_clusters_)).all():
            raise ValueError(f"'labels_' must be from 0 to {self.n_clusters_ - 1}")
        if (
            len(self.prototypes_) != self.n_clusters_
            or not ((self.prototypes_ >= -1) & (self.prototypes_ < len(self.labels_))).all()
        ):
            raise ValueError(f"'prototypes_' must be rows, from -1 to {len(self.labels_) - 1}, of each cluster")

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)


def largest_first(sizes: Array, named: NDArray[np.int64] | None = None) -> NDArray[np.intp]:
    """Clusters sorted by their size, the largest first; those in `named` keep their numbers.

    Examples
    --------
    >>> largest_first(np.array([0.1, 0.6, 0.3])), largest_first(np.array([0.1, 0.6, 0.3]), np.array([0]))
    (array([1, 2, 0]), array([0, 1, 2]))
    """
    order = np.argsort(-sizes, kind="stable")
    if named is not None and len(named):
        others = order[~np.isin(order, named)]
        order = np.arange(len(order))
        order[~np.isin(order, named)] = others
    return order
