"""Compare InformationClusterer with MiniBatchKMeans and EVoC on a million memory-mapped rows of 384 columns.

The rows are made from CLINC150 with embeddings of MiniLM, as in benchmarks/real_data.py. Each row lies between a
sentence and one of its five nearest neighbours of the same class, with added noise, and has unit length. They are
written to ``--work FOLDER`` as .npy files of float32 and float16, 2.3 GB for a million rows.

    python benchmarks/large.py --sentences FOLDER --work FOLDER

`pip install evoc` for EVoC. Each method runs in its own process. Memory is the growth of the process after the data
were mapped, without the pages of the mapped file, which the system may drop (Linux). Each result is added to
results/real/large.json, and a second run continues.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.lib.format import open_memmap
from numpy.typing import NDArray
from records import Record, Results
from sklearn.cluster import MiniBatchKMeans
from sklearn.neighbors import NearestNeighbors

import neuralbayes as nb
from neuralbayes.clusters.accuracy import clustering_accuracy

ROOT = Path(__file__).parents[1]
N_CLUSTERS = 150
BLOCK = 20_000
NOISE = 0.02
Array = NDArray[Any]

METHODS: dict[str, tuple[str, Callable[[Array], Array]]] = {
    "InformationClusterer": ("float32", lambda X: nb.InformationClusterer(N_CLUSTERS, random_state=0).fit(X).labels_),
    "InformationClusterer, float16": (
        "float16",
        lambda X: nb.InformationClusterer(N_CLUSTERS, random_state=0).fit(X).labels_,
    ),
    "MiniBatchKMeans": (
        "float32",
        lambda X: np.asarray(MiniBatchKMeans(N_CLUSTERS, n_init=3, random_state=0).fit(X).labels_),
    ),
    "EVoC": ("float32", lambda X: _evoc(X)),
}


def _evoc(X: Array) -> Array:
    from evoc import EVoC

    return np.asarray(EVoC(approx_n_clusters=N_CLUSTERS, random_state=0).fit_predict(X))


def make_rows(sentences: Path, work: Path, n_rows: int) -> None:
    """Write float32.npy, float16.npy and labels.npy, unless they exist."""
    if (work / "labels.npy").exists() and len(np.load(work / "labels.npy", mmap_mode="r")) == n_rows:
        return
    work.mkdir(parents=True, exist_ok=True)
    X, y = (np.load(sentences / f"clinc_{part}.npy") for part in ("emb", "labels"))
    near = np.empty((len(X), 5), np.int64)
    for label in np.unique(y):
        rows = np.flatnonzero(y == label)
        near[rows] = rows[NearestNeighbors(n_neighbors=6).fit(X[rows]).kneighbors(X[rows])[1][:, 1:]]
    files = [open_memmap(work / f"{name}.npy", "w+", name, (n_rows, X.shape[1])) for name in ("float32", "float16")]
    labels, rng = np.empty(n_rows, np.int64), np.random.default_rng(0)
    for start in range(0, n_rows, BLOCK):
        size = min(BLOCK, n_rows - start)
        i = rng.integers(len(X), size=size)
        j = near[i, rng.integers(5, size=size)]
        share = rng.uniform(0.0, 0.5, (size, 1)).astype(np.float32)
        rows = (1 - share) * X[i] + share * X[j] + NOISE * rng.standard_normal((size, X.shape[1]), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        for file in files:
            file[start : start + size] = rows
        labels[start : start + size] = y[i]
    np.save(work / "labels.npy", labels)


def measure(method: str, work: Path, n_rows: int) -> Record:
    """Measure seconds, processor seconds, gigabytes and accuracy of a fit that labels all rows."""
    dtype, labels_of = METHODS[method]
    X = np.load(work / f"{dtype}.npy", mmap_mode="r")[:n_rows]
    y = np.load(work / "labels.npy")[:n_rows]
    done = threading.Event()
    before = _own_bytes()
    peak = [before]

    def watch() -> None:
        while not done.wait(0.02):
            peak[0] = max(peak[0], _own_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    start, processor = time.perf_counter(), time.process_time()
    try:
        labels = labels_of(X)
    finally:
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
        done.set()
        watcher.join()
    kept = labels >= 0
    return {
        "accuracy": clustering_accuracy(np.where(kept, labels, labels.max() + 1), y),
        "clusters": int(labels.max()) + 1,
        "left out": float(1.0 - kept.mean()),
        "seconds": seconds,
        "processor_seconds": processor,
        "gigabytes": (peak[0] - before) / 1e9,
    }


def measure_labels(work: Path, n_rows: int) -> Record:
    """Measure the processor seconds to label all rows, and of the network alone on as many rows in memory."""
    X = np.load(work / "float32.npy", mmap_mode="r")[:n_rows]
    fitted = nb.InformationClusterer(N_CLUSTERS, max_samples=3000, max_iter=4, random_state=0).fit(X[:4000])
    fitted.predict(X[:BLOCK])  # warm-up
    start = time.process_time()
    fitted.predict(X)
    seconds = time.process_time() - start
    block = np.array(X[: fitted._block])
    start = time.process_time()
    for _ in range(0, n_rows, len(block)):
        fitted.posterior_.logits(fitted.frame_(block))
    network = time.process_time() - start
    return {"processor_seconds": seconds, "network_seconds": network}


def _own_bytes() -> int:
    """Memory of this process, without mapped files."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=Path, metavar="FOLDER", help="contains clinc_emb.npy and clinc_labels.npy")
    parser.add_argument("--work", type=Path, metavar="FOLDER", required=True, help="folder to write the rows to")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--methods", nargs="+", default=[*METHODS, "labels"], choices=[*METHODS, "labels"])
    parser.add_argument("--one", action="store_true", help="measure one method in this process and print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        torch.set_num_threads(1)
        [method] = arguments.methods
        labels = method == "labels"
        found = measure_labels(arguments.work, arguments.rows) if labels else measure(method, *_where(arguments))
        print(json.dumps(found))
        return
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn", "evoc")
    versions = {"python": platform.python_version(), **{name: _version(name) for name in packages}}
    results = Results(ROOT / "results" / "real", versions, ["large"], "python benchmarks/large.py")
    if arguments.sentences is not None:
        make_rows(arguments.sentences, arguments.work, arguments.rows)
    for method in arguments.methods:
        key: Record = {"method": method, "rows": arguments.rows, "seed": 0}
        if results.has("large", key):
            continue
        options = ["--work", str(arguments.work), "--rows", str(arguments.rows), "--methods", method, "--one"]
        done = subprocess.run([sys.executable, __file__, *options], stdout=subprocess.PIPE, text=True, check=True)
        record = {**key, **json.loads(done.stdout.splitlines()[-1])}
        results.add("large", record)
        print(record, flush=True)


def _where(arguments: argparse.Namespace) -> tuple[Path, int]:
    return arguments.work, arguments.rows


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


if __name__ == "__main__":
    main()
