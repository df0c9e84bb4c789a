"""Compare ManifoldLabeler with its peers on known manifolds, and count false certificates on connected rows.

    python benchmarks/labeling.py               two seeds, without saving: minutes
    python benchmarks/labeling.py --full        twenty seeds, with GemClus, into results/labeling

An interrupted --full continues. Everything runs on one thread. Times are compared within a seed, with one fit right
after the other.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from connected import CONNECTED as CONNECTED_ROWS
from numpy.typing import NDArray
from paper.toys import CONNECTED, HARDER, PAPER, rotate_into
from records import Record, Results
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from neuralbayes import ManifoldLabeler
from neuralbayes.bayes import LOG_2

Array = NDArray[Any]
Job = tuple[str, Record, Callable[[], Record]]  # file, key of the record, function that measures its values

ROOT = Path(__file__).parents[1]
FIRST_SEED = 100
N_TRAIN, N_FRESH, DIM = 1200, 10_000, 512
HDBSCAN_SIZES = (5, 20, 60)
HDBSCAN_PREDICTS = 3  # number of seeds; it takes seconds for 10,000 rows
CONNECTED_FITS: tuple[tuple[int, int | Literal["auto"], bool], ...] = (
    (150, 2, True),
    (600, "auto", True),
    (1200, 3, False),
)
"""Number of rows, `n_clusters`, and whether columns are standardised."""
METHODS = ("ours", "SpectralClustering", "HDBSCAN", "KMeans", "GaussianMixture", "GemClus")
FILES = ("accuracy", "certificate", "connected", "auto")
GEMCLUS_SEEDS = 2  # minutes a fit


def matching(y: Array, labels: Array) -> NDArray[np.int64]:
    """The class of each label, from the best one-to-one assignment; -1 for noise and unmatched labels."""
    table = np.zeros((max(labels.max() + 1, 1), y.max() + 1), dtype=np.int64)
    np.add.at(table, (labels[labels >= 0], y[labels >= 0]), 1)
    classes = np.full(len(table) + 1, -1)  # the last one is for noise
    rows, columns = linear_sum_assignment(-table)
    classes[rows] = columns
    return classes


def timed(job: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    value = job()
    return value, time.perf_counter() - start


def fit_peer(method: str, X: Array, n_clusters: int, seed: int) -> tuple[Any, float]:
    """Fit a method; returns the fitted estimator and the seconds of the fit."""
    if method == "HDBSCAN":  # accepts no K, so use the size that gives closest to K clusters with the least noise
        import hdbscan

        tried = []
        for size in HDBSCAN_SIZES:
            fitted, seconds = timed(partial(hdbscan.HDBSCAN(min_cluster_size=size, prediction_data=True).fit, X))
            tried.append((abs(fitted.labels_.max() + 1 - n_clusters), np.sum(fitted.labels_ < 0), fitted, seconds))
            if not any(tried[-1][:2]):
                break
        return min(tried, key=lambda one: one[:2])[2:]
    if method == "GemClus":
        from gemclus.mlp import MLPMMD

        return timed(lambda: MLPMMD(n_clusters, random_state=seed).fit(X))
    makers: dict[str, Callable[[], Any]] = {
        "ours": lambda: ManifoldLabeler(n_clusters, random_state=seed),
        "SpectralClustering": lambda: SpectralClustering(n_clusters, affinity="nearest_neighbors", random_state=seed),
        "KMeans": lambda: KMeans(n_clusters, n_init=10, random_state=seed),
        "GaussianMixture": lambda: GaussianMixture(n_clusters, random_state=seed),
    }
    return timed(lambda: makers[method]().fit(X))


def predict(method: str, fitted: Any, X: Array) -> Array:
    if method == "HDBSCAN":
        import hdbscan

        return np.asarray(hdbscan.approximate_predict(fitted, X)[0])
    return np.asarray(fitted.predict(X))


def measure_accuracy(name: str, method: str, seed: int) -> Record:
    make, n_clusters = {**PAPER, **HARDER}[name]
    X, y = make(N_TRAIN + N_FRESH, random_state=seed)
    X = rotate_into(X, DIM, seed)
    train, fresh = slice(N_TRAIN), slice(N_TRAIN, None)
    fitted, seconds = fit_peer(method, X[train], n_clusters, seed)
    labels = np.asarray(fitted.labels_ if hasattr(fitted, "labels_") else fitted.predict(X[train]))
    classes = matching(y[train], labels)
    record: Record = {"accuracy": float(np.mean(classes[labels] == y[train])), "fit_seconds": seconds}
    if method != "SpectralClustering" and (method != "HDBSCAN" or seed < FIRST_SEED + HDBSCAN_PREDICTS):
        new, record["predict_seconds"] = timed(lambda: predict(method, fitted, X[fresh]))
        record["fresh_accuracy"] = float(np.mean(classes[new] == y[fresh]))
    if method == "ours":
        record["separation"] = float(fitted.separation_.min() / LOG_2)
    return record


def measure_auto(make: Callable[..., tuple[Array, Array]], seed: int) -> Record:
    X, _ = make(N_TRAIN, random_state=seed)
    fitted, seconds = timed(lambda: ManifoldLabeler("auto", random_state=seed).fit(rotate_into(X, DIM, seed)))
    return {"found": int(fitted.n_clusters_), "fit_seconds": seconds}


def measure_certificate(name: str, n_clusters: int, seed: int) -> Record:
    X, _ = CONNECTED[name](N_TRAIN, random_state=seed)
    fitted = ManifoldLabeler(n_clusters, random_state=seed).fit(X)
    return {"separation": float(fitted.separation_.max() / LOG_2)}


def measure_connected(kind: str, n: int, n_clusters: int | Literal["auto"], standardize: bool, seed: int) -> Record:
    X = CONNECTED_ROWS[kind](n, np.random.RandomState(seed))
    fitted = ManifoldLabeler(n_clusters, standardize=standardize, random_state=seed).fit(X)
    return {
        "certified": int(fitted.n_clusters_ > 1 and fitted.disjoint_.any()),
        "separation": float(fitted.separation_.max() / LOG_2),
    }


def jobs(n_seeds: int, full: bool) -> Iterator[Job]:
    """Yield everything to measure."""
    sets = {**PAPER, **HARDER}
    makers = {**{name: make for name, (make, _) in sets.items()}, **CONNECTED}
    for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
        for name in sets:
            for method in METHODS:
                if method != "GemClus" or (full and seed < FIRST_SEED + GEMCLUS_SEEDS):
                    key: Record = {"set": name, "method": method, "seed": seed}
                    yield "accuracy", key, partial(measure_accuracy, name, method, seed)
        for name in CONNECTED:
            for k in (2, 3):
                key = {"set": name, "n_clusters": k, "seed": seed}
                yield "certificate", key, partial(measure_certificate, name, k, seed)
        for kind in CONNECTED_ROWS:
            for n, asked, standardize in CONNECTED_FITS:
                key = {"kind": kind, "n": n, "n_clusters": asked, "standardize": standardize, "seed": seed}
                yield "connected", key, partial(measure_connected, kind, n, asked, standardize, seed)
        for name, make in makers.items():
            key = {"set": name, "right": sets[name][1] if name in sets else 1, "seed": seed}
            yield "auto", key, partial(measure_auto, make, seed)


def print_summary(results: Results) -> None:
    """Print the mean accuracy and time of each method, right numbers of clusters, and certificates."""
    records = results.records["accuracy"]
    for method in results.names("accuracy", "method"):
        own = [record for record in records if record["method"] == method]
        ours = [results.column("accuracy", "fit_seconds", set=r["set"], method="ours")[r["seed"]] for r in own]
        ratio = np.median([record["fit_seconds"] / seconds for record, seconds in zip(own, ours, strict=True)])
        print(f"{method}: {np.mean([r['accuracy'] for r in own]):.1%} right, time of a fit / ours {ratio:.2f}")
    auto = results.records["auto"]
    print(f"n_clusters='auto' right: {sum(r['found'] == r['right'] for r in auto)} of {len(auto)}")
    print(f"disjoint sets separated by at least {min(r['separation'] for r in records if r['method'] == 'ours'):.3f}")
    print(f"connected toys by at most {max(r['separation'] for r in results.records['certificate']):.3f}")
    connected = results.records["connected"]
    print(f"false certificates: {sum(r['certified'] for r in connected)} of {len(connected)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="20 seeds, GemClus; save the results")
    parser.add_argument("--seeds", type=int, help=f"number, starting at {FIRST_SEED}; default: 2, with --full 20")
    parser.add_argument("--only", choices=FILES, help="measure a part")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.filterwarnings("ignore")  # peers warn about disconnected graphs and starts that did not converge
    packages = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn", "hdbscan", "gemclus")
    folder = ROOT / "results" / "labeling" if arguments.full else None
    results = Results(folder, packages, FILES, "python benchmarks/labeling.py --full")
    for file, key, measure in jobs(arguments.seeds or (20 if arguments.full else 2), arguments.full):
        if arguments.only in (None, file) and not results.has(file, key):
            results.add(file, {**key, **measure()})
    if arguments.only is None:
        print_summary(results)


if __name__ == "__main__":
    main()
