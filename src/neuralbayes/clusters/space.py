"""The space in which rows are compared: scaled columns, principal components, and the metric of the noise.

No scaling of the columns is right for all tables, so rows are divided in four: standardised, with clipped tails, with
compressed tails, and by ranks. New rows are compared in the clipped one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.preprocessing import normalize
from sklearn.utils.extmath import randomized_svd

from neuralbayes.clusters.known import Hints
from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.float64]

N_DIMENSIONS = 64  # columns or principal components; further directions carry noise
CLIP = 2.5  # standard deviations at which the tails of a column are clipped
GAP = 3.0  # least distance of a value that stands for missing ones from the others, in units of their range
LEAST_VALUES = 10  # of a column, above which one may stand for missing ones
N_NEAR = 5  # nearest rows whose differences count as noise
NOISE_ROWS = 2000  # to estimate the noise from
ROUNDING_ROWS = 5000  # to estimate the rounding of columns from
SHRINKAGE = 0.3  # weight of the identity in the covariance of the noise


@dataclass(frozen=True, eq=False)
class Frame:
    """From rows to the coordinates that p(z|x) is a function of: reduce, clip, subtract the center, and multiply."""

    center: Array  # (n_features,)
    basis: Array  # (n_features, n_dimensions) or (n_features,)
    lower: Array  # (n_features,): columns are clipped to this range
    upper: Array
    reduction: Array | None = None  # (n_columns, n_features): multiplies sparse rows first
    unit: bool = False  # whether rows are divided by their lengths

    def __post_init__(self) -> None:
        n = self.center.shape
        if self.basis.ndim not in (1, 2) or not n == self.basis.shape[:1] == self.lower.shape == self.upper.shape:
            raise ValueError("`basis`, `lower` and `upper` must have a row for each number in `center`")
        if self.reduction is not None and (self.reduction.ndim != 2 or self.reduction.shape[1:] != n):
            raise ValueError("`reduction` must have a column for each number in `center`")
        if not (np.isfinite(self.center).all() and np.isfinite(self.basis).all() and (self.lower <= self.upper).all()):
            raise ValueError("`center` and `basis` must be finite, and `lower` at most `upper`")

    def __call__(self, rows: Any) -> Array:
        """Coordinates: (n, n_columns) -> (n, n_dimensions)."""
        centered = np.clip(self.features(rows), self.lower, self.upper) - self.center
        return centered @ self.basis if self.basis.ndim == 2 else centered * self.basis

    @classmethod
    def unbounded(cls, center: Array, basis: Array) -> Self:
        """A frame without clipping."""
        nowhere = np.full(len(center), np.inf)
        return cls(center, basis, -nowhere, nowhere)

    def after(self, reduction: Array | None, unit: bool) -> Frame:
        """The frame of rows that are reduced, or scaled to unit length, before."""
        return replace(self, reduction=reduction, unit=unit)

    def then(self, matrix: Array) -> Frame:
        """The frame followed by a product with a matrix."""
        return replace(self, basis=self.basis @ matrix)

    def features(self, rows: Any) -> Array:
        """Dense rows, reduced and of unit length if so fitted: (n, n_columns) -> (n, n_features)."""
        if self.reduction is not None:
            rows = rows @ self.reduction
        dense: Array = np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)
        if self.unit:
            dense = dense / np.sqrt(np.square(dense).sum(axis=1, keepdims=True)).clip(np.finfo(float).tiny)
        return dense

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: np.asarray(part) for name, part in vars(self).items() if part is not None}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Self:
        parts: dict[str, Any] = {**arrays, "unit": bool(arrays["unit"])}
        return cls(**parts)


@dataclass(frozen=True, eq=False)
class Space:
    """Rows in two metrics."""

    points: Array  # (n_rows, n_dimensions)
    floor: Array  # (n_dimensions, n_dimensions): covariance of the rounding, a lower bound for that of a cluster
    metric: Array  # (n_dimensions, n_dimensions): from `points` to `denoised`

    @cached_property
    def denoised(self) -> Array:
        """Rows in units of the noise: (n_rows, n_dimensions)."""
        return self.points @ self.metric

    def of(self, rows: NDArray[Any]) -> Space:
        """The space with some of its rows."""
        return replace(self, points=self.points[rows])


def scalings(rows: Array, weight: Array | None = None, *, keep_scale: bool = False) -> tuple[dict[str, Array], Frame]:
    """Scale the columns in four ways, to mean 0 and standard deviation 1; constant columns become 0.

    "standard"; "clipped", without what lies beyond 2.5 standard deviations; "compressed", the inverse hyperbolic sine
    of the distance to the median in units of the quartiles; and "ranked", normal scores of the ranks. Columns of two
    values are the same in all four. A value such as -999 counts as the nearest other value of its column. With
    `keep_scale`, columns keep their standard deviations. Also returns the frame from rows to "clipped".
    """
    least, most = plausible_range(rows)
    rows = np.clip(rows, least, most)
    standard, mean, deviation = _standardized(rows, weight)
    several = np.array([len(np.unique(column)) > 2 for column in rows.T])
    lower = np.where(several, np.maximum(mean - CLIP * deviation, least), -np.inf)
    upper = np.where(several, np.minimum(mean + CLIP * deviation, most), np.inf)
    clipped, center, spread = _standardized(np.clip(rows, lower, upper), weight)
    width = deviation if keep_scale else (deviation > 0.0).astype(np.float64)
    factors = np.divide(width, spread, out=np.zeros_like(spread), where=spread > 0.0)
    compressed, ranked = standard.copy(), standard.copy()
    for j in np.flatnonzero(several):
        column = rows[:, j]
        place = np.unique(column, return_inverse=True)[1]
        mass = np.bincount(place, weights=weight).astype(np.float64)
        ranks = ((np.cumsum(mass) - mass / 2.0) / mass.sum())[place]  # share below, plus half of those equal
        order = np.argsort(column, kind="stable")
        first, median, third = np.interp([0.25, 0.5, 0.75], ranks[order], column[order])
        quartiles = (third - first) / 1.349
        compressed[:, j] = np.arcsinh(
            (column - median) / (quartiles if quartiles > 0.1 * deviation[j] else deviation[j])
        )
        ranked[:, j] = ndtri(ranks)
    return {
        "standard": standard * width,
        "clipped": clipped * width,
        "compressed": _standardized(compressed, weight)[0] * width,
        "ranked": _standardized(ranked, weight)[0] * width,
    }, Frame(center, np.diag(factors), lower, upper)


def plausible_range(rows: Array) -> tuple[Array, Array]:
    """Range of each column without a value that stands for missing ones: (n_rows, n_columns) -> (n_columns,) twice.

    Such a value is shared by several rows, and far from all others. Columns without one have no limits.
    """
    least, most = np.full(rows.shape[1], -np.inf), np.full(rows.shape[1], np.inf)
    for j, column in enumerate(rows.T):
        values, counts = np.unique(column, return_counts=True)
        if len(values) <= LEAST_VALUES:
            continue
        if counts[0] > 1 and values[1] - values[0] > GAP * (values[-1] - values[1]):
            least[j] = values[1]
        if counts[-1] > 1 and values[-1] - values[-2] > GAP * (values[-2] - values[0]):
            most[j] = values[-2]
    return least, most


def make_space(scaled: Array, rng: np.random.RandomState, weight: Array | None = None) -> tuple[Space, Array]:
    """The space of the varying columns of scaled rows, or of their principal components if these are many.

    Also returns the matrix (n_columns, n_dimensions) from rows, which have mean 0, to the points of the space.
    """
    basis = principal_axes(scaled, N_DIMENSIONS, rng, weight)
    some = scaled[np.sort(rng.permutation(len(scaled))[:ROUNDING_ROWS])]
    floor = (basis.T * rounding_variance(some)) @ basis
    points = scaled @ basis
    order = rng.permutation(len(points))
    metric = metric_of_neighbors(points[order], floor, weight=None if weight is None else weight[order])
    return Space(points, floor, metric), basis


def principal_axes(rows: Array, n_dimensions: int, rng: np.random.RandomState, weight: Array | None = None) -> Array:
    """Axes (n_columns, d) of the rows, which have mean 0: each varying column, or principal axes if they are more."""
    varying = np.flatnonzero(np.ptp(rows, axis=0) > 0.0)
    if len(varying) <= n_dimensions:
        return np.eye(rows.shape[1])[:, varying]
    n_components = min(n_dimensions, len(rows) - 1)
    weighted = rows if weight is None else rows * np.sqrt(weight)[:, None]
    axes: Array = randomized_svd(weighted, n_components, random_state=rng)[2].T
    return axes


def _standardized(rows: Array, weight: Array | None) -> tuple[Array, Array, Array]:
    """Rows with mean 0 and deviation 1, and the means and deviations of the columns."""
    mean = np.average(rows, axis=0, weights=weight)
    centered = rows - mean
    deviation = np.sqrt(np.average(np.square(centered), axis=0, weights=weight))
    deviation[np.ptp(rows, axis=0) == 0.0] = 0.0
    return centered / np.where(deviation > 0.0, deviation, 1.0) * (deviation > 0.0), mean, deviation


def thinned(space: Space, hints: Hints) -> Space:
    """Draw rows in proportion to their weights, each at most once; keeps all rows if weights are equal.

    The largest 5% of the weights are clipped, so a single large weight does not leave only a few rows.
    """
    if hints.weight is None:
        return space
    share = hints.weight / np.quantile(hints.weight, 0.95)
    kept = np.flatnonzero(np.random.RandomState(0).uniform(size=len(share)) < share)  # the same for all seeds
    return space if len(kept) == len(share) or len(kept) < 2 else space.of(kept)


def rounding_variance(rows: NDArray[np.floating]) -> Array:
    """Variance of the rounding of each column: (n_rows, n_features) -> (n_features,).

    Each value represents the interval up to halfway to its neighbours. A column with two values is all rounding; a
    column of measurements has almost no rounding.
    """
    result = np.zeros(rows.shape[1])
    for j, column in enumerate(rows.T):
        values, counts = np.unique(column, return_counts=True)
        if len(values) > 1:
            gaps = np.diff(values.astype(np.float64))
            width = np.concatenate([gaps[:1], (gaps[1:] + gaps[:-1]) / 2.0, gaps[-1:]])
            result[j] = counts @ np.square(width) / (12.0 * counts.sum())
    return result


def metric_of_neighbors(points: Array, floor: Array, weight: Array | None = None) -> Array:
    """A matrix that makes the differences between neighbours equally large in all directions.

    The covariance of these differences estimates the covariance within clusters, without knowing the clusters (Art,
    Gnanadesikan and Kettenring 1982). From points in random order (n, n_dimensions), whose first ones are compared
    with their neighbours, then with the neighbours in the first metric. `floor` is added to the covariance.
    """
    n_dimensions = points.shape[1]
    metric = np.eye(n_dimensions)
    n_near = min(N_NEAR, len(points) - 1)
    for _ in range(2):
        _, near = nearest_neighbors(points @ metric, n_near, n_queries=NOISE_ROWS)
        few = np.ones(len(near)) if weight is None else weight[: len(near)]
        noise = floor * (2 * n_near)
        for column in near.T:
            difference = points[: len(near)] - points[column]
            noise = noise + (difference.T * (few / few.sum())) @ difference
        noise = noise * (n_dimensions / max(np.trace(noise), 1e-300))
        values, vectors = np.linalg.eigh((1.0 - SHRINKAGE) * noise + SHRINKAGE * np.eye(n_dimensions))
        metric = vectors / np.sqrt(values.clip(1e-9))
    return metric


def fit_reduction(
    rows: sp.csr_array,
    chosen: NDArray[np.int64],
    n_components: int,
    rng: np.random.RandomState,
    *,
    weight: NDArray[np.float64] | None = None,
    unit: bool = False,
) -> NDArray[np.float64]:
    """The first right singular vectors of some sparse rows, of unit length if `unit`: (n_features, n_dimensions)."""
    some = rows[chosen].astype(np.float64)
    if unit:
        some = normalize(some)
    if weight is not None:
        some = (sp.diags_array(np.sqrt(weight[chosen])) @ some).tocsr()
    _, values, vectors = randomized_svd(some, min(n_components, *some.shape), n_iter=5, random_state=rng)
    kept = values > 1e-6 * values[0]  # below are rounding errors, with arbitrary vectors
    kept[0] = True
    return np.ascontiguousarray(vectors[kept].T)
