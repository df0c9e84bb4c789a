"""The four sets of figure 4 as in the authors' notebook.

They are easier than those of :mod:`neuralbayes.data.toys`: circles and moons are thin, and all sets except the spirals
have unit variance along both axes. The centres of the blobs are drawn in a square, so two may touch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets
from sklearn.utils import check_random_state

from neuralbayes.data.toys import Labels, Points, Seed

N_POINTS = 400
"""Number of points of circles, moons and blobs, and of each arm of the spirals."""

CIRCLE_GAP = 0.6
"""Gap between the circles, with radii 1 and 0.4."""

Drawn = tuple[Points, Labels]


def circles(gap: float = CIRCLE_GAP, *, random_state: Seed = None) -> Drawn:
    """Two circles with a gap between their radii; the outer one has radius 1 before standardisation.

    Examples
    --------
    >>> X, y = circles(random_state=0)
    >>> radius = np.linalg.norm(X, axis=1)
    >>> X.shape, round(float(radius[y == 1].mean() / radius[y == 0].mean()), 2)
    ((400, 2), 0.4)
    """
    X, y = datasets.make_circles(N_POINTS, noise=0.01, factor=1.0 - gap, random_state=check_random_state(random_state))
    return _standardized(X), y.astype(np.int64)


def moons(*, random_state: Seed = None) -> Drawn:
    """Two thin interleaved half circles."""
    X, y = datasets.make_moons(N_POINTS, noise=0.01, random_state=check_random_state(random_state))
    return _standardized(X), y.astype(np.int64)


def blobs(*, random_state: Seed = None) -> Drawn:
    """Three Gaussians with random centres in a square, stretched, and standardised with 1,000 points more."""
    state = check_random_state(random_state)
    X, y = datasets.make_blobs(N_POINTS + 1000, centers=3, cluster_std=0.3, center_box=(-5.0, 5.0), random_state=state)
    return _standardized(X @ np.array([(0.6, -0.6), (-0.4, 1.1)]))[:N_POINTS], y[:N_POINTS].astype(np.int64)


def spirals(*, random_state: Seed = None) -> Drawn:
    """Three arms, rotated by thirds of a circle; not standardised.

    Examples
    --------
    >>> X, y = spirals(random_state=0)
    >>> X.shape, X.std().round(1).item()
    ((1200, 2), 2.6)
    """
    rng = check_random_state(random_state)
    angle = 1.0 + np.sqrt(rng.uniform(size=N_POINTS)) * (780.0 / 360.0) * np.deg2rad(100.0)
    arm = angle[:, None] * np.column_stack([-np.cos(angle), np.sin(angle)]) + rng.uniform(0.0, 0.5, (N_POINTS, 2))
    turned = [arm @ _rotation(k * 2.0 * np.pi / 3.0) for k in range(3)]
    return np.concatenate(turned), np.repeat(np.arange(3), N_POINTS)


@dataclass(frozen=True)
class AuthorsSet:
    """A set and its training in the notebook."""

    draw: Callable[..., Drawn]
    n_points: int
    n_states: int
    updates: int


AUTHORS_SETS = {
    "circles": AuthorsSet(circles, N_POINTS, 2, 51),
    "moons": AuthorsSet(moons, N_POINTS, 2, 41),
    "blobs": AuthorsSet(blobs, N_POINTS, 3, 101),
    "spirals": AuthorsSet(spirals, 3 * N_POINTS, 3, 601),
}


def _standardized(X: NDArray[np.float64]) -> Points:
    scaled: Points = (X - X.mean(axis=0)) / X.std(axis=0)
    return scaled


def _rotation(angle: float) -> NDArray[np.float64]:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s], [-s, c]])
