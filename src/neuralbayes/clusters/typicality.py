r"""How typical a row is of the training rows, as a conformal p-value.

The training rows are split at random. One part, the reference, defines the score of a row: how far away its k nearest
reference rows :math:`r_j` are, on a logarithmic scale and partly relative to their own spacing,

.. math:: s(x) = \frac{1}{k} \sum_j \log d(x, r_j) - \frac{w}{k} \sum_j \frac{1}{k} \sum_i \log d(r_j, r_{ji}),

where :math:`r_{ji}` are the k reference rows nearest to :math:`r_j`. One reference row that equals x is left out: it
may be x itself, and a training row next to itself would look too typical. The other part calibrates the score: the
typicality of a row is the share of calibration rows that lie at least as far out, counting the row itself,

.. math:: t(x) = \frac{1 + \#\{i: s(c_i) \ge s(x)\}}{m + 1}.

An ordinary row, exchangeable with the m calibration rows, has :math:`P(t(x) \le a) \le a` for every a and for any
distribution (Vovk et al. 2005; Lei et al. 2018, split conformal prediction), because the score does not depend on the
calibration rows. This holds for any score; a good one makes outliers less typical.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from neuralbayes.neighbors import nearest_neighbors

Array = NDArray[np.float64]

N_NEIGHBORS = 10
"""The number of neighbours k. Means over 10 neighbours find outliers better than the distance to the 5th alone."""

LOCAL = 0.25
"""The weight w. 0 finds only rows of low density, 1 (as in the local outlier factor) any row off its neighbourhood."""

MAX_REFERENCE = 20_000
"""Maximum number of reference rows. A query computes this many distances; more rows would improve the score little.
With 384 columns they take 31 MB."""

MAX_CALIBRATION = 5_000
"""Maximum number of calibration rows. With these, the realised rate at a = 0.1 has a standard deviation of 0.4 points
between fits."""

FLOOR = 1e-3
"""Lower bound of distances, in units of the median spacing; the logarithm of a duplicate's distance is infinite."""

FAR = 1e12
"""Limit of coordinates, in standard deviations, so squared distances stay finite in float32."""


@dataclass(frozen=True)
class Typicality:
    """Reference rows and the scores of calibration rows.

    Attributes
    ----------
    center : ndarray of shape (n_dimensions,)
        Mean of the reference rows.
    scale : float
        Root mean square deviation from the mean, over rows and columns.
    reference : ndarray of shape (n_reference, n_dimensions), float32
        Reference rows, centred and divided by `scale`.
    spacing : ndarray of shape (n_reference,)
        Mean logarithm of the distances from each reference row to its neighbours among them.
    floor : float
        Lower bound of distances.
    scores : ndarray of shape (n_calibration,)
        Sorted scores of the calibration rows.

    Notes
    -----
    A p-value cannot be below 1 / (n_calibration + 1). With fewer than 99 calibration rows, that is with fewer than 396
    training rows, no row has a typicality of 0.01 or less, so nothing is rejected at that level.

    Examples
    --------
    >>> rng = np.random.RandomState(0)
    >>> typicality = Typicality.fit(rng.normal(size=(1500, 3)), rng.normal(size=(500, 3)))
    >>> typicality.p_values(np.array([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [1e6, 0.0, 0.0]])).round(3)
    array([0.97 , 0.026, 0.002])
    """

    center: Array
    scale: float
    reference: NDArray[np.float32]
    spacing: Array
    floor: float
    scores: Array

    def __post_init__(self) -> None:
        n_reference, n_dimensions = self.reference.shape if self.reference.ndim == 2 else (0, 0)
        if n_reference < 1:
            raise ValueError(
                f"`reference` must have shape (n_reference >= 1, n_dimensions), got {self.reference.shape}"
            )
        if self.center.shape != (n_dimensions,) or self.spacing.shape != (n_reference,) or self.scores.ndim != 1:
            raise ValueError(
                f"`center`, `spacing` and `scores` must have shapes ({n_dimensions},), ({n_reference},) and "
                f"(n_calibration,), got {self.center.shape}, {self.spacing.shape} and {self.scores.shape}"
            )
        numbers = (self.center, self.reference, self.spacing, self.scores, np.array([self.scale, self.floor]))
        if not all(np.isfinite(part).all() for part in numbers) or not (self.scale > 0.0 and self.floor > 0.0):
            raise ValueError("all numbers of a `Typicality` must be finite, and `scale` and `floor` positive")
        if (np.diff(self.scores) < 0.0).any():
            raise ValueError("`scores` must be sorted")

    @classmethod
    def fit(cls, reference: NDArray[Any], calibration: NDArray[Any]) -> Self:
        """Score the calibration rows against the reference.

        Parameters
        ----------
        reference : ndarray of shape (n_reference, n_dimensions)
            Training rows in coordinates whose Euclidean distances are meaningful: standardised columns, principal
            components, embeddings of unit length.
        calibration : ndarray of shape (n_calibration, n_dimensions)
            Other training rows. The guarantee is exact if the coordinates do not depend on these rows. If the
            coordinates are a projection fitted to all rows, it holds as far as the projection fits new rows.

        Returns
        -------
        Typicality
        """
        if reference.ndim != 2 or 0 in reference.shape:
            raise ValueError(
                f"`reference` must have shape (n_reference >= 1, n_dimensions >= 1), got {reference.shape}"
            )
        rows = _finite(reference)
        center = rows.mean(axis=0)
        rows -= center
        scale = float(np.sqrt(np.square(rows).mean())) or 1.0
        scaled = (rows / scale).astype(np.float32)
        n_neighbors = min(N_NEIGHBORS, len(scaled) - 1)
        spacing, floor = np.zeros(len(scaled)), FLOOR
        if n_neighbors:
            distance = nearest_neighbors(scaled, n_neighbors)[0].astype(np.float64)
            farthest = distance[:, -1]
            floor = FLOOR * float(np.median(farthest[farthest > 0.0])) if farthest.any() else FLOOR
            spacing = np.log(distance.clip(floor)).mean(axis=1)
        unscored = cls(center, scale, scaled, spacing, floor, np.empty(0))
        return cls(center, scale, scaled, spacing, floor, np.sort(unscored.scores_of(calibration)))

    def scores_of(self, points: NDArray[Any]) -> Array:
        """Score s(x), larger for points farther out: (n_points, n_dimensions) -> (n_points,)."""
        if points.ndim != 2 or points.shape[1] != len(self.center):
            raise ValueError(f"`points` must have shape (n_points, {len(self.center)}), got {points.shape}")
        if not len(points):
            return np.empty(0)
        rows = ((_finite(points) - self.center) / self.scale).clip(-FAR, FAR).astype(np.float32)
        n_neighbors = min(N_NEIGHBORS + 1, len(self.reference))
        distance, near = nearest_neighbors(self.reference, n_neighbors, queries=rows)
        counts = np.ones(near.shape, bool)
        if n_neighbors > 1:  # leave out the row itself, otherwise the last neighbour
            same = (self.reference[near] == rows[:, None]).all(axis=2)
            counts[np.arange(len(rows)), np.where(same.any(axis=1), same.argmax(axis=1), -1)] = False
        local = np.log(distance.astype(np.float64).clip(self.floor)) - LOCAL * self.spacing[near]
        scores: Array = np.mean(local, axis=1, where=counts)
        return scores

    def p_values(self, points: NDArray[Any]) -> Array:
        """Typicality of each row; at most a share a of ordinary rows has a typicality of a or less.

        Parameters
        ----------
        points : ndarray of shape (n_points, n_dimensions)
            Points in the coordinates of `fit`.

        Returns
        -------
        ndarray of shape (n_points,)
            From 1 / (n_calibration + 1) to 1.
        """
        n_below = np.searchsorted(self.scores, self.scores_of(points), side="left")
        return np.asarray((1.0 + len(self.scores) - n_below) / (1.0 + len(self.scores)), dtype=np.float64)


def split_rows(seen: NDArray[np.bool_], rng: np.random.RandomState) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split rows at random into reference rows and calibration rows, which are a quarter of all.

    Parameters
    ----------
    seen : ndarray of bool of shape (n_rows,)
        Whether the network was trained on a row. Calibration rows are unseen rows if there are enough of them.
    rng : RandomState

    Returns
    -------
    reference, calibration : ndarray of int
        Indices, ascending, at most `MAX_REFERENCE` and `MAX_CALIBRATION`.

    Examples
    --------
    >>> split_rows(np.arange(8) < 6, np.random.RandomState(0))
    (array([0, 1, 2, 3, 4, 5]), array([6, 7]))
    """
    order = rng.permutation(len(seen))
    n_calibration = min(len(seen) // 4, MAX_CALIBRATION)
    unseen = order[~seen[order]]
    calibration = (unseen if len(unseen) >= n_calibration else order)[:n_calibration]
    held_out = np.zeros(len(seen), bool)
    held_out[calibration] = True
    return np.sort(order[~held_out[order]][:MAX_REFERENCE]), np.sort(calibration)


def check_level(level: float) -> None:
    """Raise an error unless the level is at least 0 and below 1."""
    if isinstance(level, bool) or not isinstance(level, Real) or not 0.0 <= level < 1.0:
        raise ValueError(f"`reject` must be at least 0 and below 1, got {level!r}")


def reject_atypical(labels: NDArray[np.integer], p_values: Array, level: float) -> NDArray[np.int64]:
    """Replace labels by -1 where the typicality is at most `level`.

    Parameters
    ----------
    labels : ndarray of shape (n_points,)
    p_values : ndarray of shape (n_points,)
    level : float
        Largest share of ordinary rows to reject, at least 0 (rejects nothing) and below 1.

    Returns
    -------
    ndarray of shape (n_points,)

    Examples
    --------
    >>> reject_atypical(np.array([3, 1, 2]), np.array([0.5, 0.01, 0.02]), 0.01)
    array([ 3, -1,  2])
    """
    check_level(level)
    return np.where(p_values <= level, -1, labels).astype(np.int64)


def _finite(points: NDArray[Any]) -> Array:
    """Copy to double; raises an error if a number is missing or infinite."""
    rows: Array = np.array(points, dtype=np.float64)
    if not np.isfinite(rows).all():
        raise ValueError("`points` must be finite, got NaN or infinity")
    return rows
