"""Disjoint manifold labelling as a scikit-learn clusterer."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.special import softmax
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from neuralbayes.bayes import LOG_2, js_divergence
from neuralbayes.estimators.inputs import as_rows
from neuralbayes.estimators.persistence import SavedEstimator
from neuralbayes.labeling import (
    CERTIFIED,
    Geometry,
    Options,
    certified,
    fit_states,
    logits,
    select,
    single_state,
)
from neuralbayes.networks.sines import SineNetwork

Array = NDArray[Any]

FEW_NEIGHBORS = 8
"""With 5, "auto" went wrong on three of the ten sets of `data.toys`, a seed each; with 8 it was right on these."""


class ManifoldLabeler(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, SavedEstimator):  # type: ignore[misc]
    """Label the disjoint manifolds that data lie on, and say whether they are disjoint.

    A network is trained with the DML objective and a smoothness term (section 4 of the paper) from several starts, of
    which the objective on rows held out chooses one. It labels new points, gives p(z|x), and certifies each state:
    `separation_` is log 2 for a state that no walk between neighbouring points leaves. The cost is linear in the number
    of rows.

    Parameters
    ----------
    n_clusters : int or "auto", default=2
        Number of states. "auto" takes the largest number that are all certified disjoint and that resamples find again,
        which is 1 where nothing is; see `max_clusters`.
    beta : float, default=3e-4
        Weight of the smoothness term, in units of what K disjoint manifolds would not have for free.
    n_init : int, default=8
        Starts, which train together.
    n_neighbors : int, default=15
        Neighbours that a point is joined to. Fewer, such as 8, tell apart manifolds that nearly touch, more keep one
        whole that is thinly sampled; with 5 thin ones fall apart.
    n_hidden : int, default=256
        Units of the hidden layer.
    max_iter : int, default=60
        Most steps from each start; held-out rows end it earlier.
    tol : float, default=1e-3
        Improvement of the held-out objective that counts as one.
    max_samples : int, default=2000
        Rows that the network is trained on, drawn at random; where there are twice as many, as many others judge it.
        All rows are labelled. A manifold should have some dozens of rows among them.
    max_clusters : int, default=8
        Largest number that "auto" tries. Where there are more groups, that many states are certified but not found
        again; if no smaller number is, they are what you get, with a warning.
    standardize : bool, default=False
        Divide each column by its standard deviation first. Wanted where columns have different units, not where
        distances mean something already.
    random_state : int, RandomState instance or None, default=None
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        State of each row, from 0 to n_clusters_ - 1, the largest first.
    n_clusters_ : int
    n_dimensions_ : int
        Dimension of the span of the data.
    prior_ : ndarray of shape (n_clusters_,)
        p(z) over the training rows.
    separation_ : ndarray of shape (n_clusters_,)
        Jensen-Shannon divergence in nats of each state from the rest on rows held out, after a long random walk between
        neighbours: log 2 = 0.693 where the state is disjoint from the rest, less the more it is a cut through something
        connected. With one state there is no rest: 0.
    disjoint_ : ndarray of shape (n_clusters_,), bool
        Whether `separation_` is at least 90 % of log 2.
    objective_ : float
        DML + beta R_c on rows held out.
    loss_curve_ : list of float
        The best objective on rows held out, every fifth step.
    n_iter_ : int
    selection_ : dict of lists
        With ``n_clusters="auto"``: "n_clusters", "objective", "separation" and "stability" of each number tried.
    module_ : torch.nn.Module
        The network, from (n, n_features) to logits (n, n_clusters_).
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    See Also
    --------
    neuralbayes.DML : The objective.
    neuralbayes.load : Reads what `save` wrote.

    Notes
    -----
    The paper regularises along random directions with a noise scale and a weight tuned for each data set. Here the
    differences are taken between neighbours, which adapts both; see :doc:`/labeling`.

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
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_hidden": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_samples": [Interval(Integral, 2, None, closed="left")],
        "max_clusters": [Interval(Integral, 2, None, closed="left")],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 2,
        *,
        beta: float = 3e-4,
        n_init: int = 8,
        n_neighbors: int = 15,
        n_hidden: int = 256,
        max_iter: int = 60,
        tol: float = 1e-3,
        max_samples: int = 2000,
        max_clusters: int = 8,
        standardize: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.beta = beta
        self.n_init = n_init
        self.n_neighbors = n_neighbors
        self.n_hidden = n_hidden
        self.max_iter = max_iter
        self.tol = tol
        self.max_samples = max_samples
        self.max_clusters = max_clusters
        self.standardize = standardize
        self.random_state = random_state
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the states.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers; a memory-mapped array is not copied.
        y : ignored

        Returns
        -------
        self
        """
        X = as_rows(self, X, reset=True)
        rng = check_random_state(self.random_state)
        options = Options(
            beta=self.beta,
            n_init=self.n_init,
            n_neighbors=self.n_neighbors,
            n_hidden=self.n_hidden,
            max_iter=self.max_iter,
            tol=self.tol,
            max_samples=self.max_samples,
            standardize=self.standardize,
            verbose=bool(self.verbose),
        )
        n_states = 1 if self.n_clusters == "auto" else self.n_clusters
        if len(X) < n_states:
            raise ValueError(f"n_samples={len(X)} should be >= n_clusters={n_states}.")
        with threadpool_limits(1):  # the sample is small: threads would spend their time waiting for each other
            geometry = Geometry(X, options, rng)
            if n_states > 1 and not geometry.basis.any():
                raise ValueError(f"X has a single distinct row, but n_clusters={n_states} needs at least as many.")
            if self.n_clusters == "auto":
                found, self.selection_ = select(X, geometry, min(self.max_clusters, len(X)), options, rng)
            elif n_states == 1:
                found = single_state(geometry)
            else:
                found = certified(fit_states(geometry, n_states, options, rng), X, geometry, options, rng)
        p_zx = softmax(logits(found.network, X, options.verbose), axis=1)
        prior = p_zx.mean(axis=0, dtype=np.float64)
        order = np.argsort(-prior, kind="stable")
        with torch.no_grad():
            found.network.head.copy_(found.network.head[:, torch.from_numpy(order)])
        self.module_ = found.network.requires_grad_(False)
        self.n_clusters_ = len(order)
        self.n_dimensions_ = found.network.basis.shape[1]
        self.labels_ = p_zx[:, order].argmax(axis=1)
        self.prior_ = prior[order]
        self.separation_ = found.separation[order]
        self.disjoint_ = found.disjoint[order]
        self.objective_ = found.objective
        self.loss_curve_ = found.loss_curve
        self.n_iter_ = found.n_iter
        if self.n_clusters == "auto":
            self._warn_of_selection()
        elif n_states > 1 and not self.disjoint_.all():
            self._warn_of_states()
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Logits of p(z|x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_)
        """
        check_is_fitted(self)
        return logits(self.module_, as_rows(self, X, reset=False))

    def predict_proba(self, X: ArrayLike) -> Array:
        """p(z|x).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters_); rows sum to 1.
        """
        p_zx: Array = softmax(self.transform(X), axis=1)
        return p_zx

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """The most probable state of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        labels: NDArray[np.int64] = self.transform(X).argmax(axis=1)
        return labels

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean over the states of the Jensen-Shannon divergence of each from the rest on `X`: log 2 minus the DML loss.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        float
            In nats, from 0 to log 2, higher is better; 0 where there is a single state.
        """
        p_zx = torch.from_numpy(self.predict_proba(X))
        return float(js_divergence(p_zx).mean()) if self.n_clusters_ > 1 else 0.0

    def _make_module(self) -> SineNetwork:
        rank = self.n_dimensions_
        return SineNetwork(
            torch.empty(self.n_features_in_, dtype=torch.float64),
            torch.empty(self.n_features_in_, rank, dtype=torch.float64),
            torch.empty(rank, self.n_hidden, dtype=torch.float64),
            torch.empty(self.n_hidden, dtype=torch.float64),
            self.n_clusters_,
        ).requires_grad_(False)

    def _warn_of_states(self) -> None:
        """Say which states are not what was asked for, why that may be, and what to do."""
        empty = np.flatnonzero(np.bincount(self.labels_, minlength=self.n_clusters_) == 0)
        if len(empty):
            cause = f"{len(empty)} of {self.n_clusters_} states got no rows"
            remedy = f"ask for n_clusters={self.n_clusters_ - len(empty)} or fewer"
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
        if self.max_clusters in not_again:
            _warn(
                f"max_clusters={self.max_clusters} states are certified as disjoint, but resamples divide the rows in "
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
    warnings.warn(message, ConvergenceWarning, stacklevel=5)  # from where `fit` was called, past its decorator
