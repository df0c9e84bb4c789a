"""Compare ManifoldLabeler with its peers on known manifolds: accuracy, certificate, number of clusters, cost.

    python benchmarks/labeling.py               measure two seeds without GemClus, without saving: minutes
    python benchmarks/labeling.py --full        measure twenty seeds, into results/labeling
    python benchmarks/labeling.py --page        write docs/labeling.md and its pictures from results/labeling

An interrupted --full continues. Everything runs on one thread. Times are compared within a seed, with one fit right
after the other.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from connected import CONNECTED as CONNECTED_ROWS
from labeling_page import write_page
from labeling_records import METHODS, labeling_results, print_summary
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from neuralbayes import ManifoldLabeler
from neuralbayes.bayes import LOG_2
from neuralbayes.data.toys import CONNECTED, HARDER, PAPER, make_five, rotate_into
from neuralbayes.training.progress import progress

Array = NDArray[Any]
Record = dict[str, Any]
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
TIME_LIMIT = 150.0  # maximum seconds of one process that measures cost against n


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


def spectral(n_clusters: int, seed: int) -> Any:
    return SpectralClustering(n_clusters, affinity="nearest_neighbors", random_state=seed)


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
        "SpectralClustering": lambda: spectral(n_clusters, seed),
        "KMeans": lambda: KMeans(n_clusters, n_init=10, random_state=seed),
        "GaussianMixture": lambda: GaussianMixture(n_clusters, random_state=seed),
    }
    return timed(lambda: makers[method]().fit(X))


def predict(method: str, fitted: Any, X: Array) -> Array:
    if method == "HDBSCAN":
        import hdbscan

        return np.asarray(hdbscan.approximate_predict(fitted, X)[0])
    return np.asarray(fitted.predict(X))


def measure_accuracy(name: str, method: str, seed: int, first: bool) -> Record:
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
        if first:
            record["labels"] = "".join(map(str, labels))  # for the picture
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


def measure_cost(name: str, seed: int) -> Record:
    """Measure the seconds of five fits of the same points, one right after the other."""
    make, n_clusters = PAPER[name]
    X, _ = make(N_TRAIN, random_state=seed)
    wide = rotate_into(X, DIM, seed)
    return {
        "one": timed(lambda: ManifoldLabeler(n_clusters, n_init=1, random_state=seed).fit(X))[1],
        "eight": timed(lambda: ManifoldLabeler(n_clusters, random_state=seed).fit(X))[1],
        "wide": timed(lambda: ManifoldLabeler(n_clusters, random_state=seed).fit(wide))[1],
        "spectral": timed(lambda: spectral(n_clusters, seed).fit(X))[1],
        "spectral_wide": timed(lambda: spectral(n_clusters, seed).fit(wide))[1],
    }


def measure_scale(method: str, dim: int, n: int, seed: int) -> Record:
    """Measure one fit of a memory-mapped float32 file in its own process, to know its peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        X, y = make_five(n, random_state=seed)
        np.save(Path(folder, "y.npy"), y)
        if dim == X.shape[1]:
            np.save(Path(folder, "X.npy"), X.astype(np.float32))
        else:
            basis = rotate_into(np.eye(X.shape[1]), dim, seed).astype(np.float32)
            np.save(Path(folder, "X.npy"), X.astype(np.float32) @ basis)
        command = [sys.executable, __file__, "--one", method, folder, str(seed)]
        try:
            output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIME_LIMIT).stdout
        except subprocess.TimeoutExpired:
            return {"fit_seconds": None, "stopped_after": TIME_LIMIT}
    measured: Record = json.loads(output.splitlines()[-1])
    return measured


def peak_megabytes() -> float:
    """Peak memory of this process on Linux; `ru_maxrss` would be inherited from the parent."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def measure_one(method: str, folder: str, seed: int) -> Record:
    """The part of :func:`measure_scale` that runs in the child process."""
    X, y = np.load(Path(folder, "X.npy"), mmap_mode="r"), np.load(Path(folder, "y.npy"))
    small, _ = make_five(200, random_state=seed)
    fit_peer(method, small, 5, seed)  # do not measure start-up costs
    before = peak_megabytes()
    fitted, seconds = fit_peer(method, X, 5, seed)
    peak = peak_megabytes()
    accuracy = float(np.mean(matching(y, fitted.labels_)[fitted.labels_] == y))
    memory = {"fit_megabytes": peak - before, "peak_megabytes": peak, "data_megabytes": X.nbytes / 1e6}
    return {"fit_seconds": seconds, "accuracy": accuracy, **memory}


def jobs(n_seeds: int, slow_seeds: int, full: bool) -> Iterator[Job]:
    """Yield everything to measure, slow methods last."""
    seeds = range(FIRST_SEED, FIRST_SEED + n_seeds)
    sets = {**PAPER, **HARDER}
    fast = [method for method in METHODS if method != "GemClus"]
    for name in sets:
        for seed in seeds:
            for method in fast:
                key = {"set": name, "method": method, "seed": seed}
                first = seed == seeds[0]
                yield "accuracy", key, partial(measure_accuracy, name, method, seed, first)
    for name in PAPER:
        for seed in seeds:
            yield "cost", {"set": name, "seed": seed}, partial(measure_cost, name, seed)
    for name in CONNECTED:
        for n_clusters in (2, 3):
            for seed in seeds:
                key = {"set": name, "n_clusters": n_clusters, "seed": seed}
                yield "certificate", key, partial(measure_certificate, name, n_clusters, seed)
    for seed in seeds:
        for kind in CONNECTED_ROWS:
            for n, asked, standardize in CONNECTED_FITS:
                key = {"kind": kind, "n": n, "n_clusters": asked, "standardize": standardize, "seed": seed}
                yield "connected", key, partial(measure_connected, kind, n, asked, standardize, seed)
    makers = {**{name: make for name, (make, _) in sets.items()}, **CONNECTED}
    for name, make in makers.items():
        right = sets[name][1] if name in sets else 1
        for seed in seeds:
            key = {"set": name, "right": right, "seed": seed}
            yield "auto", key, partial(measure_auto, make, seed)
    for dim, largest in ((2, 1_000_000), (DIM, 100_000)):
        for n in (1200, 5000, 20_000, 100_000, 1_000_000):
            for seed in seeds[: 3 if full and n <= 20_000 else 1]:
                for method in ("ours", "SpectralClustering"):
                    if n <= (largest if full else 20_000):
                        key = {"method": method, "dim": dim, "n": n, "seed": seed}
                        yield "scale", key, partial(measure_scale, method, dim, n, seed)
    for seed in seeds[:slow_seeds]:
        for name in sets:
            key = {"set": name, "method": "GemClus", "seed": seed}
            yield "accuracy", key, partial(measure_accuracy, name, "GemClus", seed, False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="20 seeds, GemClus, up to a million rows; save the results")
    parser.add_argument(
        "--seeds", type=int, help=f"number of seeds, starting at {FIRST_SEED}; default: 2, with --full 20"
    )
    parser.add_argument("--slow-seeds", type=int, help="seeds for GemClus, minutes per fit; default: 0, with --full 2")
    parser.add_argument("--only", help="measure one of the JSON files only, such as connected")
    parser.add_argument("--out", type=Path, help="folder of the JSON files; with --full and --page results/labeling")
    parser.add_argument("--page", action="store_true", help="only write docs/labeling.md from saved results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder to write the page to")
    parser.add_argument("--one", nargs=3, metavar=("METHOD", "FOLDER", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    threadpool_limits(1)
    warnings.filterwarnings("ignore")  # peers warn about disconnected graphs and starts that did not converge
    if arguments.one:
        print(json.dumps(measure_one(arguments.one[0], arguments.one[1], int(arguments.one[2]))))
        return
    full = arguments.full
    out = arguments.out or (ROOT / "results" / "labeling" if full or arguments.page else None)
    if arguments.page:
        write_page(labeling_results(out, None), arguments.docs)
        return
    packages = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn", "hdbscan", "gemclus")
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    n_seeds = arguments.seeds or (20 if full else 2)
    slow_seeds = arguments.slow_seeds if arguments.slow_seeds is not None else (2 if full else 0)
    results = labeling_results(out, versions)
    todo = [job for job in jobs(n_seeds, slow_seeds, full) if arguments.only in (None, job[0])]
    left = [job for job in todo if not results.has(job[0], job[1])]
    with progress(len(todo), description="measurement", completed=len(todo) - len(left)) as display:
        for file, key, measure in left:
            results.add(file, {**key, **measure()})
            display.advance()
    if arguments.only is None:
        print_summary(results)


if __name__ == "__main__":
    main()
