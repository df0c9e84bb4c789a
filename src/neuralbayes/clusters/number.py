r"""The number of clusters, and how far two halves of the rows agree about them.

**Valleys.** Rows are cut at valleys of the density that held-out rows confirm. Most rows are used to find a band with
few rows between two hills. The test then counts held-out rows: v of them fall into the band, which has width h, and k
fall onto a hill, which has width w. Under the null hypothesis, the density is log-concave. Its projection on any
direction is then log-concave as well (Prékopa 1973) and has no valley, so the band is at least as dense as the lower
hill. A share of at least h / (h + w) of the rows in the band and on that hill then falls into the band, and

.. math:: P(V \le v), \quad V \sim \mathrm{Binomial}(v + k, h / (h + w)),

is a p-value for that hill. The larger p-value of the two hills counts. The test makes no assumption about the dimension
or about the method that found the band. Hyperplanes cut a log-concave density into log-concave parts, so the same test
applies to the rows on each side of a cut, and so on.

**Halves.** Where there are no valleys, rows can still be divided in a way that is found again. Each half of the rows is
divided on its own, both divisions are extended to all rows, and their adjusted mutual information says how far they
agree. It is high for structure and for a few segments of a continuum alike, and low for divisions by chance.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.optimize import linear_sum_assignment
from scipy.special import betainc
from sklearn.metrics import adjusted_mutual_info_score, silhouette_score

from neuralbayes.clusters.kmeans import kmeans
from neuralbayes.clusters.space import Space, metric_of_neighbors

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Divide = Callable[[Labels, int], Labels]
"""Divides the rows at some indices into a number of clusters, and returns the clusters of all rows."""

Side = NDArray[np.bool_]

LEVEL = 0.1
"""Maximum p-value of a valley through all rows. For a part of the rows, it is multiplied by their share (Meinshausen
2008)."""

DEPTH = 0.6
"""Maximum density of a valley, relative to the lower of its two hills."""

LEAST_ROWS = 16
"""Minimum number of rows to look for a valley in."""

LEAST_ON_A_SIDE = 4

MOST_ROWS = 1000
"""Maximum number of rows, drawn at random, to look for a valley in."""

N_SEARCHES = 5
"""Number of searches with different random numbers whose median counts, for up to `MOST_ROWS` rows."""

N_FOLDS = 5
N_PASSES = 5

HOPELESS = 0.5
"""P-value above which no more passes are made."""

N_WARD = 5
"""Maximum number of Ward's clusters. The search starts from each cluster of each number from 2 to this one."""

N_REFINEMENTS = 3

THINNEST = 0.05
"""Minimum half-width of a hill, in units of the distance between the hills."""

MIDDLES, HALF_WIDTHS = (
    grid.ravel() for grid in np.meshgrid(np.arange(0.25, 0.76, 0.05), [0.05, 0.1, 0.15, 0.2, 0.3], indexing="ij")
)
_inside = (MIDDLES - HALF_WIDTHS > -1e-9) & (MIDDLES + HALF_WIDTHS < 1.0 + 1e-9)
MIDDLES, HALF_WIDTHS = MIDDLES[_inside], HALF_WIDTHS[_inside]
"""Middles and half-widths of the bands to try, in coordinates with the hills at 0 and 1."""

REPEATABLE = 0.35
"""Agreement of two halves below which a division is not repeatable at all."""

EQUAL = 1e-3
"""Difference of agreements that counts as none. Halves agree as much about clusters as about the same ones joined."""

STRUCTURE = 0.8
"""Agreement of two halves that at most 3 % of samples without structure exceed, at their best number of clusters."""

BY_CHANCE_OF_TWO, BY_CHANCE = 0.74, 0.38
"""Largest agreement of halves of one Gaussian in many dimensions about two clusters, and about more."""

TABLE_SPLITS = 2
"""Number of divisions of a table in halves whose mean agreement counts; a single one is noisy."""

SILHOUETTE_ROWS = 1000
"""Maximum number of rows, drawn at random, for the silhouette."""

SCATTER = 2.0
"""Variance of the noise added to the values, in units of the variance of their rounding. With 1, two categories would
be two hills."""


class Valley(NamedTuple):
    """Evidence of held-out rows for a valley."""

    p_value: float
    depth: float  # density in the band, divided by the density on the lower hill


@dataclass(frozen=True)
class Band:
    """A band between two hills, at 0 and at 1 along a direction."""

    direction: Array
    offset: float
    middle: float
    half_width: float
    hills: Array  # their half-widths (2,)
    p_value: float  # from the rows that found the band, so it is biased

    def along(self, x: Array) -> Array:
        """Coordinate of each row along the direction: (n_rows, n_dimensions) -> (n_rows,)."""
        result: Array = x @ self.direction - self.offset
        return result

    def reversed(self) -> Band:
        """The same band, with the hills exchanged."""
        return Band(
            -self.direction, -self.offset - 1.0, 1.0 - self.middle, self.half_width, self.hills[::-1], self.p_value
        )


def count_valleys(space: Space, max_clusters: int) -> tuple[int, dict[str, list[float]]]:
    """The number of clusters with valleys between them.

    Rows are compared in units of the noise. Values are scattered over the interval that they were rounded from, because
    gaps between codes are not valleys. Rows are sorted first, and the random numbers do not depend on the seed of the
    fit, so the answer depends neither on the order of the rows nor on the seed. For few rows, it is the median of
    several searches.

    Returns
    -------
    n_clusters : int
        From 1 to `max_clusters`.
    valleys : dict
        "rows", the number of rows that each valley divides, in descending order, and "p_value" of each valley.
    """
    spread = space.points.std(axis=0)
    kept = spread > 1e-6 * spread.max()  # beyond the rank of the rows, directions are arbitrary
    rows, floor = space.points[:, kept], space.floor[kept][:, kept]
    order = np.lexsort(rows.T[::-1])
    root = _root(SCATTER * floor)
    found: list[tuple[int, list[tuple[int, float]]]] = []
    for seed in range(N_SEARCHES if len(order) <= MOST_ROWS else 1):
        points = rows[np.random.RandomState(seed).permutation(order)]
        scatter = np.random.RandomState(N_SEARCHES + seed).normal(size=points.shape) @ root
        x = (points + scatter) @ metric_of_neighbors(points, floor)
        labels, cuts = cut_at_valleys(x, max_clusters)
        found = sorted([*found, (int(labels.max()) + 1, sorted(cuts, reverse=True))])
        if [n for n, _ in found].count(found[len(found) // 2][0]) > N_SEARCHES // 2:
            break  # more searches cannot change the median
    number, cuts = found[len(found) // 2]
    return number, {"rows": [float(n) for n, _ in cuts], "p_value": [p for _, p in cuts]}


def cut_at_valleys(x: Array, max_clusters: int) -> tuple[NDArray[np.int64], list[tuple[int, float]]]:
    """Cut rows (n_rows, n_dimensions) by hyperplanes through valleys, always the largest part next.

    Returns
    -------
    labels : ndarray of shape (n_rows,)
    cuts : list of (int, float)
        The number of rows that each cut divides, and the p-value of its valley.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> x = rng.normal(size=(300, 2)) + 6.0 * (np.arange(300) // 100)[:, None]
    >>> np.bincount(cut_at_valleys(x, 20)[0]).tolist()
    [100, 100, 100]
    """
    rng = np.random.RandomState(0)
    queue = [(-len(x), 0, np.arange(len(x)))]  # the second number decides between parts of equal size
    whole: list[NDArray[np.int64]] = []
    cuts = []
    while queue and len(queue) + len(whole) < max_clusters:
        _, _, rows = heapq.heappop(queue)
        level = LEVEL * len(rows) / len(x)
        valley = held_out_valley(x[rows], rng, level)
        side = None
        if valley.p_value < level and valley.depth < DEPTH:
            band = emptiest_band(x[rng.permutation(rows)[:MOST_ROWS]])
            side = None if band is None else band.along(x[rows]) > band.middle
        if side is None or side.all() or not side.any():
            whole.append(rows)
            continue
        cuts.append((len(rows), valley.p_value))
        for number, part in enumerate((rows[side], rows[~side])):
            heapq.heappush(queue, (-len(part), 2 * len(cuts) + number, part))
    labels = np.empty(len(x), np.int64)
    for cluster, rows in enumerate(whole + [rows for _, _, rows in queue]):
        labels[rows] = cluster
    return labels, cuts


def is_between(x: Array, side: Side) -> bool:
    """Whether a valley lies between the rows (n_rows, n_dimensions) on one side and the rows on the other side.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> x, side = rng.normal(size=(200, 2)), np.arange(200) < 100
    >>> is_between(x, x[:, 0] > 0.0), is_between(x + 6.0 * side[:, None], side)
    (False, True)
    """
    valley = held_out_valley(x, np.random.RandomState(0), LEVEL, side)
    return valley.p_value < LEVEL and valley.depth < DEPTH


def held_out_valley(x: Array, rng: np.random.RandomState, level: float, side: Side | None = None) -> Valley:
    """Look for a valley by cross-validation: find it in four fifths of the rows, and count the other fifth in it.

    The counts are summed over the fifths and averaged over passes, each with a new random division into fifths. The
    p-value neglects that the bands of different fifths are found from overlapping sets of rows.

    Parameters
    ----------
    x : ndarray of shape (n_rows, n_dimensions)
    rng : RandomState
    level : float
        The required p-value. Passes stop early if the answer is clear.
    side : ndarray of bool of shape (n_rows,), optional
        Look for a valley between these rows and the others; by default anywhere.
    """
    valley = Valley(1.0, 1.0)
    if len(x) < LEAST_ROWS:
        return valley
    between, hills, expected, level_ground = 0.0, np.zeros(2), np.zeros(2), np.zeros(2)
    for n_passes in range(1, N_PASSES + 1):
        first = None
        folds = np.array_split(rng.permutation(len(x))[:MOST_ROWS], N_FOLDS)
        for fold in folds:
            others = np.concatenate([other for other in folds if other is not fold])
            band = emptiest_band(x[others]) if side is None else _band(x[others], side[others])
            if band is None:
                continue
            first = first or band
            band = band if band.direction @ first.direction >= 0.0 else band.reversed()
            in_band, in_hills = _counts(band.along(x[fold]), band.middle, band.half_width, band.hills)
            between, hills = between + float(in_band), hills + in_hills
            expected = expected + (in_band + in_hills) * band.half_width / (band.half_width + band.hills)
            level_ground = level_ground + in_hills * band.half_width / band.hills
        if not hills.all():
            return Valley(1.0, 1.0)
        p = _p_value(between / n_passes, hills / n_passes, expected / (between + hills))
        depth = (between / n_passes + 0.5) / (level_ground.min() / n_passes + 0.5)
        valley = Valley(float(p.max()), float(depth))
        if valley.p_value > HOPELESS or (valley.p_value < level / 100 and valley.depth < DEPTH / 2):
            break
    return valley


def emptiest_band(x: Array) -> Band | None:
    """The band with the smallest p-value between one of Ward's clusters and the other rows; None if there is none."""
    tree = linkage(x, "ward")
    sides: dict[bytes, Side] = {}
    for n_clusters in range(2, min(N_WARD, len(x) - 1) + 1):
        labels = fcluster(tree, n_clusters, "maxclust") - 1
        for cluster in range(labels.max() + 1):
            side = (labels == cluster) ^ (labels[0] == cluster)  # a side and its complement are the same
            sides[side.tobytes()] = side
    bands = [band for band in (_band(x, side) for side in sides.values()) if band is not None]
    return min(bands, key=lambda band: band.p_value, default=None)


def _band(x: Array, side: Side) -> Band | None:
    """The emptiest band along Fisher's direction, after a few rounds of dividing the rows along it again."""
    n, d = x.shape
    mean = x.mean(axis=0)
    x = x - mean
    total = x.T @ x
    for step in range(N_REFINEMENTS + 1):
        n_side = int(side.sum())
        if min(n_side, n - n_side) < LEAST_ON_A_SIDE:
            return None
        sums = side.astype(np.float64) @ x
        center = -sums / (n - n_side)
        difference = sums / n_side - center
        within = (total - np.outer(difference, difference) * (n_side * (n - n_side) / n)) / n
        direction = np.linalg.solve(within + (np.trace(within) / n + 1e-12) * np.eye(d), difference)
        length = float(direction @ difference)
        if not length > 0.0:
            return None
        direction /= length
        along = x @ direction - center @ direction
        again = along > 0.5
        if step == N_REFINEMENTS or (again == side).all():
            break
        side = again
    widths = np.array([along[~side].std(), along[side].std()]).clip(THINNEST)
    between, hills = _counts(along, MIDDLES, HALF_WIDTHS, widths[:, None])
    p = _p_value(between, hills, HALF_WIDTHS / (HALF_WIDTHS + widths[:, None])).max(axis=0)
    best = int(p.argmin())
    return Band(direction, float((mean + center) @ direction), MIDDLES[best], HALF_WIDTHS[best], widths, float(p[best]))


def _counts(along: Array, middle: Array | float, half_width: Array | float, hills: Array) -> tuple[Array, Array]:
    """Number of rows in bands (...) and on the two hills (2, ...)."""
    ordered = np.sort(along)

    def near(center: Array | float, width: Array | float) -> Array:
        lower, upper = (np.searchsorted(ordered, center + sign * width) for sign in (-1.0, 1.0))
        return np.asarray(upper - lower, dtype=np.float64)

    return near(middle, half_width), np.stack([near(0.0, hills[0]), near(1.0, hills[1])])


def _p_value(between: Array | float, hill: Array, share: Array) -> Array:
    """P(V <= between), V ~ Binomial(between + hill, share), for counts that need not be integers."""
    result: Array = betainc(np.maximum(hill, 1e-9), np.add(between, 1.0), 1.0 - share)
    return result


def _root(covariance: Array) -> Array:
    """The symmetric square root of a covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = (vectors * np.sqrt(values.clip(0.0))) @ vectors.T
    return root


def halves(divide: Divide, n_rows: int, n_clusters: int, rng: np.random.RandomState) -> tuple[Labels, Labels]:
    """Clusters of all rows (n_rows,) according to each of two random halves of them."""
    order = rng.permutation(n_rows)
    first, second = np.sort(order[: n_rows // 2]), np.sort(order[n_rows // 2 :])
    return divide(first, n_clusters), divide(second, n_clusters)


def agreement(pairs: Sequence[tuple[Labels, Labels]]) -> float:
    """Mean adjusted mutual information of pairs of partitions, at least 0.

    Examples
    --------
    >>> agreement([(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))])
    1.0
    """
    return max(0.0, float(np.mean([adjusted_mutual_info_score(*pair) for pair in pairs])))


def agreement_of_clusters(pairs: Sequence[tuple[Labels, Labels]], labels: Labels, n_clusters: int) -> Array:
    """How far the two partitions of each pair agree about each cluster: (n_clusters,), in [0, 1].

    The clusters of both are matched to `labels`, and their members compared: the number of rows in both, as a share of
    the rows in either.

    Examples
    --------
    >>> halves = np.array([0, 0, 1, 1, 2, 2]), np.array([2, 2, 1, 1, 0, 1])
    >>> agreement_of_clusters([halves], np.array([0, 0, 1, 1, 2, 2]), 3).round(2)
    array([1.  , 0.67, 0.5 ])
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


def choose_segments(
    divide: Divide,
    n_rows: int,
    tried: Sequence[int],
    rng: np.random.RandomState,
    selection: dict[str, list[float]] | None = None,
    points: Array | None = None,
) -> tuple[int, dict[str, list[float]]]:
    """The number of clusters that two halves of the rows agree about most.

    Parameters
    ----------
    divide : callable
    n_rows : int
    tried : sequence of int
        Numbers of clusters to compare.
    rng : RandomState
    selection : dict, optional
        Numbers that were tried before, which are compared, too.
    points : ndarray of shape (n_rows, n_dimensions), optional
        If given, the agreement is multiplied by the silhouette of k-means of these points. Otherwise it counts from
        what rows without structure reach, which is much more with two or three clusters than with many.

    Returns
    -------
    n_clusters : int
        1 if no division is repeatable: the agreement stays below `REPEATABLE`.
    selection : dict
        "n_clusters", their "agreement" and, with points, their "silhouette".
    """
    before = selection or {"n_clusters": [], "agreement": []}
    n_splits = 1 if points is None else TABLE_SPLITS
    agreements = [agreement([halves(divide, n_rows, k, rng) for _ in range(n_splits)]) for k in tried]
    numbers, agreements = before["n_clusters"] + [float(k) for k in tried], before["agreement"] + agreements
    selection = {"n_clusters": numbers, "agreement": agreements}
    if points is not None:
        few = rng.permutation(n_rows)[:SILHOUETTE_ROWS]
        selection["silhouette"] = [_silhouette(points[few], k, rng) for k in tried]
    if max(agreements, default=0.0) < REPEATABLE:
        return 1, selection
    if points is not None:
        return int(numbers[int(np.argmax(np.multiply(agreements, selection["silhouette"])))]), selection
    chance = np.array([BY_CHANCE if k > 2 else BY_CHANCE_OF_TWO for k in numbers])
    return largest_of_best(numbers, (np.array(agreements) - chance) / (1.0 - chance)), selection


def largest_of_best(tried: Sequence[float], score: ArrayLike) -> int:
    """The number of clusters with the best score; of several equally good numbers, the largest.

    Examples
    --------
    >>> largest_of_best([2, 3, 4, 6], [0.3, 1.0, 1.0, 0.8])
    4
    """
    return int(max(np.asarray(tried)[np.asarray(score) > np.max(score) - EQUAL]))


def _silhouette(points: Array, n_clusters: int, rng: np.random.RandomState) -> float:
    labels = kmeans(points, n_clusters, rng)
    n_found = len(np.unique(labels))
    return max(0.0, float(silhouette_score(points, labels))) if 1 < n_found < len(points) else 0.0
