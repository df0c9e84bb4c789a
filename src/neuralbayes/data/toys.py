"""Toy data: disjoint manifolds to separate, and connected sets that must not be divided.

Every generator returns ``X`` of shape (n_samples, n_features), float64, and ``y`` of shape (n_samples,), int64,
shuffled, and is deterministic for an integer ``random_state``. ``noise`` is the standard deviation of the noise around
each manifold, clipped at three standard deviations, so that disjoint sets are disjoint for every seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

Points = NDArray[np.float64]
Labels = NDArray[np.int64]
Seed = int | np.random.RandomState | None


def split_sizes(n_samples: int, shares: Sequence[float]) -> list[int]:
    """Split ``n_samples`` in proportion to ``shares``, exactly."""
    edges = np.rint(np.cumsum(shares) / np.sum(shares) * n_samples).astype(int)
    return [int(s) for s in np.diff(edges, prepend=0)]


def clipped_noise(rng: np.random.RandomState, shape: tuple[int, ...], scale: float) -> Points:
    """Gaussian noise clipped at three standard deviations."""
    return scale * np.clip(rng.standard_normal(shape), -3.0, 3.0)


def shuffled(parts: Sequence[Points], rng: np.random.RandomState) -> tuple[Points, Labels]:
    """The points of all parts and the number of the part of each, in random order."""
    X = np.concatenate(parts)
    y = np.repeat(np.arange(len(parts)), [len(p) for p in parts]).astype(np.int64)
    order = rng.permutation(len(X))
    return X[order], y[order]


def arc(angle: Points, radius: float | Points = 1.0) -> Points:
    """Points of the plane at these angles from the first axis."""
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def make_moons(
    n_samples: int = 1200, *, noise: float = 0.05, shares: Sequence[float] = (1, 1), random_state: Seed = None
) -> tuple[Points, Labels]:
    """Two interleaved half circles in the plane, of sizes in proportion to ``shares``."""
    rng = check_random_state(random_state)
    a, b = (rng.uniform(0, np.pi, n) for n in split_sizes(n_samples, shares))
    parts = [arc(a), np.array([1.0, 0.5]) - arc(b)]
    return shuffled([p + clipped_noise(rng, p.shape, noise) for p in parts], rng)


def make_circles(
    n_samples: int = 1200, *, radii: Sequence[float] = (0.5, 1.0), noise: float = 0.05, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Concentric circles in the plane, as many as there are ``radii``.

    Examples
    --------
    >>> X, y = make_circles(300, radii=(0.5, 1.0, 2.0), random_state=0)
    >>> [float(np.linalg.norm(X[y == k], axis=1).mean().round(1)) for k in range(3)]
    [0.5, 1.0, 2.0]
    """
    rng = check_random_state(random_state)
    sizes = split_sizes(n_samples, [1.0] * len(radii))
    parts = [arc(rng.uniform(0, 2 * np.pi, n), r) for n, r in zip(sizes, radii, strict=True)]
    return shuffled([p + clipped_noise(rng, p.shape, noise) for p in parts], rng)


def make_spirals(
    n_samples: int = 1200, *, n_arms: int = 3, noise: float = 0.02, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Interleaved spiral arms in the plane, uniform in radius, each of three quarters of a turn."""
    rng = check_random_state(random_state)
    parts = []
    for arm, n in enumerate(split_sizes(n_samples, [1.0] * n_arms)):
        radius = rng.uniform(0.2, 1.0, n)
        parts.append(arc(2 * np.pi * (0.75 * radius + arm / n_arms), radius))
    return shuffled([p + clipped_noise(rng, p.shape, noise) for p in parts], rng)


def make_blobs(
    n_samples: int = 1200, *, n_blobs: int = 3, scale: float = 0.18, random_state: Seed = None
) -> tuple[Points, Labels]:
    """Round clusters of standard deviation ``scale`` on the corners of a regular polygon of radius one."""
    rng = check_random_state(random_state)
    corners = arc(2 * np.pi * np.arange(n_blobs) / n_blobs)
    sizes = split_sizes(n_samples, [1.0] * n_blobs)
    return shuffled([c + clipped_noise(rng, (n, 2), scale) for c, n in zip(corners, sizes, strict=True)], rng)


def make_unequal(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """Two moons, one with ten times the points of the other."""
    return make_moons(n_samples, shares=(10.0, 1.0), random_state=random_state)


def make_five(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """Five manifolds of different kinds in the plane: a ring around a blob, two moons, and a wave."""
    rng = check_random_state(random_state)
    ring, blob, upper, lower, wave = split_sizes(n_samples, (1.2, 0.6, 1.0, 1.0, 1.2))
    s = rng.uniform(-1, 1, wave)
    parts = [
        np.array([-1.7, 0.0]) + arc(rng.uniform(0, 2 * np.pi, ring), 0.8),
        np.array([-1.7, 0.0]) + clipped_noise(rng, (blob, 2), 0.1),
        np.array([0.6, -0.25]) + arc(rng.uniform(0, np.pi, upper)),
        np.array([1.6, 0.25]) - arc(rng.uniform(0, np.pi, lower)),
        np.column_stack([2.4 * s, -1.7 + 0.25 * np.sin(6 * s)]),
    ]
    return shuffled([p + clipped_noise(rng, p.shape, 0.03) for p in parts], rng)


def make_ring(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """One circle: a single connected set."""
    return make_circles(n_samples, radii=(1.0,), random_state=random_state)


def make_overlapping(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """Two Gaussians of unit variance whose means are 2.5 apart: two clusters, one connected set."""
    rng = check_random_state(random_state)
    a, b = split_sizes(n_samples, (1.0, 1.0))
    return shuffled([rng.standard_normal((n, 2)) + np.array([c, 0.0]) for n, c in ((a, 0.0), (b, 2.5))], rng)
