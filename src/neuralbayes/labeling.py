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
5. The certificate: p(z|x) is averaged over where a long random walk from x ends. A walk cannot leave a manifold that is
   disjoint from the others, so the Jensen-Shannon divergence of each state from the rest stays log 2; a cut through a
   connected set is blurred and the divergence falls.
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

from neuralbayes.bayes import LOG_2, js_divergence, posterior
from neuralbayes.neighbors import Array, NeighborGraph, RandomWalk
from neuralbayes.networks.sines import SineNetwork
from neuralbayes.objectives.base import interior_posterior
from neuralbayes.objectives.dml import DML
from neuralbayes.training.progress import progress

ROWS_AT_ONCE = 16384
"""Rows that pass through the network together."""

WALK_LENGTH = 2000.0
"""Mean steps of the certificate's walk: enough to go around a ring of 2,000 points with 15 neighbours."""

HELD_OUT = 0.2
CERTIFIED = 0.9
"""Share of log 2 from which on a state counts as disjoint from the rest. The sets of the benchmark that are reach 0.98
and more, those that are not stay below 0.5."""


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

    @property
    def disjoint(self) -> NDArray[np.bool_]:
        """Which states are certified: (n_states,)."""
        return self.separation >= CERTIFIED * LOG_2


class Geometry:
    """A sample of the rows: its span, its graph, and the functions on it from smooth to rough."""

    def __init__(self, X: Array, options: Options, rng: np.random.RandomState) -> None:
        self.rows = rng.permutation(len(X))[: options.max_samples]
        self.sample: Array = take(X, self.rows)
        self.center, self.basis = _span(self.sample, options.standardize)
        self.points = (self.sample - self.center) @ self.basis
        self.graph = NeighborGraph(self.points, options.n_neighbors)
        self.walk = RandomWalk(self.graph, WALK_LENGTH)
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
            tried.append(certified(fit_states(geometry, n_states, options, rng), X, geometry, options, rng))
            display.advance(metrics={"n_clusters": n_states, "separation": tried[-1].separation.min()})
            if sum(not labeling.disjoint.all() for labeling in tried) == 2:
                break  # more states only cut more
    stability: list[float | None] = [None] * len(tried)
    chosen = None
    for i in reversed(range(len(tried))):
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
    if chosen is None:
        chosen = tried[-1] if tried[-1].disjoint.all() else single_state(geometry)
    return chosen, selection


def single_state(geometry: Geometry) -> Labeling:
    """Everything in one state, which has no rest to be separated from."""
    return Labeling(geometry.network(1), np.zeros(1), 0.0, [], 0)


def certified(
    labeling: Labeling, X: Array, geometry: Geometry, options: Options, rng: np.random.RandomState
) -> Labeling:
    """The labeling with the lower of its certificate and one on rows that no fit has seen, where there are enough."""
    n, m = len(X), len(geometry.rows)
    if n < 2 * m:
        return labeling
    fresh = np.setdiff1d(rng.choice(n, min(n, 2 * m), replace=False), geometry.rows)[:m]
    sample = take(X, fresh)
    graph = NeighborGraph((sample - geometry.center) @ geometry.basis, options.n_neighbors)
    p_zx = posterior(torch.from_numpy(logits(labeling.network, sample))).numpy()
    separation = _separation(RandomWalk(graph, WALK_LENGTH), p_zx, np.arange(len(sample)), options)
    return replace(labeling, separation=np.minimum(labeling.separation, separation))


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
        p_zx = interior_posterior((rows @ weights.flatten(1)).reshape(len(rows), n_states, n_init))
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
        waited = 0 if bool(better.any()) else waited + 1
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
    separation = _separation(geometry.walk, p_zx, np.arange(held_out or len(p_zx)), options)
    return Labeling(network, separation, float(best[winner]), curve, n_iter)


def _separation(walk: RandomWalk, p_zx: Array, judged: NDArray[np.int64], options: Options) -> Array:
    """JS of each state against the rest after the walk, on the rows `judged`; 0 for a state of hardly any mass."""
    walked = torch.from_numpy(walk(p_zx)[judged].clip(0.0, 1.0))
    n, n_states = p_zx.shape
    alive = p_zx[judged].mean(axis=0) * n >= min(options.n_neighbors, n / (20 * n_states))
    separation: Array = js_divergence(walked).numpy() * alive
    return separation


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
