"""The four sets of the paper's figure 4, as in the authors' notebook.

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

N_UNSEEN, BLOB_SHAPE = 1000, ((0.6, -0.6), (-0.4, 1.1))
"""Number of additional points for standardising the blobs, and the linear map that stretches them."""

ANGLE, WIDTH = 100.0, 0.5
"""Winding angle of an arm of the spirals in degrees, and the maximum distance of points from it."""


def published_circles(n_points: int = N_POINTS, *, gap: float = CIRCLE_GAP, random_state: Seed = None) -> Drawn:
    """Two circles with a gap between their radii; the outer one has radius 1 before standardisation.

    Examples
    --------
    >>> X, y = published_circles(random_state=0)
    >>> X.shape, X.std(axis=0).round(6).tolist()
    ((400, 2), [1.0, 1.0])
    >>> radius = np.linalg.norm(X, axis=1)
    >>> round(float(radius[y == 1].mean() / radius[y == 0].mean()), 2)
    0.4
    """
    X, y = datasets.make_circles(n_points, noise=0.01, factor=1.0 - gap, random_state=check_random_state(random_state))
    return _standardized(X), y.astype(np.int64)


def published_moons(n_points: int = N_POINTS, *, random_state: Seed = None) -> Drawn:
    """Two thin interleaved half circles.

    Examples
    --------
    >>> X, y = published_moons(random_state=0)
    >>> X.shape, np.bincount(y).tolist()
    ((400, 2), [200, 200])
    """
    X, y = datasets.make_moons(n_points, noise=0.01, random_state=check_random_state(random_state))
    return _standardized(X), y.astype(np.int64)


def published_blobs(n_points: int = N_POINTS, *, random_state: Seed = None) -> Drawn:
    """Three stretched Gaussians with random centres in a square; some draws have no gap.

    Examples
    --------
    >>> X, y = published_blobs(random_state=0)
    >>> X.shape, len(np.unique(y))
    ((400, 2), 3)
    """
    X, y = datasets.make_blobs(
        n_points + N_UNSEEN,
        centers=3,
        cluster_std=0.3,
        center_box=(-5.0, 5.0),
        random_state=check_random_state(random_state),
    )
    return _standardized(X @ np.array(BLOB_SHAPE))[:n_points], y[:n_points].astype(np.int64)


def published_spirals(n_points: int = 3 * N_POINTS, *, random_state: Seed = None) -> Drawn:
    """Three arms, rotated by thirds of a circle; not standardised.

    Examples
    --------
    >>> X, y = published_spirals(random_state=0)
    >>> X.shape, X.std().round(1).item()
    ((1200, 2), 2.6)
    """
    rng = check_random_state(random_state)
    n = n_points // 3
    angle = 1.0 + np.sqrt(rng.uniform(size=n)) * (780.0 / 360.0) * np.deg2rad(ANGLE)
    arm = angle[:, None] * np.column_stack([-np.cos(angle), np.sin(angle)]) + rng.uniform(0.0, WIDTH, (n, 2))
    turned = [arm @ _rotation(k * 2.0 * np.pi / 3.0) for k in range(3)]
    return np.concatenate(turned), np.repeat(np.arange(3), n)


Drawn = tuple[Points, Labels]


@dataclass(frozen=True)
class PublishedSet:
    """A set and its training in the notebook.

    Attributes
    ----------
    draw : callable
        Draws points (n, 2) and their manifolds from a number of points and `random_state`.
    n_points, n_states, updates : int
        All points are in every batch.
    solved, tried : int
        Number of seeds that the unchanged notebook labelled optimally, and number of seeds tried.
    """

    draw: Callable[..., Drawn]
    n_points: int
    n_states: int
    updates: int
    solved: int
    tried: int


PUBLISHED: dict[str, PublishedSet] = {
    "circles": PublishedSet(published_circles, N_POINTS, 2, 51, 10, 10),
    "moons": PublishedSet(published_moons, N_POINTS, 2, 41, 10, 10),
    "blobs": PublishedSet(published_blobs, N_POINTS, 3, 101, 5, 10),
    "spirals": PublishedSet(published_spirals, 3 * N_POINTS, 3, 601, 2, 3),
}


def _standardized(X: NDArray[np.float64]) -> Points:
    scaled: Points = (X - X.mean(axis=0)) / X.std(axis=0)
    return scaled


def _rotation(angle: float) -> NDArray[np.float64]:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, s], [-s, c]])
