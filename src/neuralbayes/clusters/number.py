r"""The number of clusters, how far two halves of the rows agree about them, and the verdict.

Rows are cut at valleys of low density that held-out rows confirm (:mod:`~neuralbayes.clusters.valleys`). Where there
are none, rows can still be divided in a way that is found again: each half of the rows is divided on its own, both
divisions are extended to all rows, and their adjusted mutual information says how far they agree. It is high for
structure and for a few segments of a continuum alike, and low for divisions by chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_mutual_info_score, silhouette_score

from neuralbayes.clusters.known import Hints
from neuralbayes.clusters.space import Space, thinned
from neuralbayes.clusters.valleys import N_SEARCHES, count_valleys
from neuralbayes.clusters.votes import fit_mixture, kmeans
from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Kind = Literal["table", "embeddings", "pixels"]
Verdict = Literal["clusters", "segments", "none"]

HALVED_ROWS = {"table": 2000, "embeddings": 6000, "pixels": 6000}  # rows to divide in halves
N_SPLITS = 2  # divisions in halves whose mean agreement counts; a single one is noisy
FEW_CLUSTERS, N_AGAIN = 20, 2  # embeddings: clusters whose agreement is measured again, and how often
MOST_SEGMENTS = 12  # of a table
COARSE = (2, 3, 4, 6, 8, 11, 15, 20, 28, 40, 56, 80, 110, 150, 200)  # compared first; then those near the best of them
VALLEY_ROWS, OF_TABLES, A_CLUSTER = 2000, 320, 64  # rows to look for valleys in if they decide nothing but the verdict
REPEATABLE = 0.35  # agreement of two halves below which a division is not repeatable at all
EQUAL = 1e-3  # equal agreements; halves agree as much about clusters as about the same ones joined
BY_CHANCE_OF_TWO, BY_CHANCE = 0.74, 0.38  # largest agreement of halves of a Gaussian about two clusters, and more
SILHOUETTE_ROWS = 1000


def choose_number(
    space: Space, kind: Kind, max_clusters: int, hints: Hints, rng: np.random.RandomState
) -> tuple[int, Verdict, dict[str, list[float]]]:
    """The number of clusters, the verdict, and how the number was chosen.

    Tables are cut at valleys; without any, they are divided into the number of segments that halves of the rows agree
    about, times the silhouette. For embeddings and pixels the agreement alone decides, and valleys only the verdict.
    """
    seen = thinned(space, hints)
    few = _few(seen, kind)
    most = min(max_clusters, len(few.points) // 10, len(np.unique(few.points, axis=0)))
    if kind == "table":
        n_valleys, selection = count_valleys(seen, max_clusters)
        if n_valleys > 1:
            return n_valleys, "clusters", selection
        chosen, selection = choose_segments(few, kind, range(2, min(MOST_SEGMENTS, most) + 1), rng)
        return chosen, "segments" if chosen > 1 else "none", selection
    coarse = [k for k in COARSE if k <= most]
    chosen, selection = choose_segments(few, kind, coarse, rng)
    if chosen == 1:
        return 1, "none", selection
    place = coarse.index(chosen)
    near = np.geomspace(coarse[max(0, place - 1)], coarse[min(len(coarse) - 1, place + 1)], 7).round().astype(int)
    chosen, selection = choose_segments(few, kind, sorted({int(k) for k in near} - set(coarse)), rng, selection)
    return chosen, confirmed(space, kind, chosen, hints), selection


def confirmed(space: Space, kind: Kind, n_clusters: int, hints: Hints) -> Verdict:
    """Whether held-out rows confirm a valley between all clusters or, in many dimensions, between any."""
    if n_clusters == 1:
        return "none"
    wanted, most = (n_clusters, max(OF_TABLES, A_CLUSTER * n_clusters)) if kind == "table" else (2, VALLEY_ROWS)
    few = _few(thinned(space, hints), kind)
    all_rows = len(few.points) <= most
    few = few.of(np.arange(min(len(few.points), most)))
    n_valleys, _ = count_valleys(few, wanted, N_SEARCHES if all_rows else 1)
    return "clusters" if n_valleys >= wanted else "segments"


def _few(space: Space, kind: Kind) -> Space:
    """The rows to divide in halves, which do not depend on the seed of the fit."""
    return space.of(np.random.RandomState(0).permutation(len(space.points))[: HALVED_ROWS[kind]])


def choose_segments(
    space: Space,
    kind: Kind,
    tried: Sequence[int],
    rng: np.random.RandomState,
    before: dict[str, list[float]] | None = None,
) -> tuple[int, dict[str, list[float]]]:
    """The number of clusters that two halves of the rows agree about most; 1 if no division is repeatable.

    For tables, the agreement is multiplied by the silhouette of k-means. Otherwise it counts from what rows without
    structure reach, which is much more with two or three clusters than with many. Numbers that were tried `before` are
    compared, too. Also returns "n_clusters", their "agreement" and, for tables, their "silhouette".
    """
    n_splits = N_SPLITS if kind == "table" else 1
    first = before is None
    before = before or {"n_clusters": [], "agreement": []}
    selection = {
        "n_clusters": [*before["n_clusters"], *map(float, tried)],
        "agreement": before["agreement"]
        + [agreement([halves(space, kind, k, rng) for _ in range(n_splits)]) for k in tried],
    }
    if kind == "table":
        few = rng.permutation(len(space.points))[:SILHOUETTE_ROWS]
        selection["silhouette"] = [_silhouette(space.points[few], k, rng) for k in tried]
    numbers, agreements = np.array(selection["n_clusters"]), np.array(selection["agreement"])
    if agreements.max(initial=0.0) < REPEATABLE:
        return 1, selection
    if kind == "table":
        return int(numbers[np.argmax(agreements * selection["silhouette"])]), selection
    chance = np.where(numbers > 2, BY_CHANCE, BY_CHANCE_OF_TWO)
    score = (agreements - chance) / (1.0 - chance)
    again: set[int] = set()
    while first and numbers[best := int(score.argmax())] <= FEW_CLUSTERS and best not in again:
        # One division into few clusters may agree by luck: the best number must be the best in several.
        again.add(best)
        more = agreement([halves(space, kind, int(numbers[best]), rng) for _ in range(N_AGAIN)])
        agreements[best] = (agreements[best] + N_AGAIN * more) / (1 + N_AGAIN)
        score = (agreements - chance) / (1.0 - chance)
    selection["agreement"] = agreements.tolist()
    return int(numbers[score > score.max() - EQUAL].max()), selection  # of several equally good ones, the largest


def divide(space: Space, kind: Kind, rows: Labels, n_clusters: int, rng: np.random.RandomState) -> Labels:
    """Divide the rows at some indices, a table by a mixture, others by k-means, and return the clusters of all rows."""
    if kind == "table":
        half = space.of(rows)
        start = np.eye(n_clusters)[kmeans(half.denoised, n_clusters, rng)]
        labels: Labels = fit_mixture(half.points, start, half.floor)[0].logits(space.points).argmax(axis=1)
        return labels
    points = space.denoised.astype(np.float32)
    own = kmeans(points[rows], n_clusters, rng)
    centers = np.stack([points[rows][own == k].mean(axis=0) for k in range(own.max() + 1)])
    return nearest_neighbors(centers, 1, queries=points)[1][:, 0]


def halves(space: Space, kind: Kind, n_clusters: int, rng: np.random.RandomState) -> tuple[Labels, Labels]:
    """Clusters of all rows (n_rows,) according to each of two random halves of them."""
    n_rows = len(space.points)
    order = rng.permutation(n_rows)
    first, second = np.sort(order[: n_rows // 2]), np.sort(order[n_rows // 2 :])
    return divide(space, kind, first, n_clusters, rng), divide(space, kind, second, n_clusters, rng)


def stability(
    space: Space, kind: Kind, labels: Labels, n_clusters: int, rng: np.random.RandomState
) -> tuple[float, Array]:
    """How far halves of the rows agree about the clusters, for the whole and for each cluster (n_clusters,)."""
    if n_clusters == 1 or len(labels) < 2 * n_clusters:
        return (1.0 if n_clusters == 1 else 0.0), np.full(n_clusters, float(n_clusters == 1))
    few = rng.permutation(len(labels))[: HALVED_ROWS[kind]]
    part = space.of(few)
    pairs = [halves(part, kind, n_clusters, rng) for _ in range(N_SPLITS)]
    return agreement(pairs), agreement_of_clusters(pairs, labels[few], n_clusters)


def agreement(pairs: Sequence[tuple[Labels, Labels]]) -> float:
    """Mean adjusted mutual information of pairs of partitions, at least 0."""
    return max(0.0, float(np.mean([adjusted_mutual_info_score(*pair) for pair in pairs])))


def agreement_of_clusters(pairs: Sequence[tuple[Labels, Labels]], labels: Labels, n_clusters: int) -> Array:
    """How far the two partitions of each pair agree about each cluster: (n_clusters,), in [0, 1].

    The clusters of both are matched to `labels`, and their members compared: the number of rows in both, as a share of
    the rows in either.
    """
    total = np.zeros(n_clusters)
    for pair in pairs:
        first, second = (_matched(partition, labels, n_clusters) for partition in pair)
        for k in range(n_clusters):
            in_first, in_second = first == k, second == k
            total[k] += (in_first & in_second).sum() / max(1, (in_first | in_second).sum())
    return total / len(pairs)


def _matched(partition: Labels, labels: Labels, n_clusters: int) -> Labels:
    """The partition with the numbers of the clusters in `labels` that it shares most rows with."""
    n = max(n_clusters, int(partition.max()) + 1)
    shared = np.zeros((n, n))
    np.add.at(shared, (partition, labels), 1.0)
    return np.asarray(linear_sum_assignment(shared, maximize=True)[1][partition], dtype=np.int64)


def _silhouette(points: Array, n_clusters: int, rng: np.random.RandomState) -> float:
    labels = kmeans(points, n_clusters, rng)
    n_found = len(np.unique(labels))
    return max(0.0, float(silhouette_score(points, labels))) if 1 < n_found < len(points) else 0.0
