r"""How typical a row is of the training rows, as a conformal p-value that keeps its promise from a few rows on.

The training rows are divided at random into folds. For fold f, the rows of the other folds are the reference: they give
the unit of each column and the score of a row x, which says how far away its k nearest reference rows :math:`r_j` are,
on a logarithmic scale and partly relative to their own spacing,

.. math:: s_f(x) = \frac{1}{k} \sum_j \log d(x, r_j) - \frac{w}{k} \sum_j \frac{1}{k} \sum_i \log d(r_j, r_{ji}),

where :math:`r_{ji}` are the k reference rows nearest to :math:`r_j`. One reference row that equals x is left out: it
may be x itself, and a training row next to itself would look too typical. Wide rows are compared by the principal
components of the reference and by how far they lie off them. The typicality of x is the share of rows, among the n
training rows and x, that lie at least as far out as x by the score of their fold (cross-conformal, Vovk 2015),

.. math:: t(x) = \frac{1}{n + 1} \Big(1 + \sum_f \#\{i \in f: s_f(x_i) \ge s_f(x)\}\Big).

Nothing is fitted to the rows that x is compared with: given the reference of a fold, its rows and an ordinary x are
exchangeable, whatever their distribution. Over training sets and new rows, :math:`P(t(x) \le a)` is therefore

- at most a if only one fold calibrates (split conformal prediction), as with many rows, where it has a quarter of them;
- at most :math:`2 a + 2 (1 - a) (F - 1) / (n + F)` if F folds do: t is nearly the mean of F valid p-values, and for
  those P(mean <= a) <= 2 a (Vovk and Wang 2020). The folds hardly disagree about a row, so in practice it is at most a
  here as well, which ``benchmarks/rejection.py`` measures.

This holds for any score; a good one makes outliers less typical. It does not hold if the rows were changed by something
that was fitted to all training rows, such as their principal components.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.utils import check_random_state

from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.float64]

N_FOLDS, N_NEIGHBORS = 5, 10  # F and k; with 10 folds, twice the work finds hardly more outliers
LOCAL = 0.25  # the weight w: 0 finds only rows of low density, 1 any row off its neighbourhood (local outlier factor)
N_COMPONENTS, MIN_REFERENCE = 128, 1280  # principal components of wider rows, and minimum of reference rows for them
MAX_REFERENCE = 20_000  # reference rows of all folds together; a query computes this many distances
MAX_NUMBERS = 10_000_000  # values of all reference rows together (40 MB), but there are 1,000 rows in any case
MAX_CALIBRATION = 5_000  # rows of a single fold; the rate at a = 0.1 then varies by 0.4 points between fits
FLOOR = 1e-3  # lower bound of distances, in units of the median spacing; the logarithm of 0 is infinite
CONSTANT = 1e-12  # a column whose standard deviation is a smaller share of its mean differs by rounding only
FAR, LARGEST = 1e12, 1e100  # limits of coordinates, in standard deviations, and of numbers: squares stay finite
BLOCK = 2000  # rows that are scored at once


@dataclass(frozen=True)
class Fold:
    """The reference rows of a fold, which define its score, and the sorted scores of its own rows."""

    center: Array  # (n_features,): mean of the reference rows
    unit: Array  # (n_features,): what differences are divided by
    components: Array  # (n_features, n_components): principal components; n_components is 0 if all columns are compared
    reference: NDArray[np.float32]  # (n_reference, n_components + 1 or n_features): coordinates
    spacing: Array  # (n_reference,): mean logarithm of the distances from reference rows to their neighbours
    floor: Array  # (): lower bound of distances
    scores: Array  # (n_calibration,)

    def __post_init__(self) -> None:
        n, d = self.spacing.size, self.unit.size
        m = self.components.size // max(d, 1)
        shapes = {"center": (d,), "unit": (d,), "components": (d, m), "reference": (n, m + 1 if m else d)}
        for name, shape in {**shapes, "spacing": (n,), "floor": (), "scores": (self.scores.size,)}.items():
            part = getattr(self, name)
            if part.shape != shape or part.dtype.kind != "f" or not np.isfinite(part).all():
                raise ValueError(f"`{name}` must be finite and of shape {shape}, got {part.dtype} {part.shape}")
        if not (self.reference.size and (self.unit > 0.0).all() and self.floor > 0.0):
            raise ValueError("`reference` must have rows and columns, and `unit` and `floor` must be positive")
        if (np.diff(self.scores) < 0.0).any():
            raise ValueError("`scores` must be sorted")

    @classmethod
    def fit(cls, reference: Array, calibration: Array, standardized: NDArray[np.bool_]) -> Self:
        """Score the calibration rows by the reference rows."""
        center = reference.mean(axis=0)
        unit = _units(reference - center, center, standardized)
        components = np.empty((len(center), 0))
        if len(center) > N_COMPONENTS and len(reference) >= MIN_REFERENCE:
            components = PCA(N_COMPONENTS, random_state=0).fit((reference - center) / unit).components_.T
        scaled = _coordinates(reference, center, unit, components)
        spacing, floor = np.zeros(len(scaled)), np.array(FLOOR)
        n_neighbors = min(N_NEIGHBORS, len(scaled) - 1)
        if n_neighbors:
            distance = nearest_neighbors(scaled, n_neighbors)[0].astype(np.float64)
            farthest = distance[:, -1]
            floor = np.array(FLOOR * np.median(farthest[farthest > 0.0]) if farthest.any() else FLOOR)
            spacing = np.log(distance.clip(floor)).mean(axis=1)
        fold = cls(center, unit, components, scaled, spacing, floor, np.empty(0))
        return replace(fold, scores=np.sort(fold.scores_of(calibration)))

    def scores_of(self, points: Array) -> Array:
        """Score s(x), larger for points farther out: (n_points, n_features) -> (n_points,)."""
        rows = _coordinates(points, self.center, self.unit, self.components)
        n_neighbors = min(N_NEIGHBORS + 1, len(self.reference))
        distance, near = nearest_neighbors(self.reference, n_neighbors, queries=rows)
        counts = np.ones(near.shape, bool)
        if n_neighbors > 1:  # leave out the row itself, otherwise the last neighbour
            same = distance <= self.floor
            i, j = np.nonzero(same)
            same[i, j] = (self.reference[near[i, j]] == rows[i]).all(axis=1)
            counts[np.arange(len(rows)), np.where(same.any(axis=1), same.argmax(axis=1), -1)] = False
        local = np.log(distance.astype(np.float64).clip(self.floor)) - LOCAL * self.spacing[near]
        scores: Array = np.mean(local, axis=1, where=counts)
        return scores


@dataclass(frozen=True)
class Typicality:
    """Folds of training rows that measure how typical other rows are.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> typicality = Typicality.fit(rng.normal(size=(200, 3)), random_state=0)
    >>> typicality.p_values(np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [1e6, 0.0, 0.0]])).round(3)
    array([0.98 , 0.03 , 0.005])
    >>> typicality.smallest_level == 1 / 201
    True
    """

    folds: tuple[Fold, ...]

    def __post_init__(self) -> None:
        if not self.folds or len({len(fold.center) for fold in self.folds}) != 1 or not self.n_calibration:
            raise ValueError("`folds` must have the same columns, and calibration rows")

    @classmethod
    def fit(
        cls,
        points: NDArray[Any],
        *,
        random_state: int | np.random.RandomState | None = None,
        standardize: bool | NDArray[np.bool_] = True,
    ) -> Self:
        """Divide the training rows (n_points >= 2, n_features) into folds and score them.

        Nothing that was fitted to all rows may have changed them. Two changes do no harm: a factor and an offset of
        each column that is standardised here, and those of single rows, such as to unit length. `standardize` says, for
        each column or for all, whether to divide it by its standard deviation: not embeddings, pixels and indicators.
        """
        standardized = np.broadcast_to(np.asarray(standardize, bool), points.shape[1:])
        n, n_reference = len(points), min(MAX_REFERENCE, max(1000, MAX_NUMBERS // points.shape[1]))
        order = check_random_state(random_state).permutation(n)
        if n * (N_FOLDS - 1) <= n_reference:
            own = [np.sort(part) for part in np.array_split(order, min(N_FOLDS, n))]
            others = [np.setdiff1d(order, part) for part in own]
        else:
            n_calibration = min(n // 4, MAX_CALIBRATION)
            own = [np.sort(order[:n_calibration])]
            others = [np.sort(order[n_calibration:][:n_reference])]
        pairs = zip(others, own, strict=True)
        return cls(tuple(Fold.fit(_bounded(points[r]), _bounded(points[c]), standardized) for r, c in pairs))

    @property
    def n_calibration(self) -> int:
        """Number of rows that a row is compared with."""
        return sum(len(fold.scores) for fold in self.folds)

    @property
    def smallest_level(self) -> float:
        """The smallest p-value, 1 / (n_calibration + 1), and so the smallest level that rejects anything."""
        return 1.0 / (1.0 + self.n_calibration)

    def p_values(self, points: NDArray[Any]) -> Array:
        """Typicality of rows like those of `fit`, from `smallest_level` to 1: (n_points, n_features) -> (n_points,)."""
        result = np.empty(len(points))
        for start in range(0, len(points), BLOCK):
            rows = _bounded(points[start : start + BLOCK])
            n_beyond = np.zeros(len(rows), np.int64)
            for fold in self.folds:
                n_beyond += len(fold.scores) - np.searchsorted(fold.scores, fold.scores_of(rows), side="left")
            result[start : start + BLOCK] = (1.0 + n_beyond) / (1.0 + self.n_calibration)
        return result

    def check_level(self, level: float) -> None:
        """Raise an error unless rows with a typicality of at most `level` can be rejected."""
        if isinstance(level, bool) or not isinstance(level, Real) or not self.smallest_level <= level < 1.0:
            smallest = math.ceil(self.smallest_level * 1e4) / 1e4
            raise ValueError(
                f"`reject` must be at least {smallest:g}, the smallest level that {self.n_calibration:,} calibration "
                f"rows support, and below 1, got {level!r}"
            )

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All parts, such as "2.scores" for the scores of fold 2."""
        return {f"{number}.{name}": part for number, fold in enumerate(self.folds) for name, part in vars(fold).items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Restore a typicality; raises a ValueError or TypeError if a part is damaged, missing or unknown."""
        folds: dict[int, dict[str, Any]] = {}
        for name, array in arrays.items():
            number, _, part = name.partition(".")
            folds.setdefault(int(number), {})[part] = array
        return cls(tuple(Fold(**folds[number]) for number in sorted(folds)))


def _coordinates(points: Array, center: Array, unit: Array, components: Array) -> NDArray[np.float32]:
    """Coordinates whose distances are compared: (n, n_features) -> (n, n_components + 1 or n_features)."""
    rows = ((points - center) / unit).clip(-FAR, FAR)
    if components.size:
        inside = rows @ components
        off = np.square(rows).sum(axis=1, keepdims=True) - np.square(inside).sum(axis=1, keepdims=True)
        rows = np.hstack([inside, np.sqrt(off.clip(0.0))])
    return rows.astype(np.float32)


def _units(centered: Array, center: Array, standardized: NDArray[np.bool_]) -> Array:
    """The unit of each column: its standard deviation, or 1 where it is not standardised."""
    if not standardized.any():  # one factor for all changes no p-value, and keeps squared distances within float32
        return np.full(len(center), float(np.sqrt(np.square(centered).mean())) or 1.0)
    deviation = np.sqrt(np.square(centered).mean(axis=0))
    size = np.abs(center)
    constant = deviation <= CONSTANT * size  # as if one of the n values differed by as much as the constant
    deviation[constant] = np.where(size > 0.0, size, 1.0)[constant] / math.sqrt(len(centered))
    return np.where(standardized, deviation, 1.0)


def _bounded(points: NDArray[Any]) -> Array:
    return np.asarray(points, dtype=np.float64).clip(-LARGEST, LARGEST)
