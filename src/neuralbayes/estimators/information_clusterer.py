"""Clusters that may touch, as a scikit-learn clusterer."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from neuralbayes.clusters.known import Hints, least_number, make_hints
from neuralbayes.clusters.merging import Merging, check_linkage, cut, separation
from neuralbayes.clusters.number import Kind
from neuralbayes.clusters.posterior import Network, Posterior, Quadratic, Trained
from neuralbayes.clusters.rows import TABLE_ROWS, Fit, fit_rows, kind_of
from neuralbayes.clusters.space import Frame, fit_reduction
from neuralbayes.clusters.typicality import Typicality
from neuralbayes.clusters.update import (
    MAX_RESERVOIR,
    find_new_groups,
    mixed_reservoir,
    update_clusters,
    updated_stability,
)
from neuralbayes.estimators.clusterer import Array, Clusterer
from neuralbayes.estimators.inputs import (
    VECTORIZER,
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
from neuralbayes.estimators.saving import Arrays, filled, is_array, is_count, is_list, is_number
from neuralbayes.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from torch import nn

    from neuralbayes.data.vectorizer import TableVectorizer
    from neuralbayes.objectives import Objective

TYPICAL_ROWS = 25_000
"""Maximum number of samples that `typicality` is fitted to."""


class InformationClusterer(Clusterer):
    """Cluster rows, embeddings or images by the consensus of simple methods, and by mutual information.

    What the samples are decides the way, and `kind_` says it:

    - *Tables*: mixtures in four scalings of the columns vote, and p(z|x) is the softmax of a quadratic function, fitted
      to their consensus. This takes a fraction of a second.
    - *Embeddings*, which are rows of equal length or of many dense columns of one scale: k-means and a graph vote, and
      a network improves their consensus: it maximises I(x; z), while p(z|x) must be robust to small adversarial steps.
    - *Pixels*, which are many columns that resemble their neighbours: votes as for tables and embeddings, and a
      network.
    - *Images*: a network of several states per cluster is trained with the same objective, while p(z|x) must also be
      robust to small rotations, scalings, shears and shifts. States that share transformed images are merged.

    To certify that clusters are disjoint, use :class:`neuralbayes.ManifoldLabeler`.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. "auto" cuts tables wherever held-out rows confirm a valley of low density. Without valleys,
        and for embeddings, it takes the number that two halves of the rows agree about most; for images, the number
        that maximises the entropy of the clusters minus their variation of information under the transformations.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" divides rows by their lengths, so only their directions matter.
    vectorizer : TableVectorizer, "auto" or None, default="auto"
        Turns data frames into numbers. "auto" uses a :class:`neuralbayes.TableVectorizer` for data frames with
        categories, dates, text or missing cells.
    n_components : int, default=100
        Number of columns to which wider sparse rows are reduced by a truncated SVD.
    network : torch.nn.Module, optional
        Your own network, which is copied and trained together with a linear output layer. It receives normalised
        float32 rows (n, n_features) or images (n, C, H, W) and returns features of any shape (n, ...).
    objective : Objective, optional
        The objective of a network, in addition to the adversarial smoothness. By default :class:`neuralbayes.MIM`,
        version 1, with alpha = 3.
    target_prior : {"auto", "uniform"}, default="auto"
        For images: "uniform" if you know that the clusters have equal sizes.
    n_neighbors : int, default=15
        Number of neighbours that determines the length of adversarial steps and the hierarchy.
    n_states : int, optional
        For images: number of states that are merged into clusters. By default one per 100 samples, limited to four to
        eight per cluster; "auto" assumes ten clusters.
    n_hidden : int, optional
        Units in each of the two hidden layers of the network. By default 512 for images and, for rows, twice the
        number of dimensions or clusters, limited to between 128 and 512.
    max_iter : int, optional
        Number of training steps of a network. By default 16 epochs of rows, limited to 360 to 600 steps, or 100 epochs
        of images, limited to 2000 to 6000 steps.
    max_samples : int, default=60000
        Number of random samples that a network is trained on; tables need at most 10,000. All samples are labelled.
    max_clusters : int, optional
        Largest number that "auto" considers. By default 200, or 20 for images.
    random_state : int, RandomState instance or None, default=None
    device : str, default="auto"
        Device of a network: "cpu", "cuda", "cuda:1" or "mps"; "auto" uses the best one available.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, from 0 to n_clusters_ - 1, numbered from the largest to the smallest. Known classes keep
        their numbers, and clusters found by `update` come last. After `update`, the labels of the new samples.
    n_clusters_ : int
    verdict_ : {"clusters", "segments", "none"}
        "clusters" if held-out rows confirm valleys of low density between the clusters of a table, or any valley
        between embeddings; "segments" for another division, of rows that may be a continuum; "none" for one cluster,
        which "auto" returns if no division is repeatable. Images are not tested for valleys: theirs are "segments".
    stability_ : float or None
        How far two halves of the rows agree about the clusters: the adjusted mutual information of the clusters that
        each half finds. It says whether the division is found again, not whether it is right. Above 0.8 it is hardly
        ever that high without structure. None for images, where it is not measured.
    cluster_stability_ : ndarray of shape (n_clusters_,) or None
        The same for each cluster: the share of rows that both halves put into it, of the rows that either puts into it.
    kind_, kind_reason_ : str
        What the samples were taken for, and why: "table", "embeddings", "pixels" or "images".
    class_names_ : list
        Only with `known`: the names of the known classes, which are the first clusters.
    selection_ : dict of lists
        Only with ``n_clusters="auto"``: how the number was chosen. The number of "rows" that each valley divides and
        its "p_value"; or "n_clusters" and the "agreement" of halves, with the "silhouette" for tables; or, for images,
        the "information" in nats.
    prior_ : ndarray of shape (n_clusters_,)
        p(z) over the training samples.
    separation_ : ndarray of shape (n_clusters_,)
        Jensen-Shannon divergence in nats between each cluster and the rest, with p(z|x) averaged over the neighbours of
        x. It is log 2 = 0.693 if no neighbour belongs to another cluster, and 0 if there is only one cluster.
    n_states_ : int
    states_ : ndarray of shape (n_samples,)
        Most probable state of each sample within its cluster.
    membership_ : ndarray of shape (n_states_, n_clusters_)
        1 where a state belongs to a cluster, else 0.
    hierarchy_ : ndarray of shape (n_states_ - 1, 4)
        Linkage matrix of ``scipy.cluster.hierarchy`` that records how the states were merged, for `cut` and
        :class:`neuralbayes.plot.DendrogramDisplay`. The height of a merge is the log ratio between the affinity of the
        closest pair and that of the merged pair.
    frame_ : Frame
        From rows to the `n_dimensions_` coordinates that p(z|x) is a function of.
    posterior_ : Posterior
        p(z|x): a quadratic softmax or a network, as ``posterior_.kind`` says.
    typicality_ : Typicality
        What `typicality` measures by.
    prototypes_ : ndarray of shape (n_clusters_, 5)
        Numbers of typical samples of each cluster, padded with -1.
    reservoir_, reservoir_rows_ : ndarray
        Random sample of up to 20,000 rows, in the coordinates of `frame_` and in those of `typicality_`, which `update`
        uses.
    n_components_ : int
        Number of columns to which sparse rows were reduced, or 0.
    loss_curve_ : list of float
        Mean loss of each tenth of the steps of a network, first for the start, then for the clusters.
    n_iter_, n_iter_start_ : int
        Number of training steps of a network, and how many of them were for the start; 1 and 0 without a network.
    image_shape_ : list of int or None
        [H, W, C] if images were fitted.
    vectorizer_ : TableVectorizer
        The fitted vectorizer, if a data frame was turned into numbers, whose names are `feature_names_in_` then.
    n_samples_seen_ : int
        Number of samples with positive weight seen by `fit` and `update`.
    feature_scales_ : list of float
        Factor of each feature space, if there are several.

    See Also
    --------
    neuralbayes.ManifoldLabeler : Certified disjoint manifolds.
    neuralbayes.load : Load a saved model.

    Notes
    -----
    See :doc:`/benchmarks` for benchmarks. Large fits of images use bfloat16 if it is faster, so the same seed may give
    different labels on another machine.

    Examples
    --------
    Clusters are matched with cultivars one to one to compute the accuracy:

    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clusterer = nb.InformationClusterer(3, random_state=0).fit(X)
    >>> nb.clustering_accuracy(clusterer.labels_, y) > 0.9
    True
    >>> clusterer.predict(1000.0 + X[:2], reject=0.05)  # unlike any wine in the table
    array([-1, -1])
    """

    cluster_stability_: Array | None
    membership_: Array
    separation_: Array
    n_iter_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "metric": [StrOptions({"euclidean", "cosine"})],
        "vectorizer": [VECTORIZER, StrOptions({"auto"}), None],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "network": [HasMethods(["forward", "state_dict"]), None],
        "objective": [HasMethods(["sample_term", "prior_term"]), None],
        "target_prior": [StrOptions({"auto", "uniform"})],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_states": [Interval(Integral, 2, None, closed="left"), None],
        "n_hidden": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        "max_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = "auto",
        *,
        metric: Literal["euclidean", "cosine"] = "euclidean",
        vectorizer: TableVectorizer | Literal["auto"] | None = "auto",
        n_components: int = 100,
        network: nn.Module | None = None,
        objective: Objective | None = None,
        target_prior: Literal["auto", "uniform"] = "auto",
        n_neighbors: int = 15,
        n_states: int | None = None,
        n_hidden: int | None = None,
        max_iter: int | None = None,
        max_samples: int = 60_000,
        max_clusters: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.metric = metric
        self.vectorizer = vectorizer
        self.n_components = n_components
        self.network = network
        self.objective = objective
        self.target_prior = target_prior
        self.n_neighbors = n_neighbors
        self.n_states = n_states
        self.n_hidden = n_hidden
        self.max_iter = max_iter
        self.max_samples = max_samples
        self.max_clusters = max_clusters
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Rows,
        y: object = None,
        *,
        features: ArrayLike | Sequence[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None,
        known: ArrayLike | None = None,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
    ) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images
            Numbers, dense or sparse. Memory-mapped arrays are not copied. Images are an array of shape (n, H, W),
            (n, H, W, C) or (n, C, H, W), uint8 or floating point in [0, 1], or anything that
            :func:`neuralbayes.pretrain` accepts.
        y : ignored
        features : array-like of shape (n_samples, n_features), or a list of such, optional
            Features to cluster by, such as those of a pretrained network. `X` may then be any collection of as many
            samples. Several feature spaces have equal weight. `predict` and similar methods then expect features, too.
        sample_weight : array-like of shape (n_samples,), optional
            A sample of weight 2 counts as two of weight 1, and a sample of weight 0 is labelled but not fitted. Weights
            do not affect distances between neighbours, `typicality`, or the graph.
        known : array-like of shape (n_samples,), optional
            Known classes of some samples: names, with None, NaN or "" for unknown ones, or numbers from 0, with -1 for
            unknown ones. Classes are the first clusters, in the order of their names, and almost all known samples keep
            their class.
        must_link, cannot_link : array-like of int of shape (n_pairs, 2), optional
            Pairs of indices of samples that belong to the same cluster, or to different clusters. Links are transitive.
            Most pairs, but not necessarily all, are labelled accordingly.

        Returns
        -------
        self
        """
        if self.device != "auto":
            from neuralbayes.system.devices import named_device

            named_device(self.device)  # raises before anything is computed
        self._forget()
        samples = self._opened(X, features)
        every, names = make_hints(n_rows(samples), sample_weight, known, must_link, cannot_link)
        if names:
            self.class_names_ = names
        weight = every.weight
        fitted = np.arange(n_rows(samples)) if weight is None else np.flatnonzero(weight > 0.0)
        hints = every if weight is None else every.of(fitted)
        n_clusters = None if self.n_clusters == "auto" else self.n_clusters
        least = max(2, n_clusters or 1, least_number(hints, n_clusters))
        if len(fitted) < least:
            raise ValueError(f"n_samples={len(fitted)} should be >= {least} for n_clusters={self.n_clusters}.")
        rng = check_random_state(self.random_state)
        fit = self._fit_rows if self.image_shape_ is None else self._fit_images
        found = fit(samples, n_clusters, hints, fitted, weight, rng)
        self.frame_, self.n_dimensions_ = found.frame, found.frame.basis.shape[-1]
        self.verdict_ = found.verdict
        if n_clusters is None:
            self.selection_ = found.selection
        self._take(found.posterior, found.membership, found.merging, found.separation, found.trained)
        self.stability_, self.cluster_stability_ = found.stability, found.cluster_stability
        order = self._keep(samples, self.n_clusters_, bool(self.verbose), weight=weight, named=hints.classes)
        self.membership_, self.separation_ = self.membership_[:, order], self.separation_[order]
        if self.cluster_stability_ is not None:
            self.cluster_stability_ = self.cluster_stability_[order]
        self.states_ = self._states(samples)
        ordinary = np.sort(rng.permutation(fitted)[:TYPICAL_ROWS])
        self.typicality_ = self._measured(self._typical_rows(read(samples, ordinary)), rng)
        self.n_samples_seen_ = len(fitted)
        if self.network is None:  # keep a random sample of the fitted data, with its weights, for `update`
            share = None if weight is None else weight[fitted] / weight[fitted].sum()
            drawn = np.sort(rng.choice(fitted, min(len(fitted), MAX_RESERVOIR), replace=False, p=share))
            self.reservoir_, self.reservoir_rows_ = self._kept(samples, drawn)
        if (n_found := len(np.unique(self.labels_))) < self.n_clusters_:
            trained = f", or train for more than {self.n_iter_} steps" if self.posterior_.kind == "network" else ""
            warnings.warn(
                f"`n_clusters` is {self.n_clusters_}, but the samples fill only {n_found}: many are equal, or too "
                f"similar. Ask for at most {n_found}{trained}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _opened(self, X: Rows, features: Any) -> Samples:
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

    def _fit_rows(
        self,
        samples: Any,
        n_clusters: int | None,
        hints: Hints,
        fitted: NDArray[np.int64],
        weight: Array | None,
        rng: Any,
    ) -> Fit:
        """Reduce sparse rows, draw the rows to fit, and fit them."""
        if self.n_states is not None:
            raise ValueError(f"`n_states` is for images, and must be None here, got {self.n_states}")
        n_columns, unit, reduction = samples.shape[1], self.metric == "cosine", None
        if sp.issparse(samples) and n_columns > self.n_components:
            drawn = np.sort(rng.permutation(fitted)[: self.max_samples])
            reduction = fit_reduction(samples, drawn, self.n_components, rng, weight=weight, unit=unit)
        self.n_components_ = 0 if reduction is None else reduction.shape[1]
        nothing = np.zeros(self.n_components_ or n_columns)
        dense = Frame.unbounded(nothing, nothing).after(reduction, unit)
        few = np.sort(rng.permutation(fitted)[:TABLE_ROWS])
        kind, self.kind_reason_ = kind_of(dense.features(read(samples, few)), self.metric)
        if hasattr(self, "vectorizer_"):
            kind, self.kind_reason_ = "table", "a data frame"
        self.kind_: Kind | Literal["images"] = kind
        few_rows = kind == "table" and self.network is None and self.objective is None
        chosen = hints.draw(len(fitted), min(self.max_samples, TABLE_ROWS) if few_rows else self.max_samples, rng)
        rows = dense.features(read(samples, fitted[chosen]))
        if kind == "embeddings" and not unit:
            unit, rows = True, rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-300)
        found = fit_rows(
            rows,
            n_clusters,
            kind=kind,
            keep_scale=hasattr(self, "vectorizer_"),
            network=self.network,
            n_hidden=self.n_hidden,
            max_clusters=min(self.max_clusters or 200, len(chosen)),
            hints=hints.of(chosen),
            **self._training(rng),
        )
        return replace(found, frame=found.frame.after(reduction, unit))

    def _fit_images(
        self, samples: Any, n_clusters: int | None, hints: Hints, fitted: NDArray[np.int64], weight: object, rng: Any
    ) -> Fit:
        import torch

        from neuralbayes.clusters.images import fit_images
        from neuralbayes.system.devices import computing_on

        self.kind_, self.kind_reason_, self.n_components_ = "images", f"images of shape {self.image_shape_}", 0
        with computing_on(self.device):
            return fit_images(
                lambda indices: torch.from_numpy(read(samples, fitted[indices])),
                len(fitted),
                n_clusters,
                body=self.network,
                n_states=self.n_states,
                n_hidden=self.n_hidden or 512,
                max_samples=self.max_samples,
                max_clusters=min(self.max_clusters or 20, len(fitted)),
                target_prior=self.target_prior,
                hints=hints,
                **self._training(rng),
            )

    def _training(self, rng: np.random.RandomState) -> dict[str, Any]:
        names = ("objective", "max_iter", "n_neighbors", "device")
        return {name: getattr(self, name) for name in names} | {"rng": rng, "verbose": bool(self.verbose)}

    def _take(
        self, posterior: Posterior, membership: Array, merging: Merging, separation: Array, trained: Trained
    ) -> None:
        self.posterior_, self.membership_, self.separation_ = posterior, membership, separation
        self.n_states_, self.n_clusters_ = membership.shape
        self.hierarchy_ = merging.linkage
        self.loss_curve_, self.n_iter_, self.n_iter_start_ = trained.loss_curve, trained.n_iter, trained.n_iter_start

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
        """Return the most probable cluster of each sample.

        Parameters
        ----------
        X : as in `fit`
        reject : float, optional
            Label samples -1 if their `typicality` is at most this value, which bounds the share of ordinary samples
            that are rejected. n fitted samples support values from 1 / (n + 1). By default, no sample is rejected.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        if reject is not None:
            self.typicality_.check_level(reject)
        samples = self._samples(X)
        labels = self._labels(samples)
        return labels if reject is None else np.where(self._typicality(samples) <= reject, -1, labels)

    def typicality(self, X: Rows) -> NDArray[np.float64]:
        """Return how typical samples are of the training data, as conformal p-values.

        Typicality is the share of ordinary samples that lie at least as far out, measured by distances to nearest
        neighbours. If new samples come from the distribution of the training data, at most a share a of them have a
        typicality of a or less; ``neuralbayes.clusters.typicality`` says how exactly this holds.

        Parameters
        ----------
        X : as in `fit`

        Returns
        -------
        ndarray of shape (n_samples,)
            Values from 1 / (n + 1) to 1, where n is the number of fitted samples, or a quarter of more than 5,000.
        """
        check_is_fitted(self)
        return self._typicality(self._samples(X))

    def _typicality(self, samples: Samples) -> NDArray[np.float64]:
        parts = (self._typical_rows(read(samples, rows)) for rows in self._blocks(n_rows(samples)))
        return np.concatenate([self.typicality_.p_values(part) for part in parts])

    def _typical_rows(self, some: Any) -> Array:
        """Rows that nothing was fitted to, except the reduction of sparse ones."""
        return self.frame_.features(some if self.image_shape_ is None else some.reshape(len(some), -1))

    def _measured(self, points: Array, rng: np.random.RandomState) -> Typicality:
        """The typicality of rows like these, as `_typical_rows` gives them."""
        standardize: bool | NDArray[np.bool_] = self.kind_ == "table"
        if hasattr(self, "vectorizer_"):  # the width of a category was chosen, that of a number was not
            standardize = np.array([len(np.unique(column)) > 2 for column in points.T])
        return Typicality.fit(points, random_state=rng, standardize=standardize)

    def _kept(self, samples: Samples, rows: NDArray[np.int64]) -> tuple[Array, Array]:
        """Points and typical rows of some samples, in single precision unless these are a table, far from 0 perhaps."""
        precision = np.float64 if self.kind_ == "table" else np.float32
        points, typical = [], []
        for block in np.array_split(rows, max(1, -(-len(rows) // self._block))):
            some = read(samples, block)
            points.append(self._points(some).astype(precision))
            typical.append(self._typical_rows(some).astype(precision))
        return np.concatenate(points), np.concatenate(typical)

    def cut(self, k: int) -> NDArray[np.int64]:
        """Return labels of the fitted samples for another number of clusters, without a new fit.

        Parameters
        ----------
        k : int
            Number of clusters, from 1 to `n_states_`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from 0, numbered from the largest cluster to the smallest. There are fewer than `k` clusters if some
            states have no samples. Clusters of a larger `k` lie within those of a smaller one. ``cut(n_clusters_)``
            returns `labels_`. Other clusters merge fewer or more of the same states and are not trained. After
            `update`, the labels belong to the new samples.
        """
        check_is_fitted(self)
        if not isinstance(k, Integral) or isinstance(k, bool) or not 1 <= k <= self.n_states_:
            raise ValueError(f"`k` must be a whole number from 1 to n_states_={self.n_states_}, got {k!r}")
        if k == self.n_clusters_:
            return self.labels_.copy()
        clusters = cut(self.hierarchy_, int(k))[self.states_]
        largest_first = np.argsort(-np.bincount(clusters, minlength=int(k)), kind="stable")
        return np.argsort(largest_first)[clusters]

    def merged_to(self, k: int, X: Rows) -> Self:
        """Return a copy whose states are merged to `k` clusters, as :meth:`cut` does, and which can label new samples.

        Parameters
        ----------
        k : int
        X : as in `fit`
            Some of the fitted samples, to measure the separation of the clusters on.
        """
        labels, clusters = self.cut(k), cut(self.hierarchy_, k)
        largest_first = np.argsort(-np.bincount(clusters[self.states_], minlength=k), kind="stable")
        other = copy.copy(self)
        other.membership_ = np.eye(k)[np.argsort(largest_first)[clusters]]
        other.n_clusters_, other.labels_ = k, labels
        other.prior_ = np.bincount(labels, minlength=k) / len(labels)
        points = self.coordinates(X)
        _, neighbors = nearest_neighbors(points, min(self.n_neighbors, len(points) - 1))
        other.separation_ = separation(other.predict_proba(X), neighbors)
        return other

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def update(self, X: Rows) -> Self:
        """Continue with new samples, which may move the clusters and form new ones.

        Old labels keep their numbers and their meaning: p(z|x) is kept on `reservoir_`, a random sample of all samples
        so far. At least ten new samples can form a new cluster. They must be atypical, or lie among far more new
        samples than chance would suggest. And a valley of low density must separate them from the old clusters, unless
        they have hardly any old neighbours. A new cluster gets the number `n_clusters_`, which grows up to
        `max_clusters` (200).

        Parameters
        ----------
        X : as in `fit`
            New samples. Old samples need not be included.

        Returns
        -------
        self
            As after `fit`, except that `labels_` and `states_` refer to `X`. `prior_` and `typicality` refer to all
            samples so far.

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
        new, rows = self._kept(samples, np.arange(n_rows(samples)))
        labels = [self._merged(self._state_logits(x)).argmax(axis=1) for x in (old, new)]
        p_values, n_calibration = self.typicality_.p_values(rows), self.typicality_.n_calibration
        at_most = max(0, (self.max_clusters or 200) - self.n_clusters_)
        groups = find_new_groups(old, labels[0], new, labels[1], p_values, n_calibration, at_most)
        self._take(*update_clusters(self.posterior_, self.membership_, old, new, groups, **self._training(rng)))
        p_old, p_new = (softmax(self._merged(self._state_logits(x)), axis=1) for x in (old, new))
        self.labels_ = p_new.argmax(axis=1)
        self.states_ = self._states(samples)
        self.prior_ = np.average([p_old.mean(axis=0), p_new.mean(axis=0)], axis=0, weights=[n_seen, len(new)])
        if self.n_clusters_ > 1 and self.verdict_ == "none":
            self.verdict_ = "segments"
        points, both = np.concatenate([old, new]), np.append(p_old.argmax(axis=1), self.labels_)
        again = updated_stability(points, self.kind_, both, self.n_clusters_, rng)
        self.stability_, self.cluster_stability_ = again
        from_old, from_new = mixed_reservoir(len(old), n_seen, len(new), rng)
        self.reservoir_ = np.concatenate([old[from_old], new[from_new]])
        self.reservoir_rows_ = np.concatenate([self.reservoir_rows_[from_old], rows[from_new]])
        self.n_samples_seen_ = n_seen + len(new)
        self.typicality_ = self._measured(self.reservoir_rows_, rng)
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

    def _samples(self, X: Rows) -> Samples:
        scales = getattr(self, "feature_scales_", None)
        samples = super()._samples(X if scales is None else stack_spaces(X, scales)[0])
        if self.metric == "cosine" and isinstance(samples, np.ndarray | sp.csr_array):
            check_directions(samples)
        return samples

    def _part(self, name: str, arrays: Arrays, network: nn.Module | None) -> Any:
        if name == "frame_":
            return Frame.from_arrays(arrays)
        if name == "typicality_":
            return Typicality.from_arrays(arrays)
        if name != "posterior_":
            raise ValueError(f"{name!r} is not a fitted attribute")
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
        n, k, m, d = len(self.labels_), self.n_clusters_, self.n_states_, self.n_dimensions_
        check_linkage(self.hierarchy_)
        posterior: Any = self.posterior_
        reservoir: Any = getattr(self, "reservoir_", None)
        rows: Any = getattr(self, "reservoir_rows_", None)
        n_kept = None if reservoir is None else len(reservoir)
        of_clusters = self.cluster_stability_
        return super()._checks() | {
            "verdict_": self.verdict_ in ("clusters", "segments", "none"),
            "stability_": self.stability_ is None or is_number(self.stability_),
            "cluster_stability_": of_clusters is None or is_array(of_clusters, "f", k),
            "kind_": self.kind_ in ("table", "embeddings", "pixels", "images"),
            "kind_reason_": isinstance(self.kind_reason_, str),
            "class_names_": is_list(getattr(self, "class_names_", []), lambda name: isinstance(name, str)),
            "n_states_": is_count(m),
            "states_": is_array(self.states_, "i", n, low=0, high=m - 1),
            "membership_": is_array(self.membership_, "f", m, k, low=0, high=1),
            "hierarchy_": len(self.hierarchy_) == m - 1,
            "frame_": self.frame_.basis.shape[-1] == d,
            "posterior_": posterior.kind == "network" or posterior.centers.shape == (m, d),
            "typicality_": isinstance(self.typicality_, Typicality),
            "reservoir_": rows is None if reservoir is None else is_array(reservoir, "f", None, d),
            "reservoir_rows_": reservoir is None or is_array(rows, "f", n_kept, None),
            "n_samples_seen_": is_count(self.n_samples_seen_),
            "n_components_": is_count(self.n_components_),
            "feature_scales_": is_list(getattr(self, "feature_scales_", [])),
            "loss_curve_": is_list(self.loss_curve_),
            "n_iter_": is_count(self.n_iter_),
            "n_iter_start_": is_count(self.n_iter_start_),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
