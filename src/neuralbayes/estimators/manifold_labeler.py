"""Disjoint manifold labelling as a scikit-learn clusterer."""

from __future__ import annotations

import warnings
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import ArrayLike
from sklearn.base import _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from torch import nn

from neuralbayes.bayes import LOG_2
from neuralbayes.estimators.clusterer import CONSTRAINTS, POSITIVE, Array, Clusterer
from neuralbayes.estimators.inputs import as_rows
from neuralbayes.estimators.saving import Arrays, filled, is_array, is_count, is_list, is_number
from neuralbayes.manifolds.certificate import certified, select
from neuralbayes.manifolds.descent import fit_states, single_state
from neuralbayes.manifolds.geometry import Geometry, Options
from neuralbayes.manifolds.separation import CERTIFIED
from neuralbayes.networks.sines import SineNetwork
from neuralbayes.objectives import DML, Objective
from neuralbayes.system.devices import device_of, named_device, torch_device, working_copy
from neuralbayes.system.limits import one_thread

if TYPE_CHECKING:
    from neuralbayes.data.vectorizer import TableVectorizer

# With 5 neighbours, "auto" failed for one seed on each of three of the ten sets of `data.toys`; with 8 it did not.
FEW_NEIGHBORS = 8


class ManifoldLabeler(Clusterer):
    """Find disjoint manifolds and certify that they are disjoint.

    A network is trained with the DML objective and a smoothness term (section 4 of the paper) from several starts. The
    objective on held-out rows selects the best one. The network labels new rows and returns p(z|x). Each manifold is
    certified by a random walk between neighbouring rows: if no walk leaves it, its `separation_` is log 2. The cost is
    linear in the number of rows. For clusters that touch, and for images, use
    :class:`neuralbayes.InformationClusterer`.

    Parameters
    ----------
    n_clusters : int or "auto", default=2
        Number of manifolds. "auto" uses the largest number of manifolds that are all certified and that are found again
        in resamples, or 1 if there are none. See also `max_clusters`.
    objective : Objective, optional
        The objective to minimise together with the smoothness term. By default :class:`neuralbayes.DML`.
    beta : float, default=3e-4
        Weight of the smoothness term, relative to the roughness of the (K+1)-th smooth function on the graph.
    n_init : int, default=8
        Number of starts, which are trained together. The best one is selected on held-out rows.
    n_neighbors : int, default=15
        Number of neighbours of each row. Use fewer, such as 8, to separate manifolds that almost touch. Use more if a
        manifold has few rows. With 5, thin manifolds fall apart.
    n_hidden : int, default=256
        Units of the hidden layer; four times as many where only gaps much narrower than the manifolds separate them.
    max_iter : int, default=60
        Maximum number of steps from each start. Training may stop earlier, based on held-out rows.
    tol : float, default=1e-3
        Minimum improvement of the held-out objective.
    max_samples : int, default=2000
        Number of random rows that the network is trained on. All rows are labelled. If there are twice as many rows, as
        many others are held out. Each manifold should have a few dozen rows among them.
    max_clusters : int, default=8
        Largest number that "auto" tries. If there are more manifolds than this, a warning says so.
    standardize : bool, default=False
        Divide each column by its standard deviation. Use this if columns have different units, but not if distances
        are already meaningful.
    vectorizer : TableVectorizer, optional
        Turns data frames into standardised numbers. Leave out categories, because their gaps prove nothing.
    random_state : int, RandomState instance or None, default=None
    device : str, default="auto"
        Where to label the rows: "cpu", "cuda", "cuda:1" or "mps"; "auto" is the best one available. Training uses few
        rows and runs on the CPU.
    verbose : bool, default=False

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Manifold of each row, numbered by p(z), the largest first.
    n_clusters_, n_dimensions_ : int
        Number of manifolds, and dimension of the span of the rows.
    prior_ : ndarray of shape (n_clusters_,)
        p(z) over the training rows.
    separation_ : ndarray of shape (n_clusters_,)
        Jensen-Shannon divergence in nats between each manifold and the rest, on held-out rows, after a long random walk
        between neighbours. It is log 2 = 0.693 for a disjoint manifold, and smaller for a cut through connected rows.
        Duplicate rows count once. If there is only one manifold, it is 0.
    null_separation_ : float
        99 % quantile of the separation in nats of Gaussian rows with the size and covariance of `X`, which have no
        clusters; 0 if no manifold came close to being certified.
    disjoint_ : ndarray of shape (n_clusters_,), bool
        Whether a manifold is certified: `separation_` is at least 0.9 log 2 and above `null_separation_`, also on
        unseen rows and without discrete columns.
    discrete_columns_ : list of int
        Columns such as booleans, codes and ids without which the manifolds are not separate, so they are not certified.
    objective_, loss_curve_, n_iter_ : float, list of float, int
        Objective with its smoothness term on held-out rows, the best one every fifth step, and the number of steps.
    selection_ : dict of lists
        Only with ``n_clusters="auto"``: "n_clusters", "objective", "separation" and "stability" of each number tried.
    module_ : torch.nn.Module
        The network. It maps rows (n, n_features) to logits (n, n_clusters_).
    vectorizer_ : TableVectorizer
        The fitted vectorizer, if a data frame was turned into numbers, whose names are `feature_names_in_` then.

    See Also
    --------
    neuralbayes.InformationClusterer : Clusters that may touch.
    neuralbayes.DML : The objective.
    neuralbayes.load : Load a saved model.

    Notes
    -----
    The paper regularises along random directions, with a noise scale and a weight tuned for each data set. Here,
    differences between neighbours adapt both.

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

    _block = 16384

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS | {
        "objective": [Objective, None],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_init": [POSITIVE],
        "n_hidden": [POSITIVE],
        "max_iter": [POSITIVE],
        "tol": [Interval(Real, 0, None, closed="left")],
        "standardize": ["boolean"],
    }

    def __init__(
        self,
        n_clusters: int | Literal["auto"] = 2,
        *,
        objective: Objective | None = None,
        beta: float = 3e-4,
        n_init: int = 8,
        n_neighbors: int = 15,
        n_hidden: int = 256,
        max_iter: int = 60,
        tol: float = 1e-3,
        max_samples: int = 2000,
        max_clusters: int = 8,
        standardize: bool = False,
        vectorizer: TableVectorizer | None = None,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.objective = objective
        self.beta = beta
        self.n_init = n_init
        self.n_neighbors = n_neighbors
        self.n_hidden = n_hidden
        self.max_iter = max_iter
        self.tol = tol
        self.max_samples = max_samples
        self.max_clusters = max_clusters
        self.standardize = standardize
        self.vectorizer = vectorizer
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Find the manifolds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers. Memory-mapped arrays are not copied.
        y : ignored
        """
        named_device(self.device)  # raises before anything is computed
        self._forget()
        if getattr(X, "ndim", 2) in (3, 4):
            raise ValueError(
                f"X must be rows of shape (n_samples, n_features), got shape {tuple(X.shape)}; "  # type: ignore[union-attr]
                "images are for InformationClusterer"
            )
        rows = as_rows(self, X, reset=True)
        self.image_shape_ = None
        n_states = 1 if self.n_clusters == "auto" else self.n_clusters
        if len(rows) < n_states:
            raise ValueError(f"n_samples={len(rows)} should be >= n_clusters={n_states}.")
        rng = check_random_state(self.random_state)
        options = Options(
            beta=self.beta,
            n_init=self.n_init,
            n_neighbors=self.n_neighbors,
            n_hidden=self.n_hidden,
            max_iter=self.max_iter,
            tol=self.tol,
            max_samples=self.max_samples,
            standardize=self.standardize and not hasattr(self, "vectorizer_"),
            verbose=bool(self.verbose),
            objective=DML() if self.objective is None else self.objective,
        )
        with one_thread():  # the sample is small, so threads would mostly wait for each other
            geometry = Geometry(rows, options, rng)
            n_distinct = len(geometry.sample) if geometry.basis.any() else 1
            if n_states > n_distinct:
                raise ValueError(f"n_clusters={n_states} needs as many distinct rows, but X has {n_distinct}.")
            if self.n_clusters == "auto":
                found, self.selection_ = select(geometry, min(self.max_clusters, len(geometry.sample)), options, rng)
            elif n_states == 1:
                found = single_state(geometry)
            else:
                found = certified(fit_states(geometry, n_states, options, rng), geometry, options, rng)
        self.n_dimensions_ = found.network.basis.shape[1]
        self.module_ = found.network.eval().requires_grad_(False)
        self.n_clusters_ = len(found.separation)
        order = self._keep(rows)
        with torch.no_grad():
            found.network.head.copy_(found.network.head[:, torch.from_numpy(order)])
        self.separation_: Array = found.separation[order]
        self.disjoint_ = found.disjoint[order]
        self.null_separation_ = found.null
        self.discrete_columns_ = list(found.columns)
        self.objective_, self.loss_curve_, self.n_iter_ = found.objective, found.loss_curve, found.n_iter
        if self.n_clusters == "auto":
            self._warn_of_selection()
        elif n_states > 1 and not self.disjoint_.all():
            self._warn_of_states()
        return self

    def _points(self, samples: Any) -> Array:
        return np.asarray(self.module_.normalize(torch.from_numpy(samples)))

    @torch.no_grad()
    def _logits(self, samples: Any) -> Array:
        module: Any = working_copy(self.module_, torch_device(self.device))
        return np.asarray(module(torch.from_numpy(samples).to(device_of(module))).cpu())

    def _part(self, name: str, arrays: Arrays, network: nn.Module | None) -> Any:
        sizes = self.n_features_in_, self.n_dimensions_, len(arrays["phase"])
        with torch.device("meta"):
            center, basis, frequency, phase = (
                torch.empty(shape, dtype=torch.float64) for shape in (sizes[:1], sizes[:2], sizes[1:], sizes[2:])
            )
            return filled(SineNetwork(center, basis, frequency, phase, self.n_clusters_), arrays)

    def _checks(self) -> dict[str, bool]:
        return super()._checks() | {
            "module_": isinstance(self.module_, SineNetwork),
            "disjoint_": is_array(self.disjoint_, "b", self.n_clusters_),
            "discrete_columns_": is_list(self.discrete_columns_, is_count),
            "null_separation_": is_number(self.null_separation_),
            "objective_": is_number(self.objective_),
        }

    def _named_columns(self) -> str:
        names = getattr(self, "feature_names_in_", None)
        return ", ".join(f"x{j}" if names is None else str(names[j]) for j in self.discrete_columns_)

    def _warn_of_states(self) -> None:
        """Warn that clusters are not certified, with the probable cause and a remedy."""
        n_empty = self.n_clusters_ - len(np.unique(self.labels_))
        if self.discrete_columns_:
            cause = f"only {self._named_columns()} separates them, whose values always have gaps"
            remedy = "Fit without it to see whether the other columns have clusters"
        elif n_empty:
            cause = f"{n_empty} of {self.n_clusters_} clusters have no rows"
            remedy = f"Ask for n_clusters={self.n_clusters_ - n_empty} or fewer"
        elif (self.separation_ >= CERTIFIED * LOG_2).all():
            null = f"{100 * self.null_separation_ / LOG_2:.0f} of 100"
            cause = f"connected data of the same size and covariance also reach a separation of {null}"
            remedy = "Add rows, or raise n_neighbors"
        else:
            percent = 100.0 * self.separation_ / LOG_2
            weak = ", ".join(f"{k} ({percent[k]:.0f})" for k in np.flatnonzero(~self.disjoint_))
            cause = (
                f"the separation (of 100) is below {100 * CERTIFIED:.0f} for clusters {weak}, which cut through "
                "connected rows, or hold more than one manifold"
            )
            remedy = (
                "Try fewer clusters or more rows; if manifolds almost touch, fewer neighbours "
                f"(n_neighbors={FEW_NEIGHBORS}; with 5, thin manifolds fall apart)"
            )
        _warn(
            f"The clusters are not certified as disjoint: {cause}. {remedy}, or use n_clusters='auto' to find the "
            "number of disjoint manifolds."
        )

    def _warn_of_selection(self) -> None:
        """Warn about certified manifolds that resamples do not confirm, or that only discrete columns separate."""
        tried = zip(self.selection_["n_clusters"], self.selection_["stability"], strict=True)
        not_again = [n for n, stability in tried if stability is not None and stability < CERTIFIED]
        few = f" or n_neighbors, since {self.n_neighbors} neighbours are few"
        hint = few if self.n_neighbors < FEW_NEIGHBORS else ""
        but = "are certified as disjoint, but resamples divide the rows differently"
        if self.n_clusters_ == 1 and self.discrete_columns_:
            _warn(
                f"A single cluster was found. Only {self._named_columns()} divides the rows, whose values always have "
                "gaps, so this proves nothing. Fit without it, or set n_clusters to a number."
            )
        elif self.max_clusters in not_again:
            _warn(
                f"max_clusters={self.max_clusters} manifolds {but}. There are probably more: raise max_clusters{hint}."
            )
        elif self.n_clusters_ == 1 and not_again:
            numbers = " or ".join(map(str, not_again))
            _warn(f"{numbers} manifolds {but}: a single cluster is returned. Add rows, or set n_clusters{hint}.")


def _warn(message: str) -> None:
    warnings.warn(message, ConvergenceWarning, stacklevel=5)  # the caller of `fit`, past its decorator
