"""Compare ManifoldLabeler with its peers on known manifolds: 1,200 points in 512 dimensions, and 10,000 new ones.

    python benchmarks/labeling.py --seeds 5     into results/labeling/accuracy.json

Everything runs on one thread. Processor times are compared within a seed, with one fit right after the other. The
number of manifolds is given; HDBSCAN does not take it, so it has the size of a cluster, of three, that gives closest to
this number with the least noise. Each result is added to the record, and a second run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from paper.toys import HARDER, PAPER, rotate_into
from records import ROOT, Record, Results, one_thread, parser, timed
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture

from neuralbayes import ManifoldLabeler

Array = NDArray[Any]

SETS = {**PAPER, **HARDER}
FIRST_SEED = 100
N_TRAIN, N_FRESH, DIM = 1200, 10_000, 512
HDBSCAN_SIZES = (5, 20, 60)
PEERS: dict[str, Callable[[int, int], Any]] = {
    "ours": lambda k, seed: ManifoldLabeler(k, random_state=seed),
    "SpectralClustering": lambda k, seed: SpectralClustering(k, affinity="nearest_neighbors", random_state=seed),
    "KMeans": lambda k, seed: KMeans(k, n_init=10, random_state=seed),
    "GaussianMixture": lambda k, seed: GaussianMixture(k, random_state=seed),
}
METHODS = ("ours", "SpectralClustering", "HDBSCAN", "KMeans", "GaussianMixture")


def matching(y: Array, labels: Array) -> NDArray[np.int64]:
    """The class of each label, from the best one-to-one assignment; -1 for noise and unmatched labels."""
    table = np.zeros((max(labels.max() + 1, 1), y.max() + 1), dtype=np.int64)
    np.add.at(table, (labels[labels >= 0], y[labels >= 0]), 1)
    classes = np.full(len(table) + 1, -1)  # the last one is for noise
    rows, columns = linear_sum_assignment(-table)
    classes[rows] = columns
    return classes


def fit_peer(method: str, X: Array, n_clusters: int, seed: int) -> tuple[Any, float]:
    """Fit a method; returns the fitted estimator and the processor seconds of the fit."""
    if method == "HDBSCAN":
        import hdbscan

        tried = []
        for size in HDBSCAN_SIZES:
            fitted, seconds = timed(partial(hdbscan.HDBSCAN(min_cluster_size=size, prediction_data=True).fit, X))
            tried.append((abs(fitted.labels_.max() + 1 - n_clusters), np.sum(fitted.labels_ < 0), fitted, seconds))
            if not any(tried[-1][:2]):
                break
        return min(tried, key=lambda one: one[:2])[2:]
    return timed(lambda: PEERS[method](n_clusters, seed).fit(X))


def predict(method: str, fitted: Any, X: Array) -> Array:
    if method == "HDBSCAN":
        import hdbscan

        return np.asarray(hdbscan.approximate_predict(fitted, X)[0])
    return np.asarray(fitted.predict(X))


def measure(name: str, method: str, seed: int) -> Record:
    """Accuracy and processor seconds of a fit and, where the method can label them, of new points."""
    make, n_clusters = SETS[name]
    X, y = make(N_TRAIN + N_FRESH, random_state=seed)
    X = rotate_into(X, DIM, seed)
    train, fresh = slice(N_TRAIN), slice(N_TRAIN, None)
    fitted, seconds = fit_peer(method, X[train], n_clusters, seed)
    labels = np.asarray(fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(X[train]))
    classes = matching(y[train], labels)
    record: Record = {"accuracy": float(np.mean(classes[labels] == y[train])), "fit_seconds": seconds}
    if method != "SpectralClustering":
        new, record["predict_seconds"] = timed(lambda: predict(method, fitted, X[fresh]))
        record["fresh_accuracy"] = float(np.mean(classes[new] == y[fresh]))
    return record


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--seeds", type=int, default=5, help=f"number, starting at {FIRST_SEED}")
    arguments.add_argument("--only", nargs="+", default=METHODS, choices=METHODS, metavar="METHOD")
    given = arguments.parse_args()
    packages = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn", "hdbscan")
    results = Results(ROOT / "results" / "labeling", packages, ["accuracy"], "python benchmarks/labeling.py")
    with one_thread():
        for seed in range(FIRST_SEED, FIRST_SEED + given.seeds):
            for name in SETS:
                for method in given.only:
                    key: Record = {"set": name, "method": method, "seed": seed}
                    results.measure("accuracy", key, partial(measure, name, method, seed))
    print(pd.DataFrame(results.records["accuracy"]).groupby("method")[["accuracy", "fit_seconds"]].mean())


if __name__ == "__main__":
    main()
