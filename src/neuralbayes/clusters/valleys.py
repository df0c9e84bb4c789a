r"""Valleys of low density between clusters, confirmed on held-out rows.

Most rows are used to find a band with few rows between two hills. The test then counts held-out rows: v of them fall
into the band, which has width h, and k fall onto a hill, which has width w. Under the null hypothesis, the density is
log-concave. Its projection on any direction is then log-concave as well (Prékopa 1973) and has no valley, so the band
is at least as dense as the lower hill. A share of at least h / (h + w) of the rows in the band and on that hill then
falls into the band, and

.. math:: P(V \le v), \quad V \sim \mathrm{Binomial}(v + k, h / (h + w)),

is a p-value for that hill. The larger p-value of the two hills counts. The test makes no assumption about the dimension
or about the method that found the band. Hyperplanes cut a log-concave density into log-concave parts, so the same test
applies to the rows on each side of a cut, and so on.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import betainc

from neuralbayes.clusters.space import Space, metric_of_neighbors

Array = NDArray[np.float64]
Side = NDArray[np.bool_]

LEVEL = 0.1  # p-value of a valley through all rows; for a part, it is multiplied by its share (Meinshausen 2008)
DEPTH = 0.6  # maximum density of a valley, relative to the lower of its two hills
LEAST_ROWS, MOST_ROWS = 16, 1000  # to look for a valley in; more are drawn at random
LEAST_ON_A_SIDE = 4
N_SEARCHES = 5  # with different random numbers, whose median counts, for up to `MOST_ROWS` rows
N_FOLDS = 5
N_PASSES = 5
HOPELESS = 0.5  # p-value above which no more passes are made
N_WARD = 5  # the search starts from each of Ward's clusters of each number from 2 to this one
N_REFINEMENTS = 3
THINNEST = 0.05  # minimum half-width of a hill, in units of the distance between the hills
SCATTER = 2.0  # variance of the added noise, in units of the rounding; with 1, two categories would be two hills

# Middles and half-widths of the bands to try, in coordinates with the hills at 0 and 1.
MIDDLES, HALF_WIDTHS = (
    grid.ravel() for grid in np.meshgrid(np.arange(0.25, 0.76, 0.05), [0.05, 0.1, 0.15, 0.2, 0.3], indexing="ij")
)
_inside = (MIDDLES - HALF_WIDTHS > -1e-9) & (MIDDLES + HALF_WIDTHS < 1.0 + 1e-9)
MIDDLES, HALF_WIDTHS = MIDDLES[_inside], HALF_WIDTHS[_inside]


class Valley(NamedTuple):
    """Evidence of held-out rows for a valley."""

    p_value: float
    depth: float  # density in the band, divided by the density on the lower hill

    def is_one(self, level: float) -> bool:
        return self.p_value < level and self.depth < DEPTH


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


def count_valleys(space: Space, max_clusters: int, n_searches: int = N_SEARCHES) -> tuple[int, dict[str, list[float]]]:
    """The number of clusters with valleys between them.

    Values are scattered over the interval that they were rounded from, because gaps between codes are not valleys. Rows
    are sorted first, and the random numbers do not depend on the seed of the fit, so the answer depends neither on
    their order nor on the seed. Also returns the number of "rows" that each valley divides, in descending order, and
    the "p_value" of each.
    """
    spread = space.points.std(axis=0)
    kept = spread > 1e-6 * spread.max()  # beyond the rank of the rows, directions are arbitrary
    rows, floor = space.points[:, kept], space.floor[kept][:, kept]
    order = np.lexsort(rows.T[::-1])
    values, vectors = np.linalg.eigh(SCATTER * floor)
    root = (vectors * np.sqrt(values.clip(0.0))) @ vectors.T
    found: list[tuple[int, list[tuple[int, float]]]] = []
    for seed in range(n_searches if len(order) <= MOST_ROWS else 1):
        points = rows[np.random.RandomState(seed).permutation(order)]
        scatter = np.random.RandomState(N_SEARCHES + seed).normal(size=points.shape) @ root
        x = (points + scatter) @ metric_of_neighbors(points, floor)
        labels, cuts = cut_at_valleys(x, max_clusters)
        found = sorted([*found, (int(labels.max()) + 1, sorted(cuts, reverse=True))])
        if [n for n, _ in found].count(found[len(found) // 2][0]) > n_searches // 2:
            break  # more searches cannot change the median
    number, cuts = found[len(found) // 2]
    return number, {"rows": [float(n) for n, _ in cuts], "p_value": [p for _, p in cuts]}


def cut_at_valleys(x: Array, max_clusters: int) -> tuple[NDArray[np.int64], list[tuple[int, float]]]:
    """Cut rows (n_rows, n_dimensions) by hyperplanes through valleys, always the largest part next.

    Returns labels (n_rows,) and, for each cut, the number of rows that it divides and the p-value of its valley.
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
        if valley.is_one(level):
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
    """Whether a valley lies between the rows (n_rows, n_dimensions) on one side and the rows on the other side."""
    return held_out_valley(x, np.random.RandomState(0), LEVEL, side).is_one(LEVEL)


def held_out_valley(x: Array, rng: np.random.RandomState, level: float, side: Side | None = None) -> Valley:
    """Look for a valley in rows (n_rows, n_dimensions), between one `side` and the others or, without it, anywhere.

    Each band is found in four fifths of the rows, and the other fifth is counted in it. Counts are summed over the
    fifths and averaged over passes with new fifths, which stop early if it is clear whether the p-value is below
    `level`. It neglects that the bands of different fifths are found from overlapping sets of rows.
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
            same = 1 if band.direction @ first.direction >= 0.0 else -1  # the order of the hills
            in_band, in_hills = _counts(band.along(x[fold]), band.middle, band.half_width, band.hills)
            between, hills = between + float(in_band), hills + in_hills[::same]
            expected += ((in_band + in_hills) * band.half_width / (band.half_width + band.hills))[::same]
            level_ground += (in_hills * band.half_width / band.hills)[::same]
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
