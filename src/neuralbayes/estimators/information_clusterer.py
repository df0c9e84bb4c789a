"""Clusters that may touch, as a scikit-learn clusterer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from neuralbayes.clusters.known import Hints, least_number, make_hints
from neuralbayes.clusters.rows import TABLE_ROWS, Fit, fit_rows, kind_of
from neuralbayes.clusters.space import Frame, fit_reduction
from neuralbayes.clusters.update import MAX_RESERVOIR
from neuralbayes.estimators.clusterer import CONSTRAINTS, POSITIVE
from neuralbayes.estimators.inputs import Rows, n_rows, read
from neuralbayes.estimators.merged_states import MergedStates
from neuralbayes.estimators.saving import is_array, is_list, is_number

if TYPE_CHECKING:
    from torch import nn

    from neuralbayes.data.vectorizer import TableVectorizer
    from neuralbayes.objectives import Objective

TYPICAL_ROWS = 25_000  # maximum number of samples that `typicality` is fitted to


class InformationClusterer(MergedStates):
    """Cluster rows, embeddings or images by the consensus of simple methods, and by mutual information.

    What the samples are decides the way, and `kind_` says it:

    - *Tables*: mixtures in four scalings of the columns vote, and p(z|x) is the softmax of a quadratic function, fitted
      to their consensus. This takes a fraction of a second.
    - *Embeddings*, of equal length or of many dense columns of one scale: k-means and a graph vote, and a network
      improves their consensus: it maximises I(x; z), while p(z|x) must be robust to small adversarial steps.
    - *Pixels*, many columns that resemble their neighbours: votes as for tables and embeddings, and a network.
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

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, numbered by p(z), the largest first. Known classes keep their numbers, and
        clusters found by `update` come last. After `update`, the labels of the new samples.
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
    n_states_, states_, membership_ : int, ndarray of shape (n_samples,), ndarray of shape (n_states_, n_clusters_)
        The states that are merged into clusters, the most probable one of each sample within its cluster, and 1 where a
        state belongs to a cluster.
    hierarchy_ : ndarray of shape (n_states_ - 1, 4)
        Linkage matrix of ``scipy.cluster.hierarchy`` that records how the states were merged, for `cut` and
        :class:`neuralbayes.plot.DendrogramDisplay`. The height of a merge is the log ratio between the affinity of the
        closest pair and that of the merged pair.
    frame_, posterior_, typicality_ : Frame, Posterior, Typicality
        From rows to the `n_dimensions_` coordinates; from these to p(z|x), by a quadratic softmax or a network, as
        ``posterior_.kind`` says; and what `typicality` measures by.
    prototypes_ : ndarray of shape (n_clusters_, 5)
        Numbers of typical samples of each cluster, padded with -1.
    loss_curve_, n_iter_, n_iter_start_ : list of float, int, int
        Mean loss of each tenth of the steps of a network, first for the start, then for the clusters; the number of
        steps, and how many of them were for the start.
    vectorizer_ : TableVectorizer
        The fitted vectorizer, if a data frame was turned into numbers, whose names are `feature_names_in_` then.
    n_samples_seen_ : int
        Number of samples with positive weight seen by `fit` and `update`.

    See Also
    --------
    neuralbayes.ManifoldLabeler : Certified disjoint manifolds.
    neuralbayes.load : Load a saved model.

    Notes
    -----
    Large fits of images use bfloat16 if it is faster, so the same seed may give other labels on another machine.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS | {
        "metric": [StrOptions({"euclidean", "cosine"})],
        "vectorizer": [*CONSTRAINTS["vectorizer"], StrOptions({"auto"})],
        "n_components": [POSITIVE],
        "network": [HasMethods(["forward", "state_dict"]), None],
        "objective": [HasMethods(["sample_term", "prior_term"]), None],
        "target_prior": [StrOptions({"auto", "uniform"})],
        "n_states": [Interval(Integral, 2, None, closed="left"), None],
        "n_hidden": [POSITIVE, None],
        "max_iter": [POSITIVE, None],
        "max_clusters": [*CONSTRAINTS["max_clusters"], None],
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
        """
        if self.device != "auto":
            from neuralbayes.system.devices import named_device

            named_device(self.device)  # raises before anything is computed
        self._forget()
        samples = self._samples_to_fit(X, features)
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
        found = fit(samples, n_clusters, hints, fitted, rng, weight)
        self.frame_, self.n_dimensions_, self.verdict_ = found.frame, found.frame.basis.shape[-1], found.verdict
        if n_clusters is None:
            self.selection_ = found.selection
        self._set_clusters(found.posterior, found.membership, found.merging, found.separation, found.trained)
        self.stability_, self.cluster_stability_ = found.stability, found.cluster_stability
        order = self._keep(samples, weight, hints.classes)
        self.membership_, self.separation_ = self.membership_[:, order], self.separation_[order]
        if self.cluster_stability_ is not None:
            self.cluster_stability_ = self.cluster_stability_[order]
        self.states_ = self._states(samples)
        ordinary = np.sort(rng.permutation(fitted)[:TYPICAL_ROWS])
        self.typicality_ = self._fit_typicality(self._typical_rows(read(samples, ordinary)), rng)
        self.n_samples_seen_ = len(fitted)
        if self.network is None:  # keep a random sample of the fitted data, with its weights, for `update`
            share = None if weight is None else weight[fitted] / weight[fitted].sum()
            drawn = np.sort(rng.choice(fitted, min(len(fitted), MAX_RESERVOIR), replace=False, p=share))
            self.reservoir_, self.reservoir_rows_ = self._points_and_rows(samples, drawn)
        if (n_found := len(np.unique(self.labels_))) < self.n_clusters_:
            trained = f", or train for more than {self.n_iter_} steps" if self.posterior_.kind == "network" else ""
            warnings.warn(
                f"`n_clusters` is {self.n_clusters_}, but the samples fill only {n_found}: many are equal, or too "
                f"similar. Ask for at most {n_found}{trained}",
                ConvergenceWarning,
                stacklevel=3,
            )
        return self

    def _fit_rows(
        self, samples: Any, n_clusters: int | None, hints: Hints, fitted: NDArray[np.int64], rng: Any, weight: Any
    ) -> Fit:
        """Reduce sparse rows, draw the rows to fit, and fit them."""
        if self.n_states is not None:
            raise ValueError(f"`n_states` is for images, and must be None here, got {self.n_states}")
        unit, reduction, framed = self.metric == "cosine", None, hasattr(self, "vectorizer_")
        if sp.issparse(samples) and samples.shape[1] > self.n_components:
            drawn = np.sort(rng.permutation(fitted)[: self.max_samples])
            reduction = fit_reduction(samples, drawn, self.n_components, rng, weight=weight, unit=unit)
        nothing = np.zeros(samples.shape[1] if reduction is None else reduction.shape[1])
        dense = Frame.unbounded(nothing, nothing).after(reduction, unit)
        few = np.sort(rng.permutation(fitted)[:TABLE_ROWS])
        found = kind_of(dense.features(read(samples, few)), self.metric)
        self.kind_, self.kind_reason_ = ("table", "a data frame") if framed else found
        few_rows = self.kind_ == "table" and self.network is None and self.objective is None
        chosen = hints.draw(len(fitted), min(self.max_samples, TABLE_ROWS) if few_rows else self.max_samples, rng)
        rows = dense.features(read(samples, fitted[chosen]))
        if self.kind_ == "embeddings" and not unit:
            unit, rows = True, rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-300)
        result = fit_rows(
            rows,
            n_clusters,
            kind=self.kind_,
            keep_scale=framed,
            network=self.network,
            n_hidden=self.n_hidden,
            max_clusters=min(self.max_clusters or 200, len(chosen)),
            hints=hints.of(chosen),
            **self._training(rng),
        )
        return replace(result, frame=result.frame.after(reduction, unit))

    def _fit_images(
        self, samples: Any, n_clusters: int | None, hints: Hints, fitted: NDArray[np.int64], rng: Any, _: object
    ) -> Fit:
        import torch

        from neuralbayes.clusters.images import fit_images

        self.kind_, self.kind_reason_ = "images", f"images of shape {self.image_shape_}"
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

    def _checks(self) -> dict[str, bool]:
        k = self.n_clusters_
        return super()._checks() | {
            "verdict_": self.verdict_ in ("clusters", "segments", "none"),
            "stability_": self.stability_ is None or is_number(self.stability_),
            "cluster_stability_": self.cluster_stability_ is None or is_array(self.cluster_stability_, "f", k),
            "kind_": self.kind_ in ("table", "embeddings", "pixels", "images"),
            "kind_reason_": isinstance(self.kind_reason_, str),
            "class_names_": is_list(getattr(self, "class_names_", []), lambda name: isinstance(name, str)),
            "feature_scales_": is_list(getattr(self, "feature_scales_", [])),
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
