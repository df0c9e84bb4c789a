r"""Disjoint manifold labelling: DML with a smoothness that knows the data, from several starts, with a certificate.

1. The data are taken into their span and divided by one number, an isometry up to scale: 512 columns of which two
   carry anything cost as two.
2. A neighbourhood graph joins a sample of the rows. The smoothness term is
   :math:`R_c = \sum_{ij} w_{ij} \lVert F(x_i) - F(x_j) \rVert^2`, the squared change of the logits along its edges: the
   finite differences of the paper's Eq. 11 in directions that stay on the manifold, so that neither a noise scale nor
   the gap between manifolds has to be known.
3. The network is a :class:`SineNetwork`. In the basis of the functions that change least along the edges R_c is a
   weighted sum of squared coefficients, and smooth functions come first.
4. `n_init` starts are heads on one hidden layer and train together: random walks from seeds far from each other divide
   the sample between the states, one start takes the clusters of k-means, and DML + beta R_c is descended from each by
   the gradient of the whole sample. Rows held out tell when to stop and which start to keep.
5. The certificate says which states are disjoint (:mod:`neuralbayes.manifolds.certificate`).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from torch import Tensor

from neuralbayes.bayes import posterior
from neuralbayes.manifolds.certificate import (
    CERTIFIED,
    WALK_LENGTH,
    columns_in_doubt,
    is_certified,
    null_separation,
    separation,
    settled,
    tells_apart,
    walk_between,
    without_columns,
)
from neuralbayes.manifolds.graph import Array, NeighborGraph, RandomWalk
from neuralbayes.networks.sines import SineNetwork
from neuralbayes.objectives.base import interior_posterior
from neuralbayes.objectives.dml import DML
from neuralbayes.training.progress import progress

ROWS_AT_ONCE = 16384
"""Rows that pass through the network together."""

HELD_OUT = 0.2

FOLDS = 3
"""Parts of the sample, on one of which the states of a fit to the others must be as far apart."""


@dataclass(frozen=True)
class Options:
    """What a fit can be told; see :class:`neuralbayes.ManifoldLabeler`."""

    beta: float
    n_init: int
    n_neighbors: int
    n_hidden: int
    max_iter: int
    tol: float
    max_samples: int
    standardize: bool
    verbose: bool


@dataclass
class Labeling:
    """A network with its states, how far they are apart, and how it was found."""

    network: SineNetwork
    separation: Array  # (n_states,) in nats
    objective: float  # DML + beta R_c on rows held out
    loss_curve: list[float]
    n_iter: int
    null: float = 0.0  # separation of connected rows, in nats
    columns: tuple[int, ...] = ()  # those that make the states alone

    @property
    def disjoint(self) -> NDArray[np.bool_]:
        """Which states are certified: (n_states,)."""
        return is_certified(self.separation, self.null)


class Geometry:
    """A sample of the rows: its span, its graph, and the functions on it from smooth to rough."""

    def __init__(self, X: Array, options: Options, rng: np.random.RandomState) -> None:
        rows = rng.permutation(len(X))[: options.max_samples]
        sample = take(X, rows)
        once = _first_of_equals(sample) if (sample != sample[0]).any() else np.arange(len(sample))
        self.rows, self.sample = rows[once], sample[once]
        self.center, self.basis = _span(self.sample, options.standardize)
        self.points = (self.sample - self.center) @ self.basis
        self.graph = NeighborGraph(self.points, options.n_neighbors)
        self.walk = RandomWalk(self.graph, WALK_LENGTH)
        self.settled = settled(self.walk, self.points)
        # Wavelengths from two spacings, where neighbours can still be told apart, to three times the data's radius, 1.
        shortest = min(2.0 * self.graph.spacing, 0.5)
        wavelength = np.exp(rng.uniform(np.log(shortest), np.log(3.0), options.n_hidden))
        self.frequency = rng.standard_normal((self.points.shape[1], options.n_hidden)) / wavelength
        self.phase = rng.uniform(0.0, 2.0 * np.pi, options.n_hidden)
        with torch.no_grad():
            waves = self.network(1).hidden(torch.from_numpy(self.sample)).numpy()
        self.hidden: Array = np.column_stack([waves, np.ones(len(waves))])
        self.modes, self.roughness = _smooth_functions(self.hidden, self.graph)

    def network(self, n_states: int) -> SineNetwork:
        """A network on this span with an output layer of zeros."""
        center, basis = torch.from_numpy(self.center), torch.from_numpy(self.basis)
        return SineNetwork(center, basis, torch.from_numpy(self.frequency), torch.from_numpy(self.phase), n_states)

    def relative_roughness(self, n_states: int) -> Array:
        """R_c of each mode in units of the first that K disjoint manifolds would not have for free: (n_modes,)."""
        unit = float(self.roughness[min(n_states, len(self.roughness) - 1)])
        return self.roughness / (unit or 1.0)  # no mode but the constant: a single distinct row


def fit_states(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> Labeling:
    """The best of `n_init` starts, and of as many again where none of the first is certified."""
    best = _descend(geometry, _starts(geometry, n_states, options, rng), options)
    if not best.disjoint.all():
        again = _descend(geometry, _starts(geometry, n_states, options, rng), options)
        best = min(best, again, key=lambda labeling: labeling.objective)
    return best


def select(
    X: Array, geometry: Geometry, max_states: int, options: Options, rng: np.random.RandomState
) -> tuple[Labeling, dict[str, list[Any]]]:
    """The largest number of states that are all certified and whose labels are found again in resamples.

    Returns
    -------
    labeling : Labeling
        With one state where no larger number passes; with `max_states` where these are certified and none is found
        again: then there are more groups than states, which share them by chance.
    selection : dict of lists
        For each number tried: "n_clusters", "objective", "separation" (the smallest over the states), "stability" (the
        adjusted Rand index between two resamples; None where it was not needed).
    """
    tried: list[Labeling] = []
    with progress(max_states - 1, description="numbers of states tried", enabled=options.verbose) as display:
        for n_states in range(2, max_states + 1):
            tried.append(fit_states(geometry, n_states, options, rng))
            display.advance(metrics={"n_clusters": n_states, "separation": tried[-1].separation.min()})
            if sum(not labeling.disjoint.all() for labeling in tried) == 2:
                break  # more states only cut more
    stability: list[float | None] = [None] * len(tried)
    chosen = None
    for i in reversed(range(len(tried))):
        if tried[i].disjoint.all():
            tried[i] = certified(tried[i], X, geometry, options, rng)
        if tried[i].disjoint.all():
            stability[i] = agreement = _stability(geometry, i + 2, options, rng)
            if agreement >= CERTIFIED:
                chosen = tried[i]
                break
    selection: dict[str, list[Any]] = {
        "n_clusters": list(range(2, len(tried) + 2)),
        "objective": [labeling.objective for labeling in tried],
        "separation": [float(labeling.separation.min()) for labeling in tried],
        "stability": stability,
    }
    if chosen is None and tried[-1].disjoint.all():
        chosen = tried[-1]
    if chosen is None:
        columns = {j for labeling in tried for j in labeling.columns}
        chosen = replace(single_state(geometry), columns=tuple(sorted(columns)))
    return chosen, selection


def single_state(geometry: Geometry) -> Labeling:
    """Everything in one state, which has no rest to be separated from."""
    return Labeling(geometry.network(1), np.zeros(1), 0.0, [], 0)


def certified(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """The labeling, with the separation of its states lowered by whatever shows that they may not be disjoint."""
    for check in (_on_other_rows, _without_discrete_columns, _beside_null):
        if not labeling.disjoint.any():
            break
        labeling = check(labeling, X, geometry, options, rng)
    return labeling


def _on_other_rows(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """How far apart the states are on rows that no fit has seen, or those of a fit that has not seen them."""
    m = len(geometry.rows)
    if len(X) >= 2 * options.max_samples:
        fresh = take(X, np.setdiff1d(rng.choice(len(X), 2 * m, replace=False), geometry.rows)[:m])
        walk = walk_between((fresh - geometry.center) @ geometry.basis, options.n_neighbors)
        other = separation(walk, _posterior(labeling.network, fresh))
        return replace(labeling, separation=np.minimum(labeling.separation, other))
    fewer = replace(options, n_init=min(4, options.n_init))
    rank = np.argsort(np.argsort(-labeling.separation, kind="stable"))
    tried = [np.zeros_like(labeling.separation)]
    for judged in np.array_split(np.arange(m), FOLDS):
        again = fit_states(Geometry(np.delete(geometry.sample, judged, axis=0), fewer, rng), len(rank), fewer, rng)
        other = separation(geometry.settled, _posterior(again.network, geometry.sample), judged)
        # The states have other numbers there: as many of them must be as far apart.
        tried.append(np.minimum(labeling.separation, np.sort(other)[::-1][rank]))
        if (is_certified(tried[-1], 0.0) == labeling.disjoint).all():
            break
    return replace(labeling, separation=max(tried, key=np.min))


def _without_discrete_columns(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """How far apart the states are without columns whose values have gaps by nature; which of these make them."""
    order = np.argsort(geometry.rows)
    rows = geometry.sample[order]
    p_zx = _posterior(labeling.network, rows)
    labels = p_zx.argmax(axis=1)
    for columns in columns_in_doubt(rows, labels):
        fewer = without_columns(rows, columns, rng)
        lowered = np.zeros_like(labeling.separation)
        if fewer.shape[1] and np.ptp(fewer, axis=0).any():
            center, basis = _span(fewer, options.standardize)
            lowered = separation(walk_between((fewer - center) @ basis, options.n_neighbors), p_zx)
        lowered = np.minimum(labeling.separation, lowered)
        if (is_certified(lowered, 0.0) < labeling.disjoint).any():
            behind = [j for j in columns or range(rows.shape[1]) if tells_apart(rows[:, j], labels) >= CERTIFIED]
            return replace(labeling, separation=lowered, columns=tuple(behind or columns))
    return labeling


def _beside_null(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """The separation of connected rows beside that of the states."""
    null = null_separation(geometry.points, len(labeling.separation), options.n_neighbors, rng)
    return replace(labeling, null=null)


def _posterior(network: SineNetwork, rows: Array) -> Array:
    p_zx: Array = posterior(torch.from_numpy(logits(network, rows))).numpy()
    return p_zx


def logits(network: SineNetwork, X: Array, verbose: bool = False) -> Array:
    """The network on all rows, a part at a time, in the dtype of `X`: (n, n_states)."""
    starts = range(0, len(X), ROWS_AT_ONCE)
    # Made at once: small results between the large temporaries of each part would keep their memory from being reused.
    values: Array = np.empty((len(X), network.head.shape[1]), dtype=X.dtype)
    with torch.no_grad(), progress(len(starts), description="parts of the rows", enabled=verbose) as display:
        for start in starts:
            part = slice(start, start + ROWS_AT_ONCE)
            values[part] = network(torch.from_numpy(np.array(X[part]))).numpy()
            display.advance(samples=len(values[part]))
    return values


def take(X: Array, rows: NDArray[np.int64]) -> Array:
    """Rows of `X` in double; read in the order in which they lie, which a memory-mapped file likes."""
    order = np.argsort(rows)
    sample = np.empty((len(rows), X.shape[1]))
    sample[order] = X[rows[order]]
    return sample


def _first_of_equals(rows: Array) -> NDArray[np.int64]:
    """Indices of the rows without those that an earlier one equals."""
    first: dict[bytes, int] = {}
    for i, row in enumerate(rows + 0.0):  # which makes -0.0 and 0.0 the same
        first.setdefault(row.tobytes(), i)
    return np.fromiter(first.values(), np.int64, len(first))


def _span(sample: Array, standardize: bool) -> tuple[Array, Array]:
    """Center (n_features,) and basis (n_features, rank) of the span of the rows, their root mean square radius 1."""
    n, d = sample.shape
    center = sample.mean(axis=0)
    centered = sample - center
    # One number for all columns keeps the geometry; it also keeps squares in range.
    scale = centered.std(axis=0) if standardize else np.full(d, np.abs(centered).max())
    scale[scale == 0.0] = 1.0
    centered = centered / scale
    subspace = _low_rank_span(centered)
    flat = centered if subspace is None else centered @ subspace
    if flat.shape[1] <= n:
        values, vectors = np.linalg.eigh(flat.T @ flat / n)
    else:
        values, left = np.linalg.eigh(flat @ flat.T / n)
        vectors = flat.T @ left / np.sqrt(n * values.clip(np.finfo(float).tiny))
    vectors = vectors if subspace is None else subspace @ vectors
    if values[-1] <= 0.0:  # a single distinct row
        return center, np.zeros((d, 1))
    kept = values > 1e-12 * values[-1]  # a millionth in length: beyond the rounding of float32
    radius = np.sqrt(values[kept].sum())
    return center, vectors[:, kept][:, ::-1] / radius / scale[:, None]


def _low_rank_span(rows: Array, rank: int = 32) -> Array | None:
    """An orthonormal basis of few columns that holds all rows, where there is one: most columns often carry nothing."""
    n, d = rows.shape
    if d <= 2 * rank:
        return None
    mixed = np.random.RandomState(0).standard_normal((rank, n)) @ rows
    basis, _ = np.linalg.qr(mixed.T)
    rest = rows - (rows @ basis) @ basis.T
    return basis if np.abs(rest).max() <= 1e-9 * np.abs(rows).max() else None


def _smooth_functions(hidden: Array, graph: NeighborGraph) -> tuple[Array, Array]:
    """Combinations of the hidden units from smooth to rough, and the R_c of each at unit variance.

    Returns
    -------
    modes : ndarray of shape (n_hidden + 1, n_modes)
    roughness : ndarray of shape (n_modes,), ascending; the first is the constant's, 0.
    """
    second = hidden.T @ hidden / len(hidden)
    edges = hidden.T @ (graph.degree[:, None] * hidden - graph.weight @ hidden) / graph.degree.sum()
    # The ridge keeps weights of no use small; the constant, last, is to be free.
    ridge = np.full(len(edges), 1e-5)
    ridge[-1] = 1e-9
    smoothness, modes = scipy.linalg.eigh(second, (edges + edges.T) / 2.0 + np.diag(ridge))
    kept = smoothness > 1e-6
    roughness = 1.0 / smoothness[kept][::-1]
    modes = modes[:, kept][:, ::-1] * np.sqrt(roughness)
    roughness[0] = 0.0
    return modes, roughness


def _starts(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> Array:
    """Coefficients of `n_init` heads that fit different divisions of the sample: (n_modes, n_states, n_init)."""
    divisions = [geometry.walk.territories(n_states, rng) for _ in range(options.n_init)]
    if options.n_init >= 4:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer distinct points than states is no news here
            labels = KMeans(n_states, n_init=1, random_state=rng).fit_predict(geometry.points)
        divisions[-1] = np.eye(n_states)[labels]
    target = np.stack(divisions, axis=2)
    target = 12.0 * (target - target.sum(axis=1, keepdims=True) / n_states)
    train = slice(_n_held_out(len(target)), None)
    values = geometry.hidden[train] @ geometry.modes
    coefficients = np.tensordot(values, target[train], axes=(0, 0)) / len(values)
    return coefficients / (1.0 + 0.01 * geometry.relative_roughness(n_states))[:, None, None]


def _descend(geometry: Geometry, start: Array, options: Options) -> Labeling:
    """Adam on DML + beta R_c from all starts together; the best on rows held out, at its best step."""
    _, n_states, n_init = start.shape
    rough = geometry.relative_roughness(n_states)
    scale = 1.0 / np.sqrt(1.0 + rough)  # in these units smooth functions move first
    held_out = _n_held_out(len(geometry.rows))
    values = torch.from_numpy((geometry.hidden @ geometry.modes) * scale).float()
    train, test = values[held_out:], values[: held_out or None]
    cost = torch.from_numpy(rough * scale**2).float()[:, None, None]
    objective = DML()
    weights = torch.from_numpy(start / scale[:, None, None]).float().requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.1)

    def loss(rows: Tensor) -> Tensor:
        p_zx = interior_posterior((rows @ weights.flatten(1)).reshape(len(rows), *weights.shape[1:]))
        dml = objective.sample_term(p_zx, p_zx.mean(dim=0)).mean(dim=0)
        return dml + options.beta * (cost * weights.square()).sum(dim=(0, 1))  # (n_init,)

    best = torch.full((n_init,), torch.inf)
    best_weights = weights.detach().clone()
    curve: list[float] = []
    waited = 0
    n_iter = 0
    while waited < 3:
        with torch.no_grad():
            value = loss(test)
        better = value < best - options.tol  # False where NaN
        best = torch.where(better, value, best)
        best_weights = torch.where(better, weights.detach(), best_weights)
        curve.append(float(best.min()))
        waited = 0 if curve[-1] < min(curve[:-1], default=np.inf) else waited + 1
        for _ in range(min(5, options.max_iter - n_iter)):
            optimizer.zero_grad()
            loss(train).sum().backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            n_iter += 1
        if n_iter >= options.max_iter:
            break
    winner = int(best.argmin())
    coefficients = best_weights[:, :, winner].double().numpy() * scale[:, None]
    network = geometry.network(n_states)
    with torch.no_grad():
        network.head.copy_(torch.from_numpy(geometry.modes @ coefficients))
    p_zx = posterior(values @ best_weights[:, :, winner]).double().numpy()
    apart = separation(geometry.settled, p_zx, np.arange(held_out or len(p_zx)))
    return Labeling(network, apart, float(best[winner]), curve, n_iter)


def _stability(geometry: Geometry, n_states: int, options: Options, rng: np.random.RandomState) -> float:
    """Adjusted Rand index between the labels that two resamples of four fifths give to the whole sample."""
    labels = []
    for _ in range(2):
        part = rng.permutation(len(geometry.sample))[: int(0.8 * len(geometry.sample))]
        fewer = replace(options, n_init=min(4, options.n_init))
        resampled = Geometry(geometry.sample[part], fewer, rng)
        network = fit_states(resampled, n_states, fewer, rng).network
        labels.append(logits(network, geometry.sample).argmax(axis=1))
    return float(adjusted_rand_score(*labels))


def _n_held_out(n: int) -> int:
    """Rows held out of n, which are in random order: the first fifth; none where there are few."""
    return int(HELD_OUT * n) if n >= 50 else 0
