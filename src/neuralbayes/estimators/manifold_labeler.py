"""Disjoint manifold labelling as a scikit-learn clusterer."""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from neuralbayes.bayes import LOG_2, js_divergence
from neuralbayes.clusters.clustering import (
    BLOCK,
    N_STATES,
    ClusterOptions,
    Clusters,
    default_steps,
    fit_clusters,
    state_mlp,
)
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
from neuralbayes.estimators.inputs import Rows, as_fitted, as_images, as_rows
from neuralbayes.estimators.persistence import SavedEstimator
from neuralbayes.manifolds.certificate import CERTIFIED
from neuralbayes.manifolds.labeling import (
    Geometry,
    Labeling,
    Options,
    certified,
    fit_states,
    logits,
    select,
    single_state,
)
from neuralbayes.networks.sines import SineNetwork
from neuralbayes.networks.states import StateNetwork, WithStates
from neuralbayes.training.progress import progress

Array = NDArray[Any]

FEW_NEIGHBORS = 8
"""With 5, "auto" went wrong on three of the ten sets of `data.toys`, a seed each; with 8 it was right on these."""


class ManifoldLabeler(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SavedEstimator):  # type: ignore[misc]
    """Label the manifolds that data lie on, and say whether they are disjoint.

    **Rows.** A network is trained with the DML objective and a smoothness term (section 4 of the paper) from several
    starts, of which the objective on rows held out chooses one. It labels new points, gives p(z|x), and certifies each
    state: `separation_` is log 2 for a state that no walk between neighbouring points leaves. The cost is linear in the
    number of rows.

    **Images, and rows that touch** (`network`). Manifolds of images are not disjoint: a 4 can be drawn into a 9. A
    network with several states for each cluster is trained to tell much about x and to keep p(z|x) from changing under
    the worst small step, states that are often neighbours are merged, and the clusters are trained on. Most of the cost
    is `max_iter` steps, whatever the number of images.

    Parameters
    ----------
    n_clusters : int or "auto", default=2
        Number of clusters. Of rows, "auto" takes the largest number that are all certified disjoint and that resamples
        find again, which is 1 where nothing is; of images, the number from which on those that would be merged are
        neighbours much less often than those that were. See `max_clusters`.
    network : "mlp" or torch.nn.Module, optional
        For images, by default "mlp": two hidden layers on the principal components of the pixels. Your own module gets
        float32 images (n, C, H, W), normalised, and returns features of any shape (n, ...); it is copied, and trained
        together with a linear layer to the states. For rows, which it gets as (n, n_features), it asks for clusters
        that may touch in the place of disjoint manifolds.
    beta : float, default=3e-4
        Of rows without `network`: weight of the smoothness term, in units of what K disjoint manifolds would not have
        for free.
    n_init : int, optional
        Starts, of which the objective takes the best. By default 8, which train together; with `network` or images 1.
        With "auto" these are starts of the states, one of which becomes clusters.
    n_neighbors : int, default=15
        Neighbours that a point is joined to. Fewer, such as 8, tell apart manifolds that nearly touch, more keep one
        whole that is thinly sampled; with 5 thin ones fall apart.
    n_states : int, optional
        With `network` or images: states that are merged to clusters, by default four for each, 40 with "auto".
    n_hidden : int, optional
        Units of a hidden layer, by default 256; of "mlp" 512.
    max_iter : int, optional
        Most steps from each start, by default 60, where held-out rows may end it earlier. With `network` or images
        all are done, half of them for the states and half for the clusters: by default 2000, from 15,000 images on
        6000, and between in proportion.
    tol : float, default=1e-3
        Of rows without `network`: improvement of the held-out objective that counts as one.
    max_samples : int, optional
        Samples that the network is trained on, drawn at random, by default 2000; with `network` or images 60,000. All
        are labelled. Where there are twice as many rows, as many others judge it. A manifold should have some dozens
        of rows among them.
    max_clusters : int, optional
        Largest number that "auto" tries, by default 8, of images 20. Where there are more groups of rows, that many
        states are certified but not found again; if no smaller number is, they are what you get, with a warning.
    standardize : bool, default=False
        Divide each column of rows by its standard deviation first. Wanted where columns have different units, not
        where distances mean something already.
    random_state : int, RandomState instance or None, default=None
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each sample, from 0 to n_clusters_ - 1, the largest first.
    n_clusters_ : int
    n_dimensions_ : int
        Dimension of the span of the data, or of the principal components that were taken.
    prior_ : ndarray of shape (n_clusters_,)
        p(z) over the training samples.
    separation_ : ndarray of shape (n_clusters_,)
        Jensen-Shannon divergence in nats of each cluster from the rest. Of rows, on some held out after a long random
        walk between neighbours: log 2 = 0.693 where the state is disjoint from the rest, less the more it is a cut
        through something connected. Equal rows count once. With `network` or images, of p(z|x) averaged over the
        neighbours of x: how seldom they are of another cluster. With one cluster there is no rest: 0.
    null_separation_ : float
        The separation in nats that the best division of connected rows, Gaussian with the size and covariance of `X`,
        exceeds with a probability of 1 %; 0 where no state came near being certified, and with `network` or images.
    disjoint_ : ndarray of shape (n_clusters_,), bool
        Whether a state is certified: `separation_` is at least 90 % of log 2 and above `null_separation_`, also on rows
        that the fit has not seen and without columns whose values have gaps by nature. With `network` or images
        False, since nothing is certified.
    discrete_columns_ : list of int
        Columns such as booleans, codes and ids that make the states alone, so that these are not certified.
    objective_ : float
        DML + beta R_c on rows held out; with `network` or images the loss of the clusters over the last tenth of
        their steps.
    loss_curve_ : list of float
        The best objective on rows held out, every fifth step; with `network` or images the loss of each tenth of the
        steps for the states, then for the clusters.
    n_iter_ : int
    n_iter_states_ : int
        With `network` or images: those of `n_iter_` that were for the states; the others were for the clusters.
    selection_ : dict of lists
        With ``n_clusters="auto"``: "n_clusters", "objective", "separation" and "stability" of each number tried; with
        `network` or images "n_clusters", "ratio", how many times as often as by chance the two clusters that would be
        merged next are neighbours, and "jump", how much less that is than for those merged before.
    module_ : torch.nn.Module
        The network, from (n, n_features), or images (n, C, H, W) in [0, 1], to logits (n, n_clusters_).
    image_shape_ : list of int or None
        (H, W, C) where images were fitted.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    neuralbayes.DML : The objective.
    neuralbayes.load : Reads what `save` wrote.

    Notes
    -----
    The paper regularises along random directions with a noise scale and a weight tuned for each data set. Here the
    differences are taken between neighbours, which adapts both; see :doc:`/labeling`, and :doc:`/images` and
    :doc:`/clustering` for clusters of images. Large fits of these run in bfloat16 where that works and is faster: the
    same seed may then give other labels on another machine.

    Examples
    --------
    >>> from neuralbayes import ManifoldLabeler
    >>> from neuralbayes.data.toys import make_unequal
    >>> X, y = make_unequal(random_state=0)  # two moons, one with a tenth of the points of the other
    >>> labeler = ManifoldLabeler(n_clusters="auto", random_state=0).fit(X)
    >>> labeler.n_clusters_, bool(labeler.disjoint_.all())
    (2, True)
    >>> labeler.predict([[0.0, 1.0], [1.0, -0.5]])
    array([0, 1])

    Images; the accuracy is that of the best match of clusters and digits:

    >>> import neuralbayes as nb
    >>> digits = nb.datasets.load("digits").train
    >>> labeler = ManifoldLabeler(10, max_iter=400, random_state=0).fit(digits.images)
    >>> nb.baselines.clustering_accuracy(labeler.labels_, digits.labels) > 0.7
    True
    """

    _fitted: ClassVar[dict[str, Check]] = {
        "labels_": array("i", 1),
        "n_clusters_": count,
        "n_dimensions_": count,
        "prior_": array("f", 1),
        "separation_": array("f", 1),
        "null_separation_": number,
        "disjoint_": array("b", 1),
        "discrete_columns_": numbers,
        "objective_": number,
        "loss_curve_": numbers,
        "n_iter_": count,
        "n_hidden_": count,
        "image_shape_": shape_or_none,
        "n_features_in_": count,
    }
    _fitted_sometimes: ClassVar[dict[str, Check]] = {
        "feature_names_in_": names,
        "n_iter_states_": count,
        "n_states_": count,
        "n_network_features_": count,
        "selection_": columns,
    }

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "network": [StrOptions({"mlp"}), nn.Module, None],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_states": [Interval(Integral, 2, None, closed="left"), None],
        "n_hidden": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_samples": [Interval(Integral, 2, None, closed="left"), None],
        "max_clusters": [Interval(Integral, 2, None, closed="left"), None],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 2,
        *,
        network: Literal["mlp"] | nn.Module | None = None,
        beta: float = 3e-4,
        n_init: int | None = None,
        n_neighbors: int = 15,
        n_states: int | None = None,
        n_hidden: int | None = None,
        max_iter: int | None = None,
        tol: float = 1e-3,
        max_samples: int | None = None,
        max_clusters: int | None = None,
        standardize: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.network = network
        self.beta = beta
        self.n_init = n_init
        self.n_neighbors = n_neighbors
        self.n_states = n_states
        self.n_hidden = n_hidden
        self.max_iter = max_iter
        self.tol = tol
        self.max_samples = max_samples
        self.max_clusters = max_clusters
        self.standardize = standardize
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Rows, y: object = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images
            Numbers; a memory-mapped array is not copied. Images are an array of shape (n, H, W), (n, H, W, C) or
            (n, C, H, W), uint8 or floating point in [0, 1], or what :func:`neuralbayes.pretrain` takes.
        y : ignored

        Returns
        -------
        self
        """
        self._forget()
        images = as_images(X)
        samples = as_rows(self, X, reset=True) if images is None else images
        self.image_shape_ = None if images is None else list(images.shape)
        if images is not None:
            self.n_features_in_ = math.prod(images.shape)
        least = 1 if self.n_clusters == "auto" else self.n_clusters
        if len(samples) < least:
            raise ValueError(f"n_samples={len(samples)} should be >= n_clusters={least}.")
        rng = check_random_state(self.random_state)
        if self.network is None and isinstance(samples, np.ndarray):
            self._fit_manifolds(samples, rng)
        else:
            self._fit_clusters(samples, rng)
        return self

    def _fit_manifolds(self, X: Array, rng: np.random.RandomState) -> None:
        """Disjoint manifolds of rows."""
        self._refuse("n_states", "is for images, and for rows with a `network`")
        options = Options(
            beta=self.beta,
            n_init=self.n_init or 8,
            n_neighbors=self.n_neighbors,
            n_hidden=self.n_hidden or 256,
            max_iter=self.max_iter or 60,
            tol=self.tol,
            max_samples=self.max_samples or 2000,
            standardize=self.standardize,
            verbose=bool(self.verbose),
        )
        n_states = 1 if self.n_clusters == "auto" else self.n_clusters
        with threadpool_limits(1):  # the sample is small: threads would spend their time waiting for each other
            geometry = Geometry(X, options, rng)
            if n_states > 1 and not geometry.basis.any():
                raise ValueError(f"X has a single distinct row, but n_clusters={n_states} needs at least as many.")
            if self.n_clusters == "auto":
                found, self.selection_ = select(X, geometry, min(self._most, len(X)), options, rng)
            elif n_states == 1:
                found = single_state(geometry)
            else:
                found = certified(fit_states(geometry, n_states, options, rng), X, geometry, options, rng)
        p_zx = softmax(logits(found.network, X, options.verbose), axis=1)
        order = self._keep(found, p_zx)
        with torch.no_grad():
            found.network.head.copy_(found.network.head[:, torch.from_numpy(order)])
        self.n_hidden_, self.n_dimensions_ = options.n_hidden, found.network.basis.shape[1]
        if self.n_clusters == "auto":
            self._warn_of_selection()
        elif n_states > 1 and not self.disjoint_.all():
            self._warn_of_states()

    def _fit_clusters(self, samples: Array | ImageSource, rng: np.random.RandomState) -> None:
        """Clusters of images, or of rows, that may touch."""
        for name in ("beta", "tol", *(() if self.image_shape_ is None else ("standardize",))):
            self._refuse(name, "is for rows" if name == "standardize" else "is for rows without a `network`")
        if len(samples) < 2:
            raise ValueError(f"X must hold at least 2 images, got {len(samples)}")
        n_clusters = None if self.n_clusters == "auto" else self.n_clusters
        options = ClusterOptions(
            n_clusters=n_clusters,
            n_states=self.n_states or (N_STATES * n_clusters if n_clusters else 10 * N_STATES),
            max_clusters=self._most,
            n_init=self.n_init or 1,
            n_neighbors=self.n_neighbors,
            n_hidden=self.n_hidden or 512,
            max_iter=self.max_iter or default_steps(len(samples)),
            max_samples=self.max_samples or 60_000,
            standardize=self.standardize,
            verbose=bool(self.verbose),
        )
        if options.n_states < (n_clusters or 2):
            raise ValueError(f"`n_states` must be at least n_clusters={n_clusters}, got {options.n_states}")
        body = self.network if isinstance(self.network, nn.Module) else None
        found = fit_clusters(self._reader(samples), len(samples), body, options, rng)
        p_zx = softmax(_outputs(found.network, self._reader(samples), len(samples), options.verbose), axis=1)
        order = self._keep(found, p_zx)
        found.network.membership = found.network.membership[:, torch.from_numpy(order)]
        self.n_hidden_, self.n_states_ = options.n_hidden, options.n_states
        self.n_iter_states_ = found.n_iter_states
        self.n_dimensions_ = found.n_dimensions
        inner = found.network.network
        self.n_network_features_ = inner.head.in_features if isinstance(inner, WithStates) else 0
        if n_clusters is None:
            tried = range(2, min(options.max_clusters, options.n_states - 1) + 1)
            self.selection_ = {
                "n_clusters": list(tried),
                "ratio": [float(found.merging.ratios[-(n - 1)]) for n in tried],
                "jump": [float(found.merging.jumps()[n - 2]) for n in tried],
            }

    def _keep(self, found: Labeling | Clusters, p_zx: Array) -> NDArray[np.intp]:
        """Take over what was found, with the clusters in the order that is returned: the largest first."""
        prior = p_zx.mean(axis=0, dtype=np.float64)
        order = np.argsort(-prior, kind="stable")
        self.module_: Any = found.network.eval().requires_grad_(False)
        self.n_clusters_ = len(order)
        self.labels_ = p_zx[:, order].argmax(axis=1)
        self.prior_ = prior[order]
        self.separation_ = found.separation[order]
        self.disjoint_ = found.disjoint[order]
        self.null_separation_ = found.null if isinstance(found, Labeling) else 0.0
        self.discrete_columns_ = list(found.columns) if isinstance(found, Labeling) else []
        self.objective_ = found.objective
        self.loss_curve_ = found.loss_curve
        self.n_iter_ = found.n_iter
        return order

    @property
    def _most(self) -> int:
        """Clusters that "auto" tries at most."""
        return self.max_clusters or (8 if self.image_shape_ is None else 20)

    def _refuse(self, name: str, why: str) -> None:
        """Raise where a parameter is set that does nothing here."""
        default = inspect.signature(type(self)).parameters[name].default
        if getattr(self, name) != default:
            raise ValueError(f"`{name}` {why}, and must be {default!r} here, got {getattr(self, name)!r}")

    def _reader(self, samples: Array | ImageSource) -> Callable[[NDArray[np.int64]], Tensor]:
        """From indices to what the network takes before it is normalised."""
        if isinstance(samples, np.ndarray):
            return lambda indices: torch.from_numpy(np.asarray(samples[indices]))
        return lambda indices: torch.from_numpy(samples.read(indices)).permute(0, 3, 1, 2).float() / 255.0

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
        samples = as_fitted(self, X, self.image_shape_)
        if isinstance(self.module_, SineNetwork) and isinstance(samples, np.ndarray):
            return logits(self.module_, samples)
        values = _outputs(self.module_, self._reader(samples), len(samples))
        return values.astype(samples.dtype) if isinstance(samples, np.ndarray) else values

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
            In nats, from 0 to log 2, higher is better; 0 where there is a single state.
        """
        p_zx = torch.from_numpy(self.predict_proba(X))
        return float(js_divergence(p_zx).mean()) if self.n_clusters_ > 1 else 0.0

    def _check_fitted(self, weights: Mapping[str, Tensor]) -> None:
        check_features(self)
        for name in ("prior_", "separation_", "disjoint_"):
            if getattr(self, name).shape != (self.n_clusters_,):
                raise ValueError(f"{name!r} must have a value for each of {self.n_clusters_} clusters")
        if not ((self.labels_ >= 0) & (self.labels_ < self.n_clusters_)).all():
            raise ValueError(f"'labels_' must be from 0 to {self.n_clusters_ - 1}")

    def _make_module(self, body: nn.Module | None) -> nn.Module:
        n_features, rank, n_clusters = self.n_features_in_, self.n_dimensions_, self.n_clusters_
        center = torch.empty(n_features, dtype=torch.float64)
        if not hasattr(self, "n_states_"):  # what was fitted, whatever the parameters have been set to since
            basis = torch.empty(n_features, rank, dtype=torch.float64)
            frequency = torch.empty(rank, self.n_hidden_, dtype=torch.float64)
            phase = torch.empty(self.n_hidden_, dtype=torch.float64)
            return SineNetwork(center, basis, frequency, phase, n_clusters).requires_grad_(False)
        network: nn.Module
        if body is not None:
            basis = torch.empty(n_features, dtype=torch.float64)
            network = WithStates(copy.deepcopy(body), self.n_network_features_, self.n_states_)
        else:
            basis = torch.empty(n_features, rank, dtype=torch.float64)
            network = state_mlp(rank, self.n_hidden_, self.n_states_)
        membership = torch.empty(self.n_states_, n_clusters)
        return StateNetwork(center, basis, network, membership).eval().requires_grad_(False)

    def _named_columns(self) -> str:
        names = getattr(self, "feature_names_in_", None)
        return ", ".join(f"x{j}" if names is None else str(names[j]) for j in self.discrete_columns_)

    def _warn_of_states(self) -> None:
        """Say which states are not what was asked for, why that may be, and what to do."""
        if self.discrete_columns_:
            _warn(
                f"The states are not certified as disjoint: they are told apart by {self._named_columns()}, whose "
                "values have gaps by nature, and not by the other columns. Fit without it to see what the others hold."
            )
            return
        empty = np.flatnonzero(np.bincount(self.labels_, minlength=self.n_clusters_) == 0)
        if len(empty):
            cause = f"{len(empty)} of {self.n_clusters_} states got no rows"
            remedy = f"ask for n_clusters={self.n_clusters_ - len(empty)} or fewer"
        elif (self.separation_ >= CERTIFIED * LOG_2).all():
            cause = (
                f"connected rows of this number and covariance reach {self.null_separation_ / LOG_2:.0%} of log 2 as "
                "their separation too"
            )
            remedy = "give more rows, or more neighbours"
        else:
            weak = ", ".join(f"{k} ({self.separation_[k] / LOG_2:.0%})" for k in np.flatnonzero(~self.disjoint_))
            cause = (
                f"states {weak} keep less than {CERTIFIED:.0%} of log 2 as their separation: they cut through "
                "something connected, or two manifolds are in one state"
            )
            remedy = (
                "try fewer clusters, more rows, or where manifolds nearly touch fewer neighbours, but not too few "
                f"(n_neighbors={FEW_NEIGHBORS}; with 5 thin manifolds fall apart)"
            )
        _warn(
            f"The states are not certified as disjoint: {cause}. {remedy[0].upper()}{remedy[1:]}; "
            "n_clusters='auto' finds how many are."
        )

    def _warn_of_selection(self) -> None:
        """Say where states are certified that "auto" did not settle on, since resamples do not find them again."""
        not_again = [
            n
            for n, stability in zip(self.selection_["n_clusters"], self.selection_["stability"], strict=True)
            if stability is not None and stability < CERTIFIED
        ]
        few = f"; n_neighbors={self.n_neighbors} is few: with more, thin manifolds do not fall apart"
        hint = few if self.n_neighbors < FEW_NEIGHBORS else ""
        if self.n_clusters_ == 1 and self.discrete_columns_:
            _warn(
                f"A single state was found. The rows are divided by {self._named_columns()} alone, whose values have "
                "gaps by nature: that is no certificate. Fit without it, or give a number as n_clusters."
            )
        elif self._most in not_again:
            _warn(
                f"max_clusters={self._most} states are certified as disjoint, but resamples divide the rows in "
                "other ways: there are more groups, and which of them share a state is a matter of chance. Raise "
                f"max_clusters{hint}."
            )
        elif self.n_clusters_ == 1 and not_again:
            _warn(
                f"{' or '.join(map(str, not_again))} states are certified as disjoint, but resamples divide the rows "
                f"in other ways, so that all are taken as one. Give more rows, or a number as n_clusters{hint}."
            )

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_)


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=6)  # from where `fit` was called, past its decorator


def _outputs(
    network: StateNetwork, read: Callable[[NDArray[np.int64]], Tensor], n_samples: int, verbose: bool = False
) -> Array:
    """The network on all samples, a block at a time: (n_samples, n_clusters)."""
    values = np.empty((n_samples, network.membership.shape[1]))
    starts = range(0, n_samples, BLOCK)
    with torch.no_grad(), progress(len(starts), description="parts labelled", enabled=verbose) as display:
        for start in starts:
            part = np.arange(start, min(start + BLOCK, n_samples))
            values[part] = network(read(part)).numpy()
            display.advance(samples=len(part))
    return values
