"""Positions of samples on the map."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

MAX_MAPPED = 1500
"""Maximum number of points for t-SNE, which then takes seconds."""

ITERATIONS = 500
COMPONENTS = 30  # principal components passed to t-SNE
Method = Literal["tsne", "pca"]


@dataclass(frozen=True, eq=False)
class Places:
    """Samples in the plane.

    Attributes
    ----------
    points : ndarray of shape (n, 2)
    mapped : ndarray of bool and shape (n,)
        Samples that are drawn. Any other sample has the position of the most similar drawn sample.
    axis_names : tuple of two str
    caption : str
        Description of the map.
    """

    points: NDArray[np.float64]
    mapped: NDArray[np.bool_]
    axis_names: tuple[str, str]
    caption: str


def posterior_places(p_zx: NDArray[Any], method: Method) -> Places:
    """Map samples by their posteriors: nearby samples have a small Hellinger distance between their p(z|x).

    Parameters
    ----------
    p_zx : array of shape (n, n_states)
    method : {"tsne", "pca"}

    Examples
    --------
    >>> places = posterior_places(np.eye(3)[[0, 0, 1, 2]], "pca")
    >>> np.allclose(places.points[0], places.points[1])
    True
    """
    roots = np.sqrt(np.asarray(p_zx, dtype=np.float64))  # their Euclidean distance is the Hellinger distance
    what = "the square roots of p(z|x)" if method == "pca" else "p(z|x)"
    return _mapped(roots, method, what, "samples", "all posteriors are equal")


def feature_places(points: NDArray[Any], method: Method, what: str, noun: str) -> Places:
    """Map samples by their features, described by `what`: nearby samples have similar features.

    Examples
    --------
    >>> feature_places(np.eye(3)[[0, 0, 1, 2]], "pca", "the features", "text").caption
    'PCA of the features of 4 texts'
    """
    return _mapped(np.asarray(points, dtype=np.float64), method, what, f"{noun}s", "all features are equal")


def _mapped(rows: NDArray[np.float64], method: Method, what: str, noun: str, alike: str) -> Places:
    """Map some rows by t-SNE or PCA, and the others to the position of the most similar one."""
    from sklearn.decomposition import PCA

    n, d = rows.shape
    order = np.random.default_rng(0).permutation(n)[:MAX_MAPPED]
    mapped = np.zeros(n, dtype=bool)
    mapped[order] = True
    drawn = rows[mapped]
    part = f"{len(drawn):,} of {n:,} {noun}" if len(drawn) < n else f"{n:,} {noun}"
    if min(drawn.shape) < 2 or drawn.std(axis=0).max() < 1e-6:  # all rows are equal
        return _placed(np.zeros((len(drawn), 2)), rows, mapped, ("", ""), f"{part}: {alike}")
    reduced = PCA(min(COMPONENTS, len(drawn), d), random_state=0, svd_solver="full").fit(drawn)
    components = reduced.transform(drawn)
    if method == "pca" or len(drawn) < 10:
        shares = [100 * share for share in reduced.explained_variance_ratio_[:2]]
        names = (f"principal component 1 ({shares[0]:.0f} %)", f"principal component 2 ({shares[1]:.0f} %)")
        return _placed(components[:, :2], rows, mapped, names, f"PCA of {what} of {part}")
    from sklearn.manifold import TSNE

    tsne = TSNE(perplexity=min(30.0, (len(drawn) - 1) / 3), init="pca", max_iter=ITERATIONS, random_state=0)
    points = np.asarray(tsne.fit_transform(components), dtype=np.float64)
    return _placed(points, rows, mapped, ("", ""), f"t-SNE of {what} of {part}: only neighbourhoods are meaningful")


def _placed(
    points: NDArray[np.float64],
    rows: NDArray[np.float64],
    mapped: NDArray[np.bool_],
    axis_names: tuple[str, str],
    caption: str,
) -> Places:
    """Give each unmapped row the position of its nearest mapped neighbour."""
    from sklearn.metrics import pairwise_distances_argmin

    places = np.empty((len(rows), 2))
    places[mapped] = points
    if not mapped.all():
        places[~mapped] = points[pairwise_distances_argmin(rows[~mapped], rows[mapped])]
    return Places(places, mapped, axis_names, caption)
