"""Clusters of rows, from numbers to p(z|x): one way, read from top to bottom.

1. Scale the columns and measure distances in units of the noise (:mod:`~neuralbayes.clusters.space`).
2. Choose the number of clusters, if it is not given (:mod:`~neuralbayes.clusters.number`).
3. Let simple methods vote, and take their consensus (:mod:`~neuralbayes.clusters.votes`).
4. Fit p(z|x) to the consensus (:mod:`~neuralbayes.clusters.posterior`): for tables a quadratic softmax, in
   milliseconds; for embeddings, pixels and the like a network, which improves the consensus with the objective
   (:mod:`~neuralbayes.clusters.training`), while on tables it would not.
5. Divide the logits by the temperature at which p(z|x) agrees best with how far clusters overlap
   (:mod:`~neuralbayes.clusters.calibration`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from threadpoolctl import threadpool_limits

from neuralbayes.clusters.calibration import calibrated_temperature
from neuralbayes.clusters.kmeans import kmeans
from neuralbayes.clusters.known import NO_HINTS, Hints, least_number, taught_votes
from neuralbayes.clusters.merging import Merging, merge_states, neighbor_joint, separation
from neuralbayes.clusters.mixture import fit_mixture, maximize
from neuralbayes.clusters.number import (
    agreement,
    agreement_of_clusters,
    choose_segments,
    count_valleys,
    halves,
)
from neuralbayes.clusters.posterior import Network, Posterior
from neuralbayes.clusters.space import (
    ROUNDING_ROWS,
    Frame,
    Space,
    make_space,
    metric_of_neighbors,
    principal_axes,
    rounding_variance,
    scalings,
    thinned,
)
from neuralbayes.clusters.votes import agree, embedding_votes, table_votes
from neuralbayes.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from torch import nn

    from neuralbayes.clusters.training import Trained
    from neuralbayes.objectives import Objective

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Kind = Literal["table", "embeddings", "pixels"]
Verdict = Literal["clusters", "segments", "none"]

TABLE_ROWS = 10_000
"""Maximum number of rows of a table to fit p(z|x) to; its parameters are few."""

EMBEDDING_DIMENSIONS = 128
"""Number of principal components of embeddings that the network takes."""

HALVED_ROWS = {"table": 2000, "embeddings": 6000, "pixels": 6000}
"""Maximum number of rows to divide in halves."""

N_SPLITS = 2
"""Number of divisions in halves that the stability is the mean of."""

MOST_SEGMENTS = 12
"""Maximum number of segments of a table."""

MANY_CLUSTERS = 6
"""Least number of clusters, if it is given, for which pixels are not taken as a table."""

FEW = 20_000
"""Number of rows up to which one thread is as fast as several, which would wait for each other."""

EQUAL = 0.01
"""Largest difference of lengths, relative to their mean, of rows that all have the same length."""

WIDE, VERY_WIDE = 32, 96
"""Least number of columns of pixels, and of embeddings whose lengths differ."""


@dataclass(frozen=True, eq=False)
class RowFit:
    """Clusters of rows.

    Attributes
    ----------
    frame : Frame
    posterior : Posterior
    merging : Merging
    separation : ndarray of shape (n_clusters,)
        Jensen-Shannon divergence between each cluster and the rest, in nats.
    stability : float
        How far two halves of the rows agree about the clusters, from 0 to 1.
    cluster_stability : ndarray of shape (n_clusters,)
        The same for each cluster.
    verdict : {"clusters", "segments", "none"} or None
        None if the number of clusters was given.
    selection : dict of lists
        How the number was chosen; empty if it was given.
    trained : Trained or None
        How the network was trained.
    """

    frame: Frame
    posterior: Posterior
    merging: Merging
    separation: Array
    stability: float
    cluster_stability: Array
    verdict: Verdict | None
    selection: dict[str, list[float]]
    trained: Trained | None


def kind_of(rows: NDArray[Any], metric: str = "euclidean") -> tuple[Kind, str]:
    """What rows of numbers are, and why.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        A sample suffices.
    metric : {"euclidean", "cosine"}

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> kind_of(rng.normal(size=(50, 4)))
    ('table', '4 columns')
    >>> kind_of(rng.normal(size=(500, 384)))
    ('embeddings', '384 dense columns of one scale')
    """
    n_columns = rows.shape[1]
    if metric == "cosine":
        return "embeddings", "metric='cosine'"
    if n_columns < WIDE:
        return "table", f"{n_columns} columns"
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    n_values = float(np.median([len(np.unique(column)) for column in rows.T]))
    if n_values > 2 and np.ptp(lengths) <= EQUAL * lengths.mean():
        return "embeddings", "rows of one length"
    ranges = np.ptp(rows, axis=0)
    low, high = np.quantile(ranges[ranges > 0.0], [0.25, 0.9]) if ranges.any() else (0.0, 1.0)
    if len(rows) > n_columns >= VERY_WIDE and high <= 10.0 * low and n_values > 0.5 * len(rows):
        return "embeddings", f"{n_columns} dense columns of one scale"
    if high <= 4.0 * low and n_values >= 8 and _adjacent_correlation(rows) >= 0.2:
        return "pixels", f"{n_columns} columns of one scale that resemble their neighbours"
    return "table", f"{n_columns} columns of different kinds"


def _adjacent_correlation(rows: NDArray[Any]) -> float:
    """Median correlation of varying columns with the next one."""
    standard = rows[:, np.ptp(rows, axis=0) > 0.0]
    standard = (standard - standard.mean(axis=0)) / standard.std(axis=0)
    return float(np.median(np.abs((standard[:, 1:] * standard[:, :-1]).mean(axis=0))))


def fit_rows(
    rows: Array,
    n_clusters: int | None,
    *,
    kind: Kind,
    keep_scale: bool = False,
    network: nn.Module | None = None,
    objective: Objective | None = None,
    max_iter: int | None = None,
    n_hidden: int | None = None,
    n_neighbors: int = 15,
    max_clusters: int = 200,
    hints: Hints = NO_HINTS,
    device: str = "auto",
    rng: np.random.RandomState,
    verbose: bool = False,
) -> RowFit:
    """Find clusters of rows; :class:`neuralbayes.InformationClusterer` says more.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
        Embeddings must have unit length.
    n_clusters : int or None
        None chooses it.
    kind : {"table", "embeddings", "pixels"}
    keep_scale : bool
        Whether the standard deviations of the columns were chosen; other tables are standardised.
    network : nn.Module, optional
        Your network, which is copied; by default a quadratic softmax for tables, otherwise an MLP.
    objective : Objective, optional
        Asks for a network on tables, too.
    max_iter, n_hidden : int, optional
    n_neighbors, max_clusters : int
    hints : Hints
    device : str
    rng : RandomState
    verbose : bool
    """
    if kind == "pixels" and n_clusters is not None and n_clusters < MANY_CLUSTERS:
        kind = "table"  # few clusters are better left to a quadratic softmax
    with threadpool_limits(1 if len(rows) < FEW else None):
        spaces, frame = _spaces(rows, kind, keep_scale, rng, hints.weight)
        space = spaces[0]
        verdict: Verdict | None = None
        selection: dict[str, list[float]] = {}
        if n_clusters is None:
            n_clusters, verdict, selection = choose_number(space, kind, max_clusters, hints, rng)
            n_clusters = max(n_clusters, least_number(hints, None))
        distances, neighbors = nearest_neighbors(space.denoised, min(n_neighbors, len(rows) - 1), verbose=verbose)
        voted, shares = np.zeros(len(rows), np.int64), np.ones((len(rows), 1))
        if n_clusters > 1:
            votes = _votes(spaces, rows, kind, n_clusters, rng, hints)
            voted, shares = agree(votes, n_clusters, rng, hints)
            if hints.known is not None:
                free = _votes(spaces, rows, kind, n_clusters, rng, Hints(hints.weight))
                shares = taught_votes(shares, free, space.denoised, neighbors, hints)
                voted = shares.argmax(axis=1)
    trained = None
    posterior: Posterior
    learns = kind != "table" or network is not None or objective is not None
    if n_clusters == 1 or not learns:
        posterior = maximize(space.points, np.eye(n_clusters)[voted], space.floor, hints.weight)
        points = space.points
    else:
        if network is not None:
            frame = own_frame(rows, hints.weight)
            points = frame(rows)
        elif kind == "embeddings":
            points = space.points
        else:
            points, frame = space.denoised, frame.then(space.metric)
        trained, posterior = fit_network(
            points, distances[:, -1], shares, network, objective, max_iter, n_hidden, hints, device, rng, verbose
        )
    logits = posterior.logits(points)
    posterior, logits = _filled(posterior, logits, voted)
    pool = hints.pool()
    some = slice(None) if pool is None else pool
    floor = space.metric.T @ space.floor @ space.metric
    temperature = calibrated_temperature(logits[some], space.denoised[some], floor, shares[some])
    posterior, p_zx = posterior.divided(temperature), softmax(logits / temperature, axis=1)
    stability, of_clusters = _stability(space, kind, p_zx.argmax(axis=1), n_clusters, hints, rng)
    return RowFit(
        frame,
        posterior,
        merge_states(neighbor_joint(p_zx, neighbors, hints.weight)),
        separation(p_zx, neighbors, hints.weight),
        stability,
        of_clusters,
        verdict,
        selection,
        trained,
    )


def _spaces(
    rows: Array, kind: Kind, keep_scale: bool, rng: np.random.RandomState, weight: Array | None
) -> tuple[list[Space], Frame]:
    """The spaces that votes are taken in, the one that p(z|x) is a function of first, and the frame of that one."""
    if not np.ptp(rows, axis=0).any():
        raise ValueError("X must contain at least 2 distinct samples, got 1 repeated; check how X was read or made")
    if kind == "table":
        scaled, frame = scalings(rows, weight, keep_scale=keep_scale)
        made = {name: make_space(x, rng, weight) for name, x in scaled.items()}
        first, basis = made.pop("clipped")
        return [first, *(space for space, _ in made.values())], frame.then(basis)
    center = np.average(rows, axis=0, weights=weight)
    nowhere = np.full(len(center), np.inf)
    if kind == "embeddings":
        basis = principal_axes(rows - center, EMBEDDING_DIMENSIONS, rng, weight)
        n = basis.shape[1]
        return [Space((rows - center) @ basis, np.zeros((n, n)), np.eye(n))], Frame(center, basis, -nowhere, nowhere)
    scale = 1.0 / np.sqrt(np.square(rows - center).mean())
    space, basis = make_space((rows - center) * scale, rng, weight)
    return [space], Frame(center, basis * scale, -nowhere, nowhere)


def _votes(
    spaces: list[Space], rows: Array, kind: Kind, n_clusters: int, rng: np.random.RandomState, hints: Hints
) -> list[Labels]:
    if kind == "embeddings":
        return embedding_votes(rows.astype(np.float32), n_clusters, rng, hints)
    votes = table_votes(spaces, n_clusters, rng, hints)
    return votes if kind == "table" else votes + embedding_votes(spaces[0].points, n_clusters, rng, hints)


def choose_number(
    space: Space, kind: Kind, max_clusters: int, hints: Hints, rng: np.random.RandomState
) -> tuple[int, Verdict, dict[str, list[float]]]:
    """The number of clusters, the verdict, and how the number was chosen.

    Tables are cut at valleys; without any, they are divided into the number of segments that halves of the rows agree
    about, times the silhouette. For embeddings and pixels the agreement alone decides, and valleys only the verdict.
    """
    seen = thinned(space, hints)
    few = seen.of(np.random.RandomState(0).permutation(len(seen.points))[: HALVED_ROWS[kind]])
    n_rows = len(few.points)
    most = min(max_clusters, n_rows // 10, len(np.unique(few.points, axis=0)))
    if kind == "table":
        n_valleys, selection = count_valleys(seen, max_clusters)
        if n_valleys > 1:
            return n_valleys, "clusters", selection
        tried = range(2, min(MOST_SEGMENTS, most) + 1)
        chosen, selection = choose_segments(_divide(few, kind, rng), n_rows, tried, rng, points=few.points)
        return chosen, "segments" if chosen > 1 else "none", selection
    divide = _divide(few, kind, rng)
    coarse = [k for k in (2, 3, 4, 6, 8, 11, 15, 20, 28, 40, 56, 80, 110, 150, 200) if k <= most]
    chosen, selection = choose_segments(divide, n_rows, coarse, rng)
    if chosen == 1:
        return 1, "none", selection
    place = coarse.index(chosen)
    near = np.geomspace(coarse[max(0, place - 1)], coarse[min(len(coarse) - 1, place + 1)], 7).round().astype(int)
    chosen, selection = choose_segments(divide, n_rows, sorted({int(k) for k in near} - set(coarse)), rng, selection)
    n_valleys, _ = count_valleys(few.of(np.arange(min(n_rows, 2000))), 2)
    return chosen, "clusters" if n_valleys > 1 else "segments", selection


def _divide(space: Space, kind: Kind, rng: np.random.RandomState) -> Any:
    """Divides some rows of a space, and extends the division to all of them: a mixture for tables, or k-means."""

    def by_mixture(rows: Labels, n_clusters: int) -> Labels:
        half = space.of(rows)
        start = np.eye(n_clusters)[kmeans(half.denoised, n_clusters, rng)]
        labels: Labels = fit_mixture(half.points, start, half.floor)[0].logits(space.points).argmax(axis=1)
        return labels

    def by_kmeans(rows: Labels, n_clusters: int) -> Labels:
        points = space.denoised.astype(np.float32)
        labels = kmeans(points[rows], n_clusters, rng)
        centers = np.stack([points[rows][labels == k].mean(axis=0) for k in range(labels.max() + 1)])
        nearest: Labels = nearest_neighbors(centers, 1, queries=points)[1][:, 0]
        return nearest

    return by_mixture if kind == "table" else by_kmeans


def _stability(
    space: Space, kind: Kind, labels: Labels, n_clusters: int, hints: Hints, rng: np.random.RandomState
) -> tuple[float, Array]:
    """How far halves of the rows agree, for the whole and for each cluster."""
    if n_clusters == 1 or len(labels) < 2 * n_clusters:
        return (1.0 if n_clusters == 1 else 0.0), np.full(n_clusters, float(n_clusters == 1))
    few = rng.permutation(len(labels))[: HALVED_ROWS[kind]]
    divide = _divide(space.of(few), kind, rng)
    pairs = [halves(divide, len(few), n_clusters, rng) for _ in range(N_SPLITS)]
    return agreement(pairs), agreement_of_clusters(pairs, labels[few], n_clusters)


def updated_stability(
    points: Array, kind: Kind, labels: Labels, n_clusters: int, rng: np.random.RandomState
) -> tuple[float, Array]:
    """The stability, and that of each cluster, of points (n_rows, n_dimensions) in the coordinates of p(z|x)."""
    floor, metric = np.diag(rounding_variance(points[:ROUNDING_ROWS])), np.eye(points.shape[1])
    if kind == "table":
        metric = metric_of_neighbors(points[rng.permutation(len(points))], floor)
    return _stability(Space(points, floor, metric), kind, labels, n_clusters, NO_HINTS, rng)


def own_frame(rows: Array, weight: Array | None) -> Frame:
    """The frame of a user's network: rows centred, and divided by one number."""
    center = np.average(rows, axis=0, weights=weight)
    nowhere = np.full(len(center), np.inf)
    scale = 1.0 / np.sqrt(np.square(rows - center).mean())
    return Frame(center, np.full(len(center), scale), -nowhere, nowhere)


def fit_network(
    points: Array,
    farthest: Array,
    shares: Array,
    body: nn.Module | None,
    objective: Objective | None,
    max_iter: int | None,
    n_hidden: int | None,
    hints: Hints,
    device: str,
    rng: np.random.RandomState,
    verbose: bool,
) -> tuple[Trained, Network]:
    """Train a network on the votes, then with the objective.

    Parameters
    ----------
    points : ndarray of shape (n_rows, n_dimensions)
        Inputs of the network.
    farthest : ndarray of shape (n_rows,)
        Distance to the farthest neighbour, which determines the length of the adversarial step.
    shares : ndarray of shape (n_rows, n_clusters)
    body, objective, max_iter, n_hidden, hints, device, rng, verbose
        As in `fit_rows`.
    """
    import torch

    from neuralbayes.clusters import training
    from neuralbayes.system.devices import computing_on

    n_clusters, n_dimensions = shares.shape[1], points.shape[1]
    n_hidden = n_hidden or training.consensus_width(n_dimensions, n_clusters)
    inputs = torch.from_numpy(points).float()
    radius = torch.from_numpy(training.RADIUS * farthest).float()
    n_products = training.BATCH_SIZE * (n_dimensions + n_hidden + n_clusters) * n_hidden
    with computing_on(device), training.seeded(rng, n_products if body is None else np.inf):
        network = training.state_network(body, inputs[:2], n_clusters, n_hidden)
        trained = training.train_from_votes(
            network,
            lambda indices: inputs[indices],
            radius,
            shares,
            steps=max_iter,
            objective=objective,
            hints=hints,
            verbose=verbose,
        )
    return trained, Network(network.eval().requires_grad_(False), device)


def _filled(posterior: Posterior, logits: Array, voted: Labels) -> tuple[Posterior, Array]:
    """Raise the logits of clusters without rows until half of the rows that were voted into them are theirs."""
    raised = np.zeros(logits.shape[1])
    for k in np.setdiff1d(np.unique(voted), logits.argmax(axis=1)):
        own = logits[voted == k]
        raised[k] = np.median(own.max(axis=1) - own[:, k]) + 1e-6
    return (posterior.raised(raised), logits + raised) if raised.any() else (posterior, logits)
