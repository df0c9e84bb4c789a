"""Where members lie on the map of the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MAX_DRAWN, MAX_TSNE = 4_000, 1_500  # maximum number of points, by PCA and by t-SNE, which then takes seconds
ENOUGH = 0.6  # share of the variance that two principal components must have; otherwise the map is made by t-SNE
COMPONENTS, ITERATIONS = 30, 500  # principal components passed to t-SNE


@dataclass(frozen=True, eq=False)
class Places:
    """Members in the plane."""

    rows: NDArray[np.int64]  # (n,): numbers of the members that are drawn, ascending
    points: NDArray[np.float64]  # (n, 2)
    axes: tuple[str, str]  # names; empty if they mean nothing
    caption: str


def place(
    coordinates: NDArray[np.float64],
    rows: NDArray[np.int64],
    n_all: int,
    noun: str,
    wanted: Sequence[int] = (),
    straight: bool = False,
) -> Places:
    """Map the coordinates (n, d) of some of `n_all` rows to the plane, `straight` by principal components.

    The `wanted` rows are drawn if they are among them.

    Examples
    --------
    >>> found = place(np.eye(3)[[0, 0, 1, 2]], np.arange(4), 100, "row")
    >>> found.points.shape, found.caption
    ((4, 2), 'Principal components of 4 of 100 rows.')
    """
    from sklearn.decomposition import PCA

    d = coordinates.shape[1]
    coordinates = _nearer(coordinates)
    chosen = _chosen(rows, MAX_DRAWN, wanted)
    drawn = coordinates[chosen]
    if d < 2 or len(drawn) < 3 or np.ptp(drawn, axis=0).max(initial=0.0) == 0.0:
        points = np.zeros((len(drawn), 2))
        points[:, :d] = drawn[:, :2]
        # One coordinate is spread out a little, so that points do not hide each other.
        points[:, 1] += (0.1 * np.ptp(points[:, 0]) * np.random.default_rng(0).uniform(size=len(drawn))) * (d < 2)
        return Places(rows[chosen], points, ("", ""), _caption("The only coordinate", len(chosen), n_all, noun))
    reduced = PCA(min(COMPONENTS, d, len(drawn)), svd_solver="full").fit(drawn)
    shares = reduced.explained_variance_ratio_
    if straight or shares[:2].sum() >= ENOUGH or len(drawn) < 10:
        names = (f"component 1, {100 * shares[0]:.0f} % of variance", f"component 2, {100 * shares[1]:.0f} %")
        points = reduced.transform(drawn)[:, :2]
        return Places(rows[chosen], points, names, _caption("Principal components", len(chosen), n_all, noun))
    from sklearn.manifold import TSNE

    chosen = _chosen(rows, MAX_TSNE, wanted)
    perplexity = min(30.0, (len(chosen) - 1) / 3)
    tsne = TSNE(perplexity=perplexity, init="pca", max_iter=ITERATIONS, random_state=0)
    points = np.asarray(tsne.fit_transform(reduced.transform(coordinates[chosen])), dtype=np.float64)
    caption = _caption("t-SNE", len(chosen), n_all, noun)
    return Places(rows[chosen], points, ("", ""), f"{caption} Only neighbourhoods mean something, not distances.")


def _nearer(coordinates: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same with outliers moved closer, which would leave no room for the others."""
    if not coordinates.size:
        return coordinates
    low, high = np.quantile(coordinates, [0.01, 0.99], axis=0)
    room = np.where(high > low, (high - low) / 2.0, np.inf)  # rare values of a category stay
    return coordinates.clip(low - room, high + room)


def _chosen(rows: NDArray[np.int64], most: int, wanted: Sequence[int]) -> NDArray[np.intp]:
    """Positions of at most `most` rows, the wanted ones among them, ascending."""
    if len(rows) <= most:
        return np.arange(len(rows))
    order = np.random.default_rng(0).permutation(len(rows))
    first = np.isin(rows[order], np.asarray(wanted, dtype=np.int64))
    return np.sort(np.concatenate([order[first], order[~first]])[:most])


def _caption(what: str, n_drawn: int, n_all: int, noun: str) -> str:
    return f"{what} of {n_drawn:,}{'' if n_drawn == n_all else f' of {n_all:,}'} {noun}s."
