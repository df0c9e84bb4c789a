"""Clusters that may touch, by mutual information, as a scikit-learn clusterer."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from torch import Tensor, nn

from neuralbayes import clusters
from neuralbayes.clusters.hints import least_number
from neuralbayes.estimators.attributes import Check, count, numbers, one_of
from neuralbayes.estimators.clusterer import Array, Samples, tensor_of
from neuralbayes.estimators.feature_spaces import features_for, stack_spaces
from neuralbayes.estimators.inputs import Rows, SparseRows, as_any_rows, as_images, check_directions
from neuralbayes.estimators.row_layers import METRICS, fit_row_layer
from neuralbayes.estimators.sample_hints import as_hints
from neuralbayes.estimators.updatable_clusterer import UpdatableClusterer
from neuralbayes.estimators.vectorized import VECTORIZER
from neuralbayes.networks.rows import RowLayer
from neuralbayes.networks.states import StateNetwork, WithStates
from neuralbayes.objectives import Objective
from neuralbayes.system.devices import on_own_device

if TYPE_CHECKING:
    from neuralbayes.estimators.table_vectorizer import TableVectorizer


class InformationClusterer(UpdatableClusterer):
    """Cluster rows, embeddings or images by maximising the mutual information of their clusters.

    A network maximises I(x; z) while p(z|x) must not change under the worst small step from any sample. Where it starts
    from decides which clusters it ends with. Rows start from the consensus of simple methods (mixtures and a graph) in
    units of their noise: no such method is right on all tables, and the network improves on what they agree on. Images
    start from states, several for each cluster, of which those that are often neighbours are merged; with "mlp",
    p(z|x) must not change either where an image is turned, stretched, slanted or shifted a little. Where that matters,
    as for the hands of a clock, give pixels as rows, with ``start="states"``. Most of the cost is `max_iter` steps,
    whatever the number of samples. For groups with a gap between them, :class:`neuralbayes.ManifoldLabeler` gives a
    certificate.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. From a consensus, "auto" cuts the rows in two, again and again, where held-out rows confirm
        a valley; from states, it takes the number at the largest drop in neighbour affinity.
    start : {"auto", "consensus", "states"}, default="auto"
        Where the network starts from. "auto" is "consensus" for rows and "states" for images.
    network : "mlp" or torch.nn.Module, default="mlp"
        "mlp" has two hidden layers on the principal components of the rows or pixels. A module of your own gets rows
        (n, n_features) or images (n, C, H, W), normalised, in float32, and returns features of any shape (n, ...). It
        is copied and trained together with a linear layer to the states.
    objective : Objective, optional
        What is minimised beside the change of p(z|x) under the worst small step, by default
        :class:`neuralbayes.MIM` of version 1 with alpha = 3; from a consensus, with its sizes as the target of p(z).
    n_init : int, default=1
        Networks that are trained, of which the loss chooses the best. From states with "auto" these are trainings of
        the states, one of which becomes clusters.
    n_neighbors : int, default=15
        Neighbours whose distance is the unit of the worst small step, and by which states are merged.
    n_states : int, optional
        From states: how many are merged into clusters, by default four for each cluster, 40 with "auto".
    n_hidden : int, optional
        Units of each hidden layer of "mlp". By default 512; from a consensus twice the number of columns or clusters,
        but from 128 to 512.
    max_iter : int, optional
        Number of steps. From a consensus a quarter of them teach the network the votes: by default 16 epochs, but from
        360 to 600. From states half of them are for the states: by default 100 epochs, but from 2000 to 6000.
    max_samples : int, default=60000
        Samples that the network is trained on, drawn at random. All are labelled.
    max_clusters : int, optional
        Largest number that "auto" considers, by default 200; from states 20.
    standardize : bool, default=False
        Divide each column of rows by its standard deviation first, those with two values by their difference. Use it
        where columns have different units.
    vectorizer : TableVectorizer, "auto" or None, default="auto"
        What turns data frames into numbers, standardised. "auto" takes a :class:`neuralbayes.TableVectorizer` for those
        that hold more than finite numbers: categories, dates, text, missing cells.
    metric : {"euclidean", "cosine"}, default="euclidean"
        With "cosine", rows are divided by their lengths first, so that only their directions matter.
    n_components : int, default=100
        Sparse rows of more columns are reduced to so many by a truncated SVD. Those of fewer are taken as dense rows.
    random_state : int, RandomState instance or None, default=None
    device : str, default="auto"
        Where to compute: "cpu", "cuda", "cuda:1" or "mps"; "auto" is the best one there is. Votes and neighbours are
        found on the CPU.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, from 0 to n_clusters_ - 1, the largest first; known classes have their own numbers, and
        clusters that `update` found follow. After `update` these are the labels of its samples.
    n_clusters_ : int
    n_states_ : int
    states_ : ndarray of shape (n_samples,)
        The most probable state of each sample among those of its cluster.
    hierarchy_ : ndarray of shape (n_states_ - 1, 4)
        How the states were merged, as a linkage matrix of :mod:`scipy.cluster.hierarchy`. The height is the logarithm
        of how many times less often than the closest pair the two are neighbours. `cut` uses it, and
        :class:`neuralbayes.plot.DendrogramDisplay` draws it.
    n_dimensions_ : int
        Principal components that were taken.
    n_components_ : int
        Columns that sparse rows were reduced to; 0 where they were not.
    effective_metric_ : str
        The metric of the fit.
    prior_ : ndarray of shape (n_clusters_,)
        p(z) over the training samples.
    separation_ : ndarray of shape (n_clusters_,)
        Jensen-Shannon divergence in nats of each cluster from the rest, with p(z|x) averaged over the neighbours of x:
        log 2 = 0.693 where no neighbour belongs to another cluster. With one cluster there is no rest: 0.
    objective_ : float
        The loss of the clusters over the last tenth of their steps.
    loss_curve_ : list of float
        The loss of each tenth of the steps for the start, then for the clusters.
    n_iter_ : int
    n_iter_start_ : int
        Steps that were for the start: the votes, or the states.
    selection_ : dict of lists
        With ``n_clusters="auto"``. From a consensus: "rows" that each valley divides, and its "p_value". From states:
        "n_clusters", "ratio", how many times as often as by chance the two clusters that would be merged next are
        neighbours, and "jump", how much less that is than for the pair merged before.
    module_ : torch.nn.Module
        The network, from rows (n, n_features), or images (n, C, H, W) in [0, 1], to logits (n, n_clusters_).
    typical_center_, typical_scale_, typical_reference_, typical_spacing_, typical_floor_, typical_scores_
        What `typicality` compares a sample with: at most 20,000 training samples, and the scores of at most 5,000.
    typical_length_ : float
        The length of all rows where they have one, as embeddings do: `typicality` then goes by angles, and by whether
        a row has that length. 0 where lengths differ.
    typical_components_ : ndarray of shape (n_features_in_, n_dimensions)
        With a network of your own: the principal components in which `typicality` measures distances.
    image_shape_ : list of int or None
        [H, W, C] where images were fitted.
    vectorizer_ : TableVectorizer
        Where a data frame was turned into numbers; `n_features_in_` and `feature_names_in_` are then those of the
        numbers.
    n_samples_seen_ : int
        Samples that were fitted and came by `update`, without those of weight 0.
    reservoir_ : ndarray of shape (n, n_dimensions_)
        With "mlp": a random sample of these, at most 20,000, as the network takes them, which `update` goes by.
    features_from_ : str
        Where the command line fitted to features: what they are features of.
    feature_scales_ : list of float
        With several feature spaces: what each is multiplied by.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    neuralbayes.ManifoldLabeler : Disjoint groups, with a certificate.
    neuralbayes.MIM : The objective.
    neuralbayes.load : Reads what `save` wrote.

    Notes
    -----
    See :doc:`/clustering`. Large fits run in bfloat16 where that works and is faster: the same seed may then give other
    labels on another machine.

    Examples
    --------
    The accuracy is that of the best match of clusters and cultivars:

    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clusterer = nb.InformationClusterer(3, standardize=True, random_state=0).fit(X)
    >>> nb.baselines.clustering_accuracy(clusterer.labels_, y) > 0.9
    True
    >>> clusterer.predict(1000.0 + X[:2], reject=0.05)  # like no wine that was seen
    array([-1, -1])
    """

    _fitted: ClassVar[dict[str, Check]] = UpdatableClusterer._fitted | {
        "n_network_features_": count,
        "n_components_": count,
        "effective_metric_": one_of(*METRICS),
    }

    _fitted_sometimes: ClassVar[dict[str, Check]] = UpdatableClusterer._fitted_sometimes | {
        "feature_scales_": numbers,
        "features_from_": lambda value: isinstance(value, str),
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "network": [StrOptions({"mlp"}), nn.Module],
        "start": [StrOptions({"auto", "consensus", "states"})],
        "objective": [Objective, None],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_states": [Interval(Integral, 2, None, closed="left"), None],
        "n_hidden": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        "max_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "standardize": ["boolean"],
        "vectorizer": [VECTORIZER, StrOptions({"auto"}), None],
        "metric": [StrOptions(set(METRICS))],
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = "auto",
        *,
        network: Literal["mlp"] | nn.Module = "mlp",
        start: Literal["auto", "consensus", "states"] = "auto",
        objective: Objective | None = None,
        n_init: int = 1,
        n_neighbors: int = 15,
        n_states: int | None = None,
        n_hidden: int | None = None,
        max_iter: int | None = None,
        max_samples: int = 60_000,
        max_clusters: int | None = None,
        standardize: bool = False,
        vectorizer: TableVectorizer | Literal["auto"] | None = "auto",
        metric: Literal["euclidean", "cosine"] = "euclidean",
        n_components: int = 100,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.network = network
        self.start = start
        self.objective = objective
        self.n_init = n_init
        self.n_neighbors = n_neighbors
        self.n_states = n_states
        self.n_hidden = n_hidden
        self.max_iter = max_iter
        self.max_samples = max_samples
        self.max_clusters = max_clusters
        self.standardize = standardize
        self.vectorizer = vectorizer
        self.metric = metric
        self.n_components = n_components
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    @on_own_device
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
            Numbers, dense or sparse; a memory-mapped array is not copied, and float16 is computed with in float32.
            Images are an array of shape (n, H, W), (n, H, W, C) or (n, C, H, W), uint8 or floating point in [0, 1], or
            what :func:`neuralbayes.pretrain` takes.
        y : ignored
        features : array-like of shape (n_samples, n_features), or a list of such, optional
            What to cluster by in the place of `X`, such as the features of a pretrained network; `X` may then be
            anything with as many samples, photographs or sentences. Several feature spaces count the same, whatever
            their sizes and units. `predict` and the like take features, too.
        sample_weight : array-like of shape (n_samples,), optional
            How often each sample counts, in proportion: a sample of weight 2 counts as two of weight 1, one of weight 0
            is labelled but not fitted. `prior_`, the coordinates, the votes and training heed weights. Distances to
            neighbours do not, for a sample is no neighbour of itself; nor do `typicality` and the graph, which is one
            vote of several. "auto" goes by rows drawn in proportion to their weights.
        known : array-like of int of shape (n_samples,), optional
            The classes of some samples, from 0 on, -1 where unknown. A class keeps its number: as a rule its samples
            are labelled so. Clusters that are no known class get the numbers that are left, and "auto" takes no fewer
            clusters than the largest class needs.
        must_link, cannot_link : array-like of int of shape (n_pairs, 2), optional
            Indices of samples that belong to one cluster, or to different ones. Those that are linked to one and the
            same sample are linked, too. Most pairs will be labelled so; in which cluster is not said.

        Returns
        -------
        self
        """
        self._forget()
        if features is not None:
            X, scales = features_for(X, features)
            if scales is not None:
                self.feature_scales_ = scales
        images = as_images(X)
        samples = as_any_rows(self, X, reset=True) if images is None else images
        self.image_shape_ = None if images is None else list(images.shape)
        if images is not None:
            self.n_features_in_ = math.prod(images.shape)
            if self.standardize:
                raise ValueError("`standardize` is for rows, and must be False here, got True")
            if self.metric != "euclidean":
                raise ValueError(f"`metric` is for rows, and must be 'euclidean' here, got {self.metric!r}")
        n_clusters = None if self.n_clusters == "auto" else self.n_clusters
        weight, hints, fitted = as_hints(len(samples), sample_weight, known, must_link, cannot_link)
        least = max(2, n_clusters or 1, least_number(hints, n_clusters))
        if len(fitted) < least:
            raise ValueError(f"n_samples={len(fitted)} should be >= {least} for n_clusters={self.n_clusters}.")
        voted = self.start == "consensus" or (self.start == "auto" and images is None)
        if voted and self.n_states is not None:
            raise ValueError(f"`n_states` is for start='states', and must be None here, got {self.n_states}")
        options = clusters.ClusterOptions(
            n_clusters=n_clusters,
            n_states=self.n_states or clusters.N_STATES * (n_clusters or max(10, least)),
            max_clusters=min(self.max_clusters or (200 if voted else 20), len(fitted)),
            n_init=self.n_init,
            n_neighbors=self.n_neighbors,
            n_hidden=self.n_hidden or (0 if voted else 512),
            max_iter=self.max_iter or (0 if voted else clusters.default_steps(len(fitted))),
            max_samples=self.max_samples,
            standardize=self.standardize and not hasattr(self, "vectorizer_"),
            verbose=bool(self.verbose),
            objective=self.objective,
            hints=hints,
        )
        if options.n_states < least:
            raise ValueError(f"`n_states` must be at least {least}, the number of clusters, got {options.n_states}")
        body = self.network if isinstance(self.network, nn.Module) else None
        rng = check_random_state(self.random_state)
        seen = np.zeros(len(samples), bool)  # what the network is trained on
        rows, reduced = fit_row_layer(self, samples, fitted, weight, rng)
        seen[reduced] = True
        self.effective_metric_ = self.metric
        self.n_components_ = 0 if rows.reduction is None else rows.reduction.shape[1]

        def read(indices: NDArray[np.int64]) -> Tensor:
            seen[fitted[indices]] = True
            taken: Tensor = rows(tensor_of(samples, fitted[indices]))
            return taken

        find = clusters.fit_from_consensus if voted else clusters.fit_clusters
        found = find(read, len(fitted), body, options, rng)
        found.network.rows = rows
        order = self._keep_merged(
            found.network, found.merging, samples, options.verbose, weight=weight, named=hints.classes
        )
        coordinates, typicality = clusters.fit_typicality(
            lambda indices: tensor_of(samples, fitted[indices]), seen[fitted], found.network, options.n_dimensions, rng
        )
        self._keep_typicality(coordinates, typicality)
        self._keep_reservoir(samples, fitted, weight, rng)
        self.separation_: Array = found.separation[order]
        self.objective_, self.loss_curve_ = found.objective, found.loss_curve
        self.n_iter_, self.n_iter_start_ = found.n_iter, found.n_iter_start
        self.n_hidden_, self.n_dimensions_ = found.n_hidden, found.n_dimensions
        inner = found.network.network
        self.n_network_features_ = inner.head.in_features if isinstance(inner, WithStates) else 0
        if n_clusters is None:
            self.selection_ = found.selection
        return self

    def _samples(self, X: Rows) -> Samples:
        scales = getattr(self, "feature_scales_", None)
        samples = super()._samples(X if scales is None else stack_spaces(X, scales))
        if self.effective_metric_ == "cosine" and isinstance(samples, np.ndarray | SparseRows):
            check_directions(samples)
        return samples

    def _check_fitted(self, weights: Mapping[str, Tensor]) -> None:
        super()._check_fitted(weights)
        components = getattr(self, "typical_components_", None)
        if (components is None) == bool(self.n_network_features_):
            raise ValueError("'typical_components_' must be there with a network of one's own, and else not")

    def _make_module(self, body: nn.Module | None) -> nn.Module:
        reduction = None
        if self.n_components_:
            reduction = torch.empty(self.n_features_in_, self.n_components_, dtype=torch.float64)
        rows = RowLayer(reduction, unit=self.effective_metric_ == "cosine")
        n_features, rank = self.n_components_ or self.n_features_in_, self.n_dimensions_
        center = torch.empty(n_features, dtype=torch.float64)
        network: nn.Module
        if body is not None:
            basis = torch.empty(n_features, dtype=torch.float64)
            network = WithStates(copy.deepcopy(body), self.n_network_features_, self.n_states_)
        else:
            basis = torch.empty(n_features, rank, dtype=torch.float64)
            network = clusters.state_mlp(rank, self.n_hidden_, self.n_states_)
        membership = torch.empty(self.n_states_, self.n_clusters_)
        return StateNetwork(center, basis, network, membership, rows).eval().requires_grad_(False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
