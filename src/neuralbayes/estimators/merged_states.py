"""Clusters that are merged states: p(z|x), rejection by typicality, cuts, and updates with new samples."""

from __future__ import annotations

import copy
import math
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from neuralbayes.clusters.merging import Merging, check_linkage, cut, separation
from neuralbayes.clusters.posterior import Network, Posterior, Quadratic, Trained
from neuralbayes.clusters.space import Frame
from neuralbayes.clusters.typicality import Typicality
from neuralbayes.clusters.update import find_new_groups, mixed_reservoir, update_clusters, updated_stability
from neuralbayes.estimators.clusterer import Array, Clusterer
from neuralbayes.estimators.inputs import (
    Rows,
    Samples,
    as_images,
    as_rows,
    check_directions,
    features_for,
    n_rows,
    read,
    stack_spaces,
)
from neuralbayes.estimators.saving import Arrays, filled, is_array, is_count
from neuralbayes.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from torch import nn


class MergedStates(Clusterer):
    """A clusterer with p(state|x), a membership of states in clusters, and a typicality."""

    frame_: Frame
    posterior_: Network | Quadratic
    typicality_: Typicality
    reservoir_: Array
    reservoir_rows_: Array
    n_samples_seen_: int
    verdict_: str
    stability_: float | None
    cluster_stability_: Array | None
    n_neighbors: int
    max_clusters: int | None
    random_state: int | np.random.RandomState | None
    device: str
    verbose: bool
    metric: Literal["euclidean", "cosine"]
    kind_: Literal["table", "embeddings", "pixels", "images"]

    def _samples_to_fit(self, X: Rows, features: Any) -> Samples:
        """Check the samples, and record their shape or columns."""
        if features is not None:
            X, scales = features_for(X, features)
            if scales is not None:
                self.feature_scales_ = scales
        images = as_images(X)
        self.image_shape_ = None if images is None else list(images.shape)
        if images is None:
            samples: Samples = as_rows(self, X, reset=True)
            if self.metric == "cosine":
                check_directions(samples)
            return samples
        self.n_features_in_ = math.prod(images.shape)
        if self.metric != "euclidean":
            raise ValueError(f"`metric` is for rows, and must be 'euclidean' here, got {self.metric!r}")
        return images

    def _samples(self, X: Rows) -> Samples:
        scales = getattr(self, "feature_scales_", None)
        samples = super()._samples(X if scales is None else stack_spaces(X, scales)[0])
        if self.metric == "cosine" and isinstance(samples, np.ndarray | sp.csr_array):
            check_directions(samples)
        return samples

    def _points(self, samples: Any) -> Array:
        return self.frame_(samples if self.image_shape_ is None else samples.reshape(len(samples), -1))

    def _state_logits(self, points: Array) -> Array:
        if self.image_shape_ is not None and self.frame_.basis.ndim == 1:
            height, width, channels = self.image_shape_
            points = points.reshape(len(points), channels, height, width)
        return self.posterior_.logits(points)

    def _merged(self, state_logits: Array) -> Array:
        """Logarithms of p(cluster|x) from the logits of states."""
        if len(self.membership_) == self.membership_.shape[1]:  # each state is a cluster
            logits: Array = state_logits - logsumexp(state_logits, axis=1, keepdims=True)
            return np.asarray(logits[:, self.membership_.argmax(axis=0)])
        p_zx = softmax(state_logits, axis=1) @ self.membership_
        return np.asarray(np.log(p_zx.clip(np.finfo(np.float64).tiny)))

    def _logits(self, samples: Any) -> Array:
        return self._merged(self._state_logits(self._points(samples)))

    def _states(self, samples: Samples) -> NDArray[np.int64]:
        """The most probable state of each sample within its cluster."""
        if len(self.membership_) == self.membership_.shape[1]:
            return np.asarray(self.membership_.argmax(axis=0)[self.labels_], dtype=np.int64)
        states = np.empty(len(self.labels_), np.int64)
        for rows in self._blocks(len(states)):
            own = self.membership_.T[self.labels_[rows]] > 0.0
            logits = self._state_logits(self._points(read(samples, rows)))
            states[rows] = np.where(own, logits, -np.inf).argmax(axis=1)
        return states

    def predict(self, X: Rows, *, reject: float | None = None) -> NDArray[np.int64]:
        """The most probable cluster of each sample: (n_samples,), from samples like those of `fit`.

        Parameters
        ----------
        X : as in `fit`
        reject : float, optional
            Label samples -1 if their `typicality` is at most this value, which bounds the share of ordinary samples
            that are rejected. n fitted samples support values from 1 / (n + 1). By default, no sample is rejected.
        """
        check_is_fitted(self)
        if reject is not None:
            self.typicality_.check_level(reject)
        samples = self._samples(X)
        labels = self._of_logits(lambda logits: logits.argmax(axis=1), samples)
        return labels if reject is None else np.where(self._typicality(samples) <= reject, -1, labels)

    def typicality(self, X: Rows) -> NDArray[np.float64]:
        """How typical samples are of the training data, as conformal p-values: (n_samples,).

        Typicality is the share of ordinary samples that lie at least as far out, measured by distances to nearest
        neighbours. If new samples come from the distribution of the training data, at most a share a of them have a
        typicality of a or less; ``neuralbayes.clusters.typicality`` says how exactly this holds. Values are from
        1 / (n + 1) to 1, where n is the number of fitted samples, or a quarter of more than 5,000.
        """
        check_is_fitted(self)
        return self._typicality(self._samples(X))

    def _typicality(self, samples: Samples) -> NDArray[np.float64]:
        parts = (self._typical_rows(read(samples, rows)) for rows in self._blocks(n_rows(samples)))
        return np.concatenate([self.typicality_.p_values(part) for part in parts])

    def _typical_rows(self, some: Any) -> Array:
        """Rows that nothing was fitted to, except the reduction of sparse ones."""
        return self.frame_.features(some if self.image_shape_ is None else some.reshape(len(some), -1))

    def _fit_typicality(self, points: Array, rng: np.random.RandomState) -> Typicality:
        """The typicality of rows like these, as `_typical_rows` gives them."""
        standardize: bool | NDArray[np.bool_] = self.kind_ == "table"
        if hasattr(self, "vectorizer_"):  # the width of a category was chosen, that of a number was not
            standardize = np.array([len(np.unique(column)) > 2 for column in points.T])
        return Typicality.fit(points, random_state=rng, standardize=standardize)

    def _points_and_rows(self, samples: Samples, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Points and typical rows of some samples, in single precision unless these are a table, far from 0 perhaps."""
        precision = np.float64 if self.kind_ == "table" else np.float32
        points, typical = [], []
        for block in np.array_split(rows, max(1, -(-len(rows) // self._block))):
            some = read(samples, block)
            points.append(self._points(some).astype(precision))
            typical.append(self._typical_rows(some).astype(precision))
        return np.concatenate(points), np.concatenate(typical)

    def cut(self, k: int) -> NDArray[np.int64]:
        """Labels of the fitted samples for another number of clusters, without a new fit: (n_samples,).

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to `n_states_`. There are fewer if some states have no samples.

        Notes
        -----
        Labels are numbered by p(z), the largest first. Clusters of a larger `k` lie within those of a
        smaller one, and ``cut(n_clusters_)`` returns `labels_`. Other clusters merge fewer or more of the same states
        and are not trained. After `update`, the labels belong to the new samples.
        """
        check_is_fitted(self)
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= self.n_states_:
            raise ValueError(f"`k` must be a whole number from 1 to n_states_={self.n_states_}, got {k!r}")
        if k == self.n_clusters_:
            return self.labels_.copy()
        return self._clusters_of_states(int(k))[self.states_]

    def _clusters_of_states(self, k: int) -> NDArray[np.int64]:
        """The cluster of each state, of `k`, numbered by size."""
        clusters = cut(self.hierarchy_, k)
        sizes = np.bincount(clusters[self.states_], minlength=k)
        return np.argsort(np.argsort(-sizes, kind="stable"))[clusters]

    def merged_to(self, k: int, X: Rows) -> Self:
        """A copy with `k` clusters, as :meth:`cut` gives, which labels new samples; some fitted ones are `X`."""
        other = copy.copy(self)
        other.labels_, other.membership_, other.n_clusters_ = self.cut(k), np.eye(k)[self._clusters_of_states(k)], k
        other.prior_ = np.bincount(other.labels_, minlength=k) / len(other.labels_)
        points = self.coordinates(X)
        _, neighbors = nearest_neighbors(points, min(self.n_neighbors, len(points) - 1))
        other.separation_ = separation(other.predict_proba(X), neighbors)
        return other

    def _training(self, rng: np.random.RandomState) -> dict[str, Any]:
        names = ("objective", "max_iter", "n_neighbors", "device")
        return {name: getattr(self, name) for name in names} | {"rng": rng, "verbose": bool(self.verbose)}

    def _set_clusters(
        self, posterior: Posterior, membership: Array, merging: Merging, separation: Array, trained: Trained
    ) -> None:
        self.posterior_, self.membership_, self.separation_ = posterior, membership, separation
        self.n_states_, self.n_clusters_ = membership.shape
        self.hierarchy_ = merging.linkage
        self.loss_curve_, self.n_iter_, self.n_iter_start_ = trained.loss_curve, trained.n_iter, trained.n_iter_start

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def update(self, X: Rows) -> Self:
        """Continue with new samples, which may move the clusters and form new ones.

        Old labels keep their numbers and their meaning: p(z|x) is kept on a random sample of up to 20,000 samples so
        far. At least ten new samples can form a new cluster. They must be atypical, or lie among far more new samples
        than chance would suggest. And a valley of low density must separate them from the old clusters, unless they
        have hardly any old neighbours. A new cluster gets the number `n_clusters_`, which grows up to `max_clusters`
        (200).

        Parameters
        ----------
        X : as in `fit`
            New samples. Old samples need not be included.

        Returns
        -------
        self
            `labels_` and `states_` refer to `X`; `prior_` and `typicality` to all samples so far.

        Notes
        -----
        `update` requires that no network of your own was fitted. It also works on a model that was saved and loaded.
        """
        check_is_fitted(self)
        if not hasattr(self, "reservoir_"):
            raise ValueError(
                "`update` needs `network=None`: samples for a network of your own are not kept. Fit all of them again"
            )
        samples = self._samples(X)
        rng = check_random_state(self.random_state)
        old, n_seen = self.reservoir_, self.n_samples_seen_
        new, rows = self._points_and_rows(samples, np.arange(n_rows(samples)))
        labels = [self._merged(self._state_logits(x)).argmax(axis=1) for x in (old, new)]
        p_values, n_calibration = self.typicality_.p_values(rows), self.typicality_.n_calibration
        at_most = max(0, (self.max_clusters or 200) - self.n_clusters_)
        groups = find_new_groups(old, labels[0], new, labels[1], p_values, n_calibration, at_most)
        self._set_clusters(*update_clusters(self.posterior_, self.membership_, old, new, groups, **self._training(rng)))
        p_old, p_new = (softmax(self._merged(self._state_logits(x)), axis=1) for x in (old, new))
        self.labels_ = p_new.argmax(axis=1)
        self.states_ = self._states(samples)
        self.prior_ = np.average([p_old.mean(axis=0), p_new.mean(axis=0)], axis=0, weights=[n_seen, len(new)])
        if self.n_clusters_ > 1 and self.verdict_ == "none":
            self.verdict_ = "segments"
        if self.kind_ != "images":
            points, both = np.concatenate([old, new]), np.append(p_old.argmax(axis=1), self.labels_)
            again = updated_stability(points, self.kind_, both, self.n_clusters_, rng)
            self.stability_, self.cluster_stability_ = again
        from_old, from_new = mixed_reservoir(len(old), n_seen, len(new), rng)
        self.reservoir_ = np.concatenate([old[from_old], new[from_new]])
        self.reservoir_rows_ = np.concatenate([self.reservoir_rows_[from_old], rows[from_new]])
        self.n_samples_seen_ = n_seen + len(new)
        self.typicality_ = self._fit_typicality(self.reservoir_rows_, rng)
        self._keep_typical(samples)
        return self

    @property
    def module_(self) -> nn.Module:
        """The clusterer as a module of PyTorch: from rows, or images (n, C, H, W) in [0, 1], to logits."""
        import torch

        from neuralbayes.networks.states import RowLayer, StateNetwork

        frame = self.frame_
        reduction = None if frame.reduction is None else torch.from_numpy(frame.reduction)
        bounded = bool(np.isfinite(frame.lower).any())
        bounds = (torch.from_numpy(frame.lower), torch.from_numpy(frame.upper)) if bounded else None
        return StateNetwork(
            torch.from_numpy(frame.center),
            torch.from_numpy(frame.basis),
            self.posterior_.module(),
            torch.from_numpy(self.membership_).float(),
            RowLayer(reduction, unit=frame.unit, bounds=bounds),
        ).eval()

    def _part(self, name: str, arrays: Arrays, network: nn.Module | None) -> Any:
        if name == "frame_":
            return Frame.from_arrays(arrays)
        if name == "typicality_":
            return Typicality.from_arrays(arrays)
        if "offsets" in arrays:
            return Quadratic.from_arrays(arrays)
        import torch

        from neuralbayes.clusters.training import state_mlp
        from neuralbayes.networks.states import WithStates

        with torch.device("meta"):
            made: nn.Module
            if network is None:
                made = state_mlp(self.n_dimensions_, len(arrays["linear1.weight"]), self.n_states_)
            else:
                made = WithStates(copy.deepcopy(network), arrays["head.weight"].shape[1], self.n_states_)
        return Network(filled(made, arrays, network), self.device)

    def _checks(self) -> dict[str, bool]:
        m, posterior, d = self.n_states_, self.posterior_, self.n_dimensions_
        reservoir, rows = getattr(self, "reservoir_", None), getattr(self, "reservoir_rows_", None)
        check_linkage(self.hierarchy_)
        fits = isinstance(posterior, Network) or posterior.centers.shape == (m, d)
        return super()._checks() | {
            **{name: is_count(getattr(self, name)) for name in ("n_states_", "n_samples_seen_", "n_iter_start_")},
            "states_": is_array(self.states_, "i", len(self.labels_), low=0, high=m - 1),
            "membership_": is_array(self.membership_, "f", m, self.n_clusters_, low=0, high=1),
            "hierarchy_": len(self.hierarchy_) == m - 1,
            "frame_": self.frame_.basis.shape[-1] == d,
            "posterior_": fits,
            "typicality_": isinstance(self.typicality_, Typicality),
            "reservoir_": rows is None if reservoir is None else is_array(reservoir, "f", None, d),
            "reservoir_rows_": reservoir is None or is_array(rows, "f", len(reservoir), None),
        }
