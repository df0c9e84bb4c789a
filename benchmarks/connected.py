"""Rows that form a single connected piece, with the quirks of real tables. Nothing here should be certified."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Kind = Callable[[int, np.random.RandomState], Array]


def gaussian(dim: int) -> Kind:
    """Gaussian rows with a random covariance, which depends on the seed."""

    def draw(n: int, rng: np.random.RandomState) -> Array:
        mixing = np.eye(dim) + rng.standard_normal((dim, dim)) / (2.0 * np.sqrt(dim))
        X: Array = rng.standard_normal((n, dim)) @ mixing
        return X

    return draw


def student(dim: int, freedom: int) -> Kind:
    return lambda n, rng: rng.standard_normal((n, dim)) / np.sqrt(rng.chisquare(freedom, n) / freedom).reshape(-1, 1)


def uniform(dim: int) -> Kind:
    return lambda n, rng: rng.uniform(size=(n, dim))


def ring(n: int, rng: np.random.RandomState) -> Array:
    angle = rng.uniform(0.0, 2.0 * np.pi, n)
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.1 * rng.standard_normal((n, 2))


def overlapping(n: int, rng: np.random.RandomState) -> Array:
    """Two Gaussians whose centres are three standard deviations apart."""
    return rng.standard_normal((n, 2)) + np.where(rng.uniform(size=(n, 1)) < 0.5, [3.0, 0.0], [0.0, 0.0])


def lognormal(n: int, rng: np.random.RandomState) -> Array:
    return np.exp(rng.standard_normal((n, 3)))


def random_walk(n: int, rng: np.random.RandomState) -> Array:
    return np.cumsum(rng.standard_normal((n, 2)), axis=0)


def duplicates(n: int, rng: np.random.RandomState) -> Array:
    """A fifth of the rows are copies of others."""
    X = rng.standard_normal((n, 3))
    X[: n // 5] = X[rng.choice(n, n // 5)]
    return X


def one_row_often(n: int, rng: np.random.RandomState) -> Array:
    X = rng.standard_normal((n, 3))
    X[: 12 + n // 20] = X[0]
    return X


def rounded(scale: float, dim: int) -> Kind:
    return lambda n, rng: np.round(scale * rng.standard_normal((n, dim)))


def beside(column: Callable[[int, np.random.RandomState], Array]) -> Kind:
    """Three Gaussian columns next to one or more independent columns."""
    return lambda n, rng: np.column_stack([rng.standard_normal((n, 3)), column(n, rng)])


def categories(n: int, rng: np.random.RandomState) -> Array:
    """Two one-hot encoded categories, with three and four values."""
    return np.column_stack([np.eye(k)[rng.choice(k, n, p=rng.dirichlet(np.full(k, 2.0)))] for k in (3, 4)])


def ids_with_a_gap(n: int, rng: np.random.RandomState) -> Array:
    return np.arange(n) + np.where(np.arange(n) < n // 2, 0, 5 * n)


def half_zeros(n: int, rng: np.random.RandomState) -> Array:
    return np.where(rng.uniform(size=n) < 0.5, 0.0, 1.0 + np.exp(rng.standard_normal(n)))


CONNECTED: dict[str, Kind] = {
    "Gaussian, 2 dimensions": gaussian(2),
    "Gaussian, 5 dimensions": gaussian(5),
    "Gaussian, 20 dimensions": gaussian(20),
    "Gaussian, 50 dimensions": gaussian(50),
    "Student's t, 2 degrees, 2 dimensions": student(2, 2),
    "Student's t, 3 degrees, 5 dimensions": student(5, 3),
    "uniform, 2 dimensions": uniform(2),
    "uniform, 10 dimensions": uniform(10),
    "one ring": ring,
    "two overlapping Gaussians": overlapping,
    "lognormal": lognormal,
    "random walk": random_walk,
    "a fifth duplicated": duplicates,
    "one row many times": one_row_often,
    "rounded to 8 or so values": rounded(1.0, 4),
    "rounded to 80 or so values": rounded(12.0, 2),
    "beside a boolean": beside(lambda n, rng: rng.uniform(size=n) < 0.3),
    "beside one-hot categories": beside(categories),
    "beside a year": beside(lambda n, rng: rng.randint(1990, 2021, n)),
    "beside a code of five values": beside(lambda n, rng: rng.choice([101, 102, 205, 300, 999], n)),
    "beside ids with a gap": beside(ids_with_a_gap),
    "beside a column that is half zeros": beside(half_zeros),
}
"""Functions that draw connected rows, by name. Each takes the number of rows and a random generator."""
