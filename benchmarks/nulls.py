"""Rows that are one connected piece, or have gaps for other reasons than manifolds. None of them may be certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Kind = Callable[[int, int, np.random.RandomState], Array]


def gaussian(n: int, d: int, rng: np.random.RandomState) -> Array:
    return np.asarray(rng.standard_normal((n, d)) @ (np.eye(d) + rng.standard_normal((d, d)) / (2.0 * np.sqrt(d))))


def uniform(n: int, d: int, rng: np.random.RandomState) -> Array:
    return rng.uniform(size=(n, d)) * rng.uniform(0.2, 1.0, d)


def student(n: int, d: int, rng: np.random.RandomState) -> Array:
    freedom = rng.choice([2, 3, 5])
    return np.asarray(rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(freedom, (n, 1)) / freedom))


def along(n: int, rng: np.random.RandomState) -> Array:
    """Positions in [0, 1] along a line, evenly, at random or with uneven spacing."""
    even = rng.uniform(size=n)
    kinds = [
        np.arange(n) / n,
        even,
        even ** rng.uniform(1.0, 3.0),
        np.cumsum(np.exp(rng.uniform(0.3, 1.2) * rng.standard_normal(n))),
    ]
    position = kinds[rng.randint(len(kinds))]
    return np.asarray(np.sort(position) / position.max())


def curve(points: Array, d: int, rng: np.random.RandomState) -> Array:
    """Points of a curve with a little noise, rotated into d columns."""
    X = points + rng.choice([0.0, 0.005, 0.02]) * points.std() * rng.standard_normal(points.shape)
    basis, _ = np.linalg.qr(rng.standard_normal((max(d, X.shape[1]), X.shape[1])))
    return np.asarray(X @ basis.T)


def line(n: int, d: int, rng: np.random.RandomState) -> Array:
    t = along(n, rng)
    return curve(np.column_stack([t, rng.choice([0.0, 0.5]) * t**2]), d, rng)


def ring(n: int, d: int, rng: np.random.RandomState) -> Array:
    t = 2.0 * np.pi * along(n, rng)
    return curve(np.column_stack([np.cos(t), rng.uniform(0.3, 1.0) * np.sin(t)]), d, rng)


def spiral(n: int, d: int, rng: np.random.RandomState) -> Array:
    """One arm of one to five turns, with positions along its length."""
    turns, inner = rng.uniform(1.0, 5.0), rng.uniform(0.1, 0.5)
    t = np.sqrt(inner**2 + along(n, rng) * ((turns + inner) ** 2 - inner**2))
    return curve(t[:, None] * np.column_stack([np.cos(2.0 * np.pi * t), np.sin(2.0 * np.pi * t)]), d, rng)


def likert(n: int, d: int, rng: np.random.RandomState) -> Array:
    answers = rng.standard_normal((n, 1)) + rng.standard_normal((n, d))
    return np.asarray(np.clip(np.round(rng.choice([1.0, 2.0]) * answers), -3, 3))


def rounded(n: int, d: int, rng: np.random.RandomState) -> Array:
    return np.round(gaussian(n, d, rng), rng.randint(0, 3))


def repeated(n: int, d: int, rng: np.random.RandomState) -> Array:
    X = gaussian(n, d, rng)
    X[: n // 4] = X[rng.choice(n, n // 4)]
    X[n // 4 : n // 4 + rng.randint(0, n // 10 + 1)] = X[0]
    return X


def counter(n: int, d: int, rng: np.random.RandomState) -> Array:
    X = gaussian(n, d, rng)
    X[:, 0] = np.arange(n) + (rng.randint(0, 5 * n) if rng.uniform() < 0.5 else 0) * (np.arange(n) >= n // 2)
    return X


def sentinel(n: int, d: int, rng: np.random.RandomState) -> Array:
    X = [gaussian, uniform, student][rng.randint(3)](n, d, rng)
    X[rng.uniform(size=n) < rng.uniform(0.02, 0.4), rng.randint(d)] = -999.0
    return X


def mixture(n: int, d: int, rng: np.random.RandomState) -> Array:
    """Columns of several kinds side by side; one of these may be a sentinel's."""
    kinds = [gaussian, uniform, student, likert, rounded, sentinel, line, ring]
    first, second = (kinds[i] for i in rng.choice(len(kinds), 2, replace=False))
    half = max(2, d // 2)
    return np.column_stack([first(n, half, rng), second(n, half, rng)[rng.permutation(n)]])


NULLS: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        gaussian, uniform, student, line, ring, spiral, likert, rounded, repeated, counter, sentinel, mixture,
    )
}  # fmt: skip


def draw(seed: int) -> tuple[str, Array]:
    """The rows of one seed: the kinds in turn, 50 to 2,000 rows and 2 to 50 columns."""
    rng = np.random.RandomState(seed)
    name = list(NULLS)[seed % len(NULLS)]
    n, d = (round(np.exp(rng.uniform(np.log(low), np.log(high)))) for low, high in ((50, 2000), (2, 50)))
    X = NULLS[name](n, d, rng)
    return name, X[rng.permutation(n)] if name != "counter" else X
