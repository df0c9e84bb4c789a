"""More toy data, for tests and benchmarks: harder manifolds, connected sets, and rotations into many dimensions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.utils import check_random_state

from neuralbayes.data.toys import (
    Labels,
    Points,
    Seed,
    arc,
    clipped_noise,
    make_blobs,
    make_circles,
    make_five,
    make_moons,
    make_overlapping,
    make_ring,
    make_spirals,
    make_unequal,
    shuffled,
    split_sizes,
)


def make_interlocked_rings(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """A chain of three rings in space, each threaded through the one before."""
    rng = check_random_state(random_state)
    parts = []
    for ring, n in enumerate(split_sizes(n_samples, [1.0] * 3)):
        flat = arc(rng.uniform(0, 2 * np.pi, n))
        part = np.zeros((n, 3))
        part[:, 0] = flat[:, 0] + 1.4 * ring
        part[:, 1 + ring % 2] = flat[:, 1]
        parts.append(part + clipped_noise(rng, part.shape, 0.05))
    return shuffled(parts, rng)


def make_nested_spheres(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """Two concentric spheres in space, points in proportion to the radius."""
    rng = check_random_state(random_state)
    parts = []
    for n, radius in zip(split_sizes(n_samples, (0.5, 1.2)), (0.5, 1.2), strict=True):
        v = rng.standard_normal((n, 3))
        sphere = radius * (v / np.linalg.norm(v, axis=1, keepdims=True))
        parts.append(sphere + clipped_noise(rng, (n, 3), 0.03))
    return shuffled(parts, rng)


def make_roll_and_plane(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """A Swiss roll next to a flat plane."""
    rng = check_random_state(random_state)
    n_roll, n_plane = split_sizes(n_samples, (2.0, 1.0))
    turn = np.sqrt(rng.uniform((1.5 * np.pi) ** 2, (4.5 * np.pi) ** 2, n_roll))  # nearly uniform in arc length
    spiral = arc(turn, turn / (4.5 * np.pi))
    roll = np.column_stack([spiral[:, 0], rng.uniform(-0.7, 0.7, n_roll), spiral[:, 1]])
    plane = np.column_stack([rng.uniform(-1, 1, n_plane), rng.uniform(-0.7, 0.7, n_plane), np.full(n_plane, -1.3)])
    return shuffled([p + clipped_noise(rng, p.shape, 0.01) for p in (roll, plane)], rng)


def make_noisy_moons(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """Two moons with four more columns of Gaussian noise, too weak to connect them."""
    rng = check_random_state(random_state)
    X, y = make_moons(n_samples, random_state=rng)
    return np.column_stack([X, clipped_noise(rng, (n_samples, 4), 0.08)]), y


def make_gaussian(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """One Gaussian: a single connected set."""
    return check_random_state(random_state).standard_normal((n_samples, 2)), np.zeros(n_samples, np.int64)


def make_square(n_samples: int = 1200, *, random_state: Seed = None) -> tuple[Points, Labels]:
    """The unit square, filled uniformly: a single connected set."""
    return check_random_state(random_state).uniform(0, 1, (n_samples, 2)), np.zeros(n_samples, np.int64)


def rotate_into(X: Points, dim: int, random_state: Seed = None) -> Points:
    """Rotate X (n_samples, n_features) at random into ``dim`` dimensions: an isometry.

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
