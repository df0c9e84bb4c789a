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
from neuralbayes.clusters.known import least_number
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
    """Cluster rows, embeddings or images by maximising mutual information.

    A network is trained to maximise I(x; z), while p(z|x) must be robust to small adversarial steps. The result depends
    on the start:

    - Rows start from the consensus of several mixtures and a neighbour graph, in units of the noise between neighbours.
    - Images start from several states per cluster. With "mlp", p(z|x) must also be robust to small rotations, scalings,
      shears and shifts; states are merged so that few images change their cluster when transformed in this way, and the
      merged clusters are trained. If such transformations matter, as for the hands of a clock, pass the pixels as rows
      with ``start="states"``, which merges states that are often neighbours.

    The cost is dominated by the `max_iter` training steps and hardly depends on the number of samples. To certify that
    clusters are disjoint, use :class:`neuralbayes.ManifoldLabeler`.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. For rows, "auto" splits them wherever held-out rows confirm a valley of low density. For
        images, it maximises the entropy of the clusters minus the variation of information between images and their
        transformed versions, and uses the smallest number within 2 % of the maximum. From states without
        transformations, it uses the number at the largest drop in affinity between merges.
    start : {"auto", "consensus", "states"}, default="auto"
        How the training starts. "auto" is "consensus" for rows and "states" for images.
    network : "mlp" or torch.nn.Module, default="mlp"
        "mlp" has two hidden layers on the principal components of the rows or pixels. Your own module receives
        normalised float32 rows (n, n_features) or images (n, C, H, W) and returns features of any shape (n, ...). It is
        copied, and trained together with a linear output layer.
    objective : Objective, optional
        The objective to minimise, in addition to the adversarial smoothness. By default :class:`neuralbayes.MIM`,
        version 1, with alpha = 3. The target of p(z) is the cluster sizes of the consensus; if images are
        transformed, those of the merged states, unless these are nearly equal; and otherwise uniform.
    n_neighbors : int, default=15
        Number of neighbours that determines the length of adversarial steps and, unless images are transformed, which
        states are merged.
    n_states : int, optional
        Number of states that are merged into clusters, if the training starts from states. By default eight per
        cluster, but not more than one per 100 samples, and at least four per cluster. "auto" assumes ten clusters.
    n_hidden : int, optional
        Units in each hidden layer of "mlp". By default 512; from a consensus, twice the number of columns or clusters,
        limited to between 128 and 512.
    max_iter : int, optional
        Number of training steps. From a consensus, the default is 16 epochs, limited to between 360 and 600 steps, a
        quarter of which fit the network to the consensus. From states, it is 100 epochs, limited to between 2000 and
        6000 steps, half of which train the states.
    max_samples : int, default=60000
        Number of random samples that the network is trained on. All samples are labelled.
    max_clusters : int, optional
        Largest number that "auto" considers. By default 200, or 20 from states.
    standardize : bool, default=False
        Divide each column by its standard deviation, or by the difference of its values if it has only two. Use this if
        columns have different units.
    vectorizer : TableVectorizer, "auto" or None, default="auto"
        Turns data frames into standardised numbers. "auto" uses a :class:`neuralbayes.TableVectorizer` for data frames
        with categories, dates, text or missing cells.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" divides rows by their lengths, so only their directions matter.
    n_components : int, default=100
        Number of columns to which sparse rows are reduced by a truncated SVD. Sparse rows with fewer columns are made
        dense.
    random_state : int, RandomState instance or None, default=None
    device : str, default="auto"
        Device: "cpu", "cuda", "cuda:1" or "mps"; "auto" uses the best one available. Votes and neighbours are computed
        on the CPU.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, from 0 to n_clusters_ - 1, numbered from the largest to the smallest. Known classes keep
        their numbers, and clusters found by `update` come last. After `update`, the labels of the new samples.
    n_clusters_ : int
    n_states_ : int
    states_ : ndarray of shape (n_samples,)
        Most probable state of each sample within its cluster.
    hierarchy_ : ndarray of shape (n_states_ - 1, 4)
        Linkage matrix of ``scipy.cluster.hierarchy`` that records how the states were merged. The height of a merge
        is the log ratio between the affinity of the closest pair and that of the merged pair. `cut` uses the
        matrix, and :class:`neuralbayes.plot.DendrogramDisplay` draws it.
    n_dimensions_ : int
        Number of principal components.
    n_components_ : int
        Number of columns to which sparse rows were reduced, or 0.
    effective_metric_ : str
        Metric used in `fit`.
    prior_ : ndarray of shape (n_clusters_,)
        p(z) over the training samples.
    separation_ : ndarray of shape (n_clusters_,)
        Jensen-Shannon divergence in nats between each cluster and the rest, with p(z|x) averaged over the neighbours of
        x. It is log 2 = 0.693 if no neighbour belongs to another cluster, and 0 if there is only one cluster.
    objective_ : float
        Mean loss over the last tenth of the training steps.
    loss_curve_ : list of float
        Mean loss of each tenth of the steps, first for the start, then for the clusters.
    n_iter_ : int
    n_iter_start_ : int
        Number of steps for the start.
    selection_ : dict of lists
        Only with ``n_clusters="auto"``. From a consensus: the number of "rows" that each valley divides, and its
        "p_value". From transformed images: "n_clusters" and the "information" H - V in nats, entropy minus variation
        of information. From other states: "n_clusters", the affinity "ratio" of the two clusters that would be merged
        next compared with chance, and the "jump" from the previous merge.
    module_ : torch.nn.Module
        The network. It maps rows (n, n_features), or images (n, C, H, W) in [0, 1], to logits (n, n_clusters_).
    typical_center_, typical_scale_, typical_reference_, typical_spacing_, typical_floor_, typical_scores_
        Reference of `typicality`: up to 20,000 training samples and the scores of up to 5,000.
    typical_length_ : float
        Common length of all rows, as embeddings often have; `typicality` then uses angles and checks the length. 0 if
        lengths differ.
    typical_components_ : ndarray of shape (n_features_in_, n_dimensions)
        Principal components in which `typicality` measures distances, if you pass your own network.
    image_shape_ : list of int or None
        [H, W, C] if images were fitted.
    vectorizer_ : TableVectorizer
        The fitted vectorizer, if a data frame was turned into numbers. `n_features_in_` and `feature_names_in_` then
        refer to the numbers.
    n_samples_seen_ : int
        Number of samples with positive weight seen by `fit` and `update`.
    reservoir_ : ndarray of shape (n, n_dimensions_)
        Random sample of up to 20,000 of them, in the coordinates of the network, which `update` uses. Only with "mlp".
    features_from_ : str
        Name of the network whose features were fitted, if the command line fitted the model.
    feature_scales_ : list of float
        Factor of each feature space, if there are several.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    neuralbayes.ManifoldLabeler : Certified disjoint manifolds.
    neuralbayes.MIM : The objective.
    neuralbayes.load : Load a saved model.

    Notes
    -----
    See :doc:`/clustering` for benchmarks. Large fits use bfloat16 if it is faster, so the same seed may give different
    labels on another machine.

    Examples
    --------
    Clusters are matched with cultivars one to one to compute the accuracy:

    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> clusterer = nb.InformationClusterer(3, standardize=True, random_state=0).fit(X)
    >>> nb.clustering_accuracy(clusterer.labels_, y) > 0.9
    True
    >>> clusterer.predict(1000.0 + X[:2], reject=0.05)  # unlike any wine in the table
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
            Numbers, dense or sparse. Memory-mapped arrays are not copied, and float16 is converted to float32 in
            blocks. Images are an array of shape (n, H, W), (n, H, W, C) or (n, C, H, W), uint8 or floating point in
            [0, 1], or anything that :func:`neuralbayes.pretrain` accepts.
        y : ignored
        features : array-like of shape (n_samples, n_features), or a list of such, optional
            Features to cluster by, such as those of a pretrained network. `X` may then be any collection of as many
            samples, such as photographs or sentences. Several feature spaces have equal weight, whatever their sizes
            and units. `predict` and similar methods then expect features, too.
        sample_weight : array-like of shape (n_samples,), optional
            Relative weight of each sample: a sample of weight 2 counts as two of weight 1, and a sample of weight 0 is
            labelled but not fitted. Weights affect `prior_`, the coordinates, the consensus and the training. They do
            not affect distances between neighbours, `typicality`, or the graph. "auto" uses rows drawn in proportion to
            their weights.
        known : array-like of int of shape (n_samples,), optional
            Known classes of some samples, numbered from 0, and -1 for unknown ones. A class keeps its number, and
            almost all of its known samples keep their label. Other clusters get the remaining numbers. "auto" returns
            at least as many clusters as there are class numbers.
        must_link, cannot_link : array-like of int of shape (n_pairs, 2), optional
            Pairs of indices of samples that belong to the same cluster, or to different clusters. Links are transitive.
            Most pairs, but not necessarily all, are labelled accordingly.

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
        n_states = self.n_states or clusters.default_states(n_clusters or max(10, least), len(fitted))
        if not voted and n_states < least:
            raise ValueError(f"`n_states` must be at least {least}, the number of clusters, got {n_states}")
        body = self.network if isinstance(self.network, nn.Module) else None
        rng = check_random_state(self.random_state)
        seen = np.zeros(len(samples), bool)  # samples for the training of the network
        rows, reduced = fit_row_layer(self, samples, fitted, weight, rng)
        seen[reduced] = True
        self.effective_metric_ = self.metric
        self.n_components_ = 0 if rows.reduction is None else rows.reduction.shape[1]

        def read(indices: NDArray[np.int64]) -> Tensor:
            seen[fitted[indices]] = True
            taken: Tensor = rows(tensor_of(samples, fitted[indices]))
            return taken

        settings: dict[str, Any] = {
            "body": body,
            "n_hidden": self.n_hidden or (None if voted else 512),
            "max_iter": self.max_iter,
            "max_samples": self.max_samples,
            "max_clusters": min(self.max_clusters or (200 if voted else 20), len(fitted)),
            "n_neighbors": self.n_neighbors,
            "objective": self.objective,
            "standardize": self.standardize and not hasattr(self, "vectorizer_"),
            "hints": hints,
            "rng": rng,
            "verbose": bool(self.verbose),
        }
        found: Any
        if voted:
            found = clusters.fit_from_consensus(read, len(fitted), n_clusters, **settings)
        else:
            found = clusters.fit_images(read, len(fitted), n_clusters, n_states=n_states, **settings)
        found.network.rows = rows
        order = self._keep_merged(
            found.network, found.merging, samples, bool(self.verbose), weight=weight, named=hints.classes
        )
        coordinates, typicality = clusters.fit_typicality(
            lambda indices: tensor_of(samples, fitted[indices]), seen[fitted], found.network, 64, rng
        )
        self._keep_typicality(coordinates, typicality)
        self._keep_reservoir(samples, fitted, weight, rng)
        self.separation_: Array = found.separation[order]
        trained = found.trained
        self.objective_, self.loss_curve_ = trained.objective, trained.loss_curve
        self.n_iter_, self.n_iter_start_ = trained.n_iter, trained.n_iter_start
        inner = found.network.network
        self.n_dimensions_ = found.n_dimensions
        own = isinstance(inner, WithStates)
        self.n_hidden_ = (self.n_hidden or 512) if own else inner[0].out_features
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
            raise ValueError("'typical_components_' is required with your own network, and not allowed otherwise")

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
