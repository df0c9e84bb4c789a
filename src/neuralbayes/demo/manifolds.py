"""The first part of the demo: the paper's toy manifolds in 512 dimensions, and a ring that must not be divided."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from neuralbayes.bayes import LOG_2
from neuralbayes.clusters.accuracy import count_right
from neuralbayes.data.toys import PAPER, Maker, make_ring, rotate_into
from neuralbayes.estimators import ManifoldLabeler

N_POINTS = 1200
N_FEATURES = 512
GRID = 160
"""Grid points of the decision map along each side."""

SETS: dict[str, tuple[Maker, int, bool]] = {
    **{name: (make, n_clusters, True) for name, (make, n_clusters) in PAPER.items()},
    "one ring": (make_ring, 2, False),  # connected: two requested clusters cannot be disjoint
}


DRAWN = ("points", "labels", "extent", "decision_map")
"""Fields of a result that are only for its picture."""


@dataclass(frozen=True)
class ManifoldResult:
    """One line of the table, and the data of its picture."""

    name: str
    n_clusters: int  # requested
    n_points: int
    n_features: int
    right: int | None  # correct points; None if there are no classes
    kmeans_right: int | None
    separation_percent: float  # of log 2, minimum over the clusters
    certified: bool
    n_clusters_auto: int  # found by n_clusters="auto"
    seconds: float  # of the fit
    points: NDArray[np.float64] = field(repr=False)  # (n, 2)
    labels: NDArray[np.int64] = field(repr=False)  # (n,)
    extent: tuple[float, float, float, float] = field(repr=False)  # left, right, bottom, top of the map
    decision_map: NDArray[np.float64] = field(repr=False)  # p(z|x): (rows, columns, n_clusters)

    def to_dict(self) -> dict[str, Any]:
        """The line of the table as JSON types."""
        return {name: value for name, value in vars(self).items() if name not in DRAWN}


def label_manifolds(seed: int, done: Callable[[str], None]) -> list[ManifoldResult]:
    """Label each set, and call `done` with its name. True labels are used only for counting."""
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a refusal is reported in the table
        # Warm up, so that start-up costs do not count for the first set.
        ManifoldLabeler(2, n_init=1, random_state=seed).fit(make_ring(60, random_state=seed)[0])
        for name, (make, n_clusters, disjoint) in SETS.items():
            results.append(_label(name, make, n_clusters, disjoint, seed))
            done(name)
    return results


def _label(name: str, make: Maker, n_clusters: int, disjoint: bool, seed: int) -> ManifoldResult:
    points, truth = make(N_POINTS, random_state=seed)
    X = rotate_into(points, N_FEATURES, random_state=seed)
    start = time.perf_counter()
    labeler = ManifoldLabeler(n_clusters, random_state=seed).fit(X)
    seconds = time.perf_counter() - start
    auto = ManifoldLabeler("auto", random_state=seed).fit(X)
    kmeans = KMeans(n_clusters, n_init=10, random_state=seed).fit_predict(X).astype(np.int64)
    extent, decision_map = _decision_map(labeler, points, seed)
    return ManifoldResult(
        name=name,
        n_clusters=n_clusters,
        n_points=len(X),
        n_features=X.shape[1],
        right=count_right(labeler.labels_, truth) if disjoint else None,
        kmeans_right=count_right(kmeans, truth) if disjoint else None,
        separation_percent=100.0 * float(labeler.separation_.min()) / LOG_2,
        certified=bool(labeler.disjoint_.all()),
        n_clusters_auto=int(auto.n_clusters_),
        seconds=seconds,
        points=points,
        labels=labeler.labels_.astype(np.int64),
        extent=extent,
        decision_map=decision_map,
    )


def _decision_map(
    labeler: ManifoldLabeler, points: NDArray[np.float64], seed: int
) -> tuple[tuple[float, float, float, float], NDArray[np.float64]]:
    """p(z|x) on a square grid around the points, rotated into the high dimension like them."""
    low, high = points.min(axis=0), points.max(axis=0)
    half = 0.62 * float((high - low).max())
    columns, rows = (np.linspace(c - half, c + half, GRID) for c in (low + high) / 2)
    grid = np.stack(np.meshgrid(columns, rows), axis=-1)  # (rows, columns, 2), from the bottom up
    p_zx = labeler.predict_proba(rotate_into(grid.reshape(-1, 2), N_FEATURES, random_state=seed))
    extent = (float(columns[0]), float(columns[-1]), float(rows[0]), float(rows[-1]))
    return extent, p_zx.reshape(GRID, GRID, -1)
