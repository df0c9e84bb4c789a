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
from neuralbayes.clusters.known import NO_HINTS, Hints, least_number, votes_with_known
from neuralbayes.clusters.merging import Merging, merge_states, neighbor_joint, separation
from neuralbayes.clusters.number import Kind, Verdict, choose_number, confirmed, stability
from neuralbayes.clusters.posterior import Network, Posterior, Trained
from neuralbayes.clusters.space import Frame, Space, make_space, principal_axes, scalings
from neuralbayes.clusters.votes import agree, embedding_votes, maximize, table_votes
from neuralbayes.neighbors import nearest_neighbors

if TYPE_CHECKING:
    from torch import nn

    from neuralbayes.objectives import Objective

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

TABLE_ROWS = 10_000  # rows of a table to fit p(z|x) to; its parameters are few
EMBEDDING_DIMENSIONS = 128  # principal components of embeddings that the network takes
MANY_CLUSTERS = 6  # given number of clusters from which pixels are not taken as a table
FEW = 20_000  # rows up to which one thread is as fast as several, which would wait for each other
EQUAL = 0.01  # largest difference of lengths, relative to their mean, of rows that all have the same length
WIDE, VERY_WIDE = 32, 96  # least number of columns of pixels, and of embeddings whose lengths differ


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit finds, for rows and for images."""

    frame: Frame
    posterior: Posterior  # of n_states states
    membership: Array  # (n_states, n_clusters): 1 where a state belongs to a cluster, else 0
    merging: Merging  # how the states merge
    separation: Array  # (n_clusters,): Jensen-Shannon divergence between each cluster and the rest, in nats
    stability: float | None  # how far two halves of the rows agree about the clusters; None where it was not measured
    cluster_stability: Array | None  # the same for each cluster (n_clusters,)
    verdict: Verdict
    selection: dict[str, list[float]]  # how the number of clusters was chosen; empty if it was given
    trained: Trained


def kind_of(rows: NDArray[Any], metric: Literal["euclidean", "cosine"] = "euclidean") -> tuple[Kind, str]:
    """What rows of numbers (n_rows, n_columns) are, and why. A sample of the rows suffices.

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
    if high <= 4.0 * low and n_values >= 8:
        standard = rows[:, ranges > 0.0]
        standard = (standard - standard.mean(axis=0)) / standard.std(axis=0)
        correlation = np.abs((standard[:, 1:] * standard[:, :-1]).mean(axis=0))  # of each column with the next one
        if np.median(correlation) >= 0.2:
            return "pixels", f"{n_columns} columns of one scale that resemble their neighbours"
    return "table", f"{n_columns} columns of different kinds"


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
) -> Fit:
    """Find clusters of rows (n_rows, n_columns); :class:`neuralbayes.InformationClusterer` says more.

    Embeddings must have unit length. `keep_scale` says that the standard deviations of the columns were chosen; other
    tables are standardised. `network` or `objective` ask for a network on tables, too.
    """
    if kind == "pixels" and n_clusters is not None and n_clusters < MANY_CLUSTERS:
        kind = "table"  # few clusters are better left to a quadratic softmax
    selection: dict[str, list[float]] = {}
    with threadpool_limits(1 if len(rows) < FEW else None):
        spaces, frame = _spaces(rows, kind, keep_scale, rng, hints.weight)
        space = spaces[0]
        if n_clusters is None:
            n_clusters, verdict, selection = choose_number(space, kind, max_clusters, hints, rng)
            n_clusters = max(n_clusters, least_number(hints, None))
        else:
            verdict = confirmed(space, kind, n_clusters, hints)
        distances, neighbors = nearest_neighbors(space.denoised, min(n_neighbors, len(rows) - 1), verbose=verbose)
        voted, shares = np.zeros(len(rows), np.int64), np.ones((len(rows), 1))
        if n_clusters > 1:
            voted, shares = agree(_votes(spaces, rows, kind, n_clusters, rng, hints), n_clusters, rng, hints)
            if hints.constrain:
                free = _votes(spaces, rows, kind, n_clusters, rng, Hints(hints.weight))
                shares = votes_with_known(shares, free, space.denoised, neighbors, hints)
                voted = shares.argmax(axis=1)
    posterior: Posterior
    trained, points = Trained(), space.points
    if n_clusters == 1 or (kind == "table" and network is None and objective is None):
        posterior = maximize(points, np.eye(n_clusters)[voted], space.floor, hints.weight)
    else:
        import torch

        from neuralbayes.clusters import training

        if network is not None:
            frame = Frame.unbounded(*_center_and_scale(rows, hints.weight))
            points = frame(rows)
        elif kind != "embeddings":
            points, frame = space.denoised, frame.then(space.metric)
        n_inputs = points.shape[1]
        n_hidden = n_hidden or int(np.clip(2 * max(n_inputs, n_clusters), 128, 512))
        n_products = training.BATCH_SIZE * (n_inputs + n_hidden + n_clusters) * n_hidden
        with training.seeded(rng, n_products if network is None else np.inf):
            made = training.state_network(network, torch.from_numpy(points[:2]).float(), n_clusters, n_hidden)
            trained = training.train_from_votes(
                made,
                points,
                distances[:, -1],
                shares,
                steps=max_iter,
                objective=objective,
                hints=hints,
                device=device,
                verbose=verbose,
            )
        posterior = Network(made.eval().requires_grad_(False), device)
    posterior, logits = _filled(posterior, posterior.logits(points), voted)
    pool = hints.pool()
    some = slice(None) if pool is None else pool
    floor = space.metric.T @ space.floor @ space.metric
    temperature = calibrated_temperature(logits[some], space.denoised[some], floor, shares[some])
    p_zx = softmax(logits / temperature, axis=1)
    whole, of_clusters = stability(space, kind, p_zx.argmax(axis=1), n_clusters, rng)
    return Fit(
        frame,
        posterior.divided(temperature),
        np.eye(n_clusters),
        merge_states(neighbor_joint(p_zx, neighbors, hints.weight)),
        separation(p_zx, neighbors, hints.weight),
        whole,
        of_clusters,
        "segments" if verdict == "none" and n_clusters > 1 else verdict,  # known classes ask for more
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
    center, scale = _center_and_scale(rows, weight)
    if kind == "embeddings":
        basis = principal_axes(rows - center, EMBEDDING_DIMENSIONS, rng, weight)
        n = basis.shape[1]
        return [Space((rows - center) @ basis, np.zeros((n, n)), np.eye(n))], Frame.unbounded(center, basis)
    space, basis = make_space((rows - center) * scale, rng, weight)
    return [space], Frame.unbounded(center, basis * scale[:, None])


def _center_and_scale(rows: Array, weight: Array | None) -> tuple[Array, Array]:
    """The mean of each column, and one factor for all that makes their mean variance 1: (n_columns,) each."""
    center = np.average(rows, axis=0, weights=weight)
    return center, np.full(len(center), 1.0 / np.sqrt(np.square(rows - center).mean()))


def _votes(
    spaces: list[Space], rows: Array, kind: Kind, n_clusters: int, rng: np.random.RandomState, hints: Hints
) -> list[Labels]:
    if kind == "embeddings":
        return embedding_votes(rows.astype(np.float32), n_clusters, rng, hints)
    votes = table_votes(spaces, n_clusters, rng, hints)
    return votes if kind == "table" else votes + embedding_votes(spaces[0].points, n_clusters, rng, hints)


def _filled(posterior: Posterior, logits: Array, voted: Labels) -> tuple[Posterior, Array]:
    """Raise the logits of clusters without rows until half of the rows that were voted into them are theirs."""
    raised = np.zeros(logits.shape[1])
    for k in np.setdiff1d(np.unique(voted), logits.argmax(axis=1)):
        own = logits[voted == k]
        raised[k] = np.median(own.max(axis=1) - own[:, k]) + 1e-6
    return (posterior.raised(raised), logits + raised) if raised.any() else (posterior, logits)
