"""Toy data: disjoint manifolds to separate, and connected sets that must not be divided.

Every generator returns ``X`` of shape (n_samples, n_features), float64, and ``y`` of shape (n_samples,), int64,
shuffled, and is deterministic for an integer ``random_state``. ``noise`` is the standard deviation of the noise around
each manifold, clipped at three standard deviations, so that disjoint sets are disjoint for every seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Points = NDArray[np.float64]
Labels = NDArray[np.int64]
Seed = int | np.random.RandomState | None


def _sizes(n_samples: int, shares: Sequence[float]) -> list[int]:
    """Split ``n_samples`` in proportion to ``shares``, exactly."""
    edges = np.rint(np.cumsum(shares) / np.sum(shares) * n_samples).astype(int)
    return [int(s) for s in np.diff(edges, prepend=0)]


def _noise(rng: np.random.RandomState, shape: tuple[int, ...], scale: float) -> Points:
    """Gaussian noise clipped at three standard deviations."""
    return scale * np.clip(rng.standard_normal(shape), -3.0, 3.0)


def _shuffled(parts: Sequence[Points], rng: np.random.RandomState) -> tuple[Points, Labels]:
    X = np.concatenate(parts)
    y = np.repeat(np.arange(len(parts)), [len(p) for p in parts]).astype(np.int64)
    order = rng.permutation(len(X))
    return X[order], y[order]


def _arc(angle: Points, radius: float | Points = 1.0) -> Points:
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def _sphere(rng: np.random.RandomState, n: int, dim: int = 3) -> Points:
    v = rng.standard_normal((n, dim))
    unit: Points = v / np.linalg.norm(v, axis=1, keepdims=True)
    return unit


def make_moons(
    n_samples: int = 1200, *, noise: float = 0.05, shares: Sequence[float] = (1, 1), random_state: Seed = None
) -> tuple[Points, Labels]:
    """Two interleaved half circles in the plane.

    Parameters
    ----------
    noise : float, default=0.05
        Standard deviation of the noise around each arc.
    shares : sequence of two floats, default=(1, 1)
        Relative sizes; ``(10, 1)`` gives the unequal set.

    Examples
    --------
    >>> X, y = make_moons(300, random_state=0)
    >>> X.shape, np.bincount(y)
    ((300, 2), array([150, 150]))
    """
    rng = check_random_state(random_state)
    a, b = (rng.uniform(0, np.pi, n) for n in _sizes(n_samples, shares))
    parts = [_arc(a), np.array([1.0, 0.5]) - _arc(b)]
    return _shuffled([p + _noise(rng, p.shape, noise) for p in parts], rng)


def make_circles(
    n_samples: int = 1200,
    *,
    radii: Sequence[float] = (0.5, 1.0),
    noise: float = 0.05,
    shares: Sequence[float] | None = None,
    random_state: Seed = None,
) -> tuple[Points, Labels]:
    """Concentric circles in the plane, as many as there are ``radii``.

    Parameters
    ----------
    radii : sequence of floats, default=(0.5, 1.0)
    shares : sequence of floats or None
        Relative sizes, equal by default.

    Examples
    --------
    >>> X, y = make_circles(300, radii=(0.5, 1.0, 2.0), random_state=0)
    >>> [float(np.linalg.norm(X[y == k], axis=1).mean().round(1)) for k in range(3)]
    [0.5, 1.0, 2.0]
    """
    rng = check_random_state(random_state)
    sizes = _sizes(n_samples, [1.0] * len(radii) if shares is None else shares)
    parts = [_arc(rng.uniform(0, 2 * np.pi, n), r) for n, r in zip(sizes, radii, strict=True)]
    return _shuffled([p + _noise(rng, p.shape, noise) for p in parts], rng)


def make_spirals(
    n_samples: int = 1200, *, n_arms: int = 3, turns: float = 0.75, noise: float = 0.02, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Interleaved spiral arms in the plane, uniform in radius.

    Parameters
    ----------
    n_arms : int, default=3
    turns : float, default=0.75
        Number of turns of each arm around the centre.

    Examples
    --------
    >>> X, y = make_spirals(300, n_arms=4, random_state=0)
    >>> X.shape, np.bincount(y)
    ((300, 2), array([75, 75, 75, 75]))
    """
    rng = check_random_state(random_state)
    parts = []
    for arm, n in enumerate(_sizes(n_samples, [1.0] * n_arms)):
        radius = rng.uniform(0.2, 1.0, n)
        parts.append(_arc(2 * np.pi * (turns * radius + arm / n_arms), radius))
    return _shuffled([p + _noise(rng, p.shape, noise) for p in parts], rng)


def make_blobs(
    n_samples: int = 1200, *, n_blobs: int = 3, scale: float = 0.18, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Round clusters on the corners of a regular polygon of radius one.

    Parameters
    ----------
    n_blobs : int, default=3
    scale : float, default=0.18
        Standard deviation of each cluster.

    Examples
    --------
    >>> X, y = make_blobs(300, random_state=0)
    >>> np.array([X[y == k].mean(axis=0) for k in range(3)]).round(1) + 0.0
    array([[ 1. ,  0. ],
           [-0.5,  0.8],
           [-0.5, -0.9]])
    """
    rng = check_random_state(random_state)
    corners = _arc(2 * np.pi * np.arange(n_blobs) / n_blobs)
    sizes = _sizes(n_samples, [1.0] * n_blobs)
    return _shuffled([c + _noise(rng, (n, 2), scale) for c, n in zip(corners, sizes, strict=True)], rng)


def make_unequal(n_samples: int = 1200, *, ratio: float = 10.0, random_state: Seed = None) -> tuple[Points, Labels]:
    """Two moons; one has ``ratio`` times the points of the other."""
    return make_moons(n_samples, shares=(ratio, 1.0), random_state=random_state)


def make_interlocked_rings(
    n_samples: int = 1200, *, n_rings: int = 3, noise: float = 0.05, random_state: Seed = None
) -> tuple[Points, Labels]:
    """A chain of rings in space, each threaded through the one before.

    Parameters
    ----------
    n_rings : int, default=3
    """
    rng = check_random_state(random_state)
    parts = []
    for ring, n in enumerate(_sizes(n_samples, [1.0] * n_rings)):
        flat = _arc(rng.uniform(0, 2 * np.pi, n))
        part = np.zeros((n, 3))
        part[:, 0] = flat[:, 0] + 1.4 * ring
        part[:, 1 + ring % 2] = flat[:, 1]
        parts.append(part + _noise(rng, part.shape, noise))
    return _shuffled(parts, rng)


def make_nested_spheres(
    n_samples: int = 1200, *, radii: Sequence[float] = (0.5, 1.2), noise: float = 0.03, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Concentric spheres in space, points in proportion to the radius.

    Parameters
    ----------
    radii : sequence of floats, default=(0.5, 1.2)
    """
    rng = check_random_state(random_state)
    sizes = _sizes(n_samples, radii)
    return _shuffled([r * _sphere(rng, n) + _noise(rng, (n, 3), noise) for n, r in zip(sizes, radii, strict=True)], rng)


def make_roll_and_plane(
    n_samples: int = 1200, *, noise: float = 0.01, random_state: Seed = None
) -> tuple[Points, Labels]:
    """A Swiss roll next to a flat plane."""
    rng = check_random_state(random_state)
    n_roll, n_plane = _sizes(n_samples, (2.0, 1.0))
    turn = np.sqrt(rng.uniform((1.5 * np.pi) ** 2, (4.5 * np.pi) ** 2, n_roll))  # nearly uniform in arc length
    spiral = _arc(turn, turn / (4.5 * np.pi))
    roll = np.column_stack([spiral[:, 0], rng.uniform(-0.7, 0.7, n_roll), spiral[:, 1]])
    plane = np.column_stack([rng.uniform(-1, 1, n_plane), rng.uniform(-0.7, 0.7, n_plane), np.full(n_plane, -1.3)])
    return _shuffled([p + _noise(rng, p.shape, noise) for p in (roll, plane)], rng)


def make_noisy_moons(
    n_samples: int = 1200, *, n_noise: int = 4, scale: float = 0.08, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Two moons with ``n_noise`` additional columns of Gaussian noise, too weak to connect them.

    Parameters
    ----------
    n_noise : int, default=4
    scale : float, default=0.08
        Standard deviation of each noise column.
    """
    rng = check_random_state(random_state)
    X, y = make_moons(n_samples, random_state=rng)
    return np.column_stack([X, _noise(rng, (n_samples, n_noise), scale)]), y


def make_five(n_samples: int = 1200, *, noise: float = 0.03, random_state: Seed = None) -> tuple[Points, Labels]:
    """Five manifolds of different kinds in the plane: a ring around a blob, two moons, and a wave."""
    rng = check_random_state(random_state)
    ring, blob, upper, lower, wave = _sizes(n_samples, (1.2, 0.6, 1.0, 1.0, 1.2))
    s = rng.uniform(-1, 1, wave)
    parts = [
        np.array([-1.7, 0.0]) + _arc(rng.uniform(0, 2 * np.pi, ring), 0.8),
        np.array([-1.7, 0.0]) + _noise(rng, (blob, 2), 0.1),
        np.array([0.6, -0.25]) + _arc(rng.uniform(0, np.pi, upper)),
        np.array([1.6, 0.25]) - _arc(rng.uniform(0, np.pi, lower)),
        np.column_stack([2.4 * s, -1.7 + 0.25 * np.sin(6 * s)]),
    ]
    return _shuffled([p + _noise(rng, p.shape, noise) for p in parts], rng)


def make_gaussian(n_samples: int = 1200, *, dim: int = 2, random_state: Seed = None) -> tuple[Points, Labels]:
    """One Gaussian: a single connected set."""
    return check_random_state(random_state).standard_normal((n_samples, dim)), np.zeros(n_samples, np.int64)


def make_ring(n_samples: int = 1200, *, noise: float = 0.05, random_state: Seed = None) -> tuple[Points, Labels]:
    """One circle: a single connected set."""
    return make_circles(n_samples, radii=(1.0,), noise=noise, random_state=random_state)


def make_square(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """The unit square, filled uniformly: a single connected set."""
    return check_random_state(random_state).uniform(0, 1, (n_samples, 2)), np.zeros(n_samples, np.int64)


def make_overlapping(
    n_samples: int = 1200, *, distance: float = 2.5, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Two Gaussians of unit variance whose means are ``distance`` apart: two clusters, one connected set."""
    rng = check_random_state(random_state)
    a, b = _sizes(n_samples, (1.0, 1.0))
    return _shuffled([rng.standard_normal((n, 2)) + np.array([c, 0.0]) for n, c in ((a, 0.0), (b, distance))], rng)


def rotate_into(X: Points, dim: int, random_state: Seed = None) -> Points:
    """Pad with zeros to ``dim`` columns and rotate at random: an isometry.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    dim : int
        At least n_features.

    Returns
    -------
    ndarray of shape (n_samples, dim)

    Examples
    --------
    >>> X, _ = make_moons(300, random_state=0)
    >>> rotated = rotate_into(X, 512, random_state=0)
    >>> rotated.shape, np.allclose(np.linalg.norm(rotated, axis=1), np.linalg.norm(X, axis=1))
    ((300, 512), True)
    """
    rng = check_random_state(random_state)
    basis, _ = np.linalg.qr(rng.standard_normal((dim, X.shape[1])))
    rotated: Points = X @ basis.T
    return rotated


Maker = Callable[..., tuple[Points, Labels]]

PAPER: dict[str, tuple[Maker, int]] = {
    "moons": (make_moons, 2),
    "circles": (make_circles, 2),
    "spirals": (make_spirals, 3),
    "blobs": (make_blobs, 3),
}
HARDER: dict[str, tuple[Maker, int]] = {
    "unequal 1:10": (make_unequal, 2),
    "interlocked rings": (make_interlocked_rings, 3),
    "nested spheres": (make_nested_spheres, 2),
    "roll and plane": (make_roll_and_plane, 2),
    "noise features": (make_noisy_moons, 2),
    "five manifolds": (make_five, 5),
}
CONNECTED: dict[str, Maker] = {
    "gaussian": make_gaussian,
    "ring": make_ring,
    "square": make_square,
    "overlapping": make_overlapping,
}
