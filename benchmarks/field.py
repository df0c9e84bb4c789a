"""Compare the accuracy and cost of clusterers on images.

    python benchmarks/field.py                                         hours, into results/field
    python benchmarks/field.py --again --methods InformationClusterer  measure one method again

An interrupted run continues. Every fit runs in its own process, and its cost is the processor time without loading the
data. Classes are only used for scores.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from field_methods import METHODS, RAREST, Data
from paper import packaged_data
from records import Record, Results
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from threadpoolctl import threadpool_limits

import neuralbayes as nb

ROOT = Path(__file__).parents[1]
FIELD = "field"
TIME_LIMIT = 45 * 60.0  # maximum seconds of one fit
SEEDS = 5
FEWER = {"IMSAT": 1, "DEC": 1, "GemClus": 1, "HDBSCAN on UMAP": 1, "GMM on UMAP": 1, "spectral clustering": 2}
"""Number of seeds for slow methods, unless --seeds says otherwise."""
PACKAGES = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn", "hdbscan", "umap-learn", "gemclus")
SETS = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist"}
UNEQUAL = " 1:10"
"""Suffix of the sets whose classes have linearly decreasing shares, down to a tenth."""


def load(name: str) -> Data:
    """Images (n, H, W, C) with their classes, perhaps of unequal size in train and test."""
    data = packaged_data.load(SETS[name.removesuffix(UNEQUAL)])
    parts = [(part.images, np.asarray(part.labels)) for part in (data.train, data.test)]
    if name.endswith(UNEQUAL):
        rng = np.random.default_rng(0)
        share = np.linspace(1.0, RAREST, 10)
        kept = [rng.random(len(y)) < share[y] for _, y in parts]
        parts = [(x[rows], y[rows]) for (x, y), rows in zip(parts, kept, strict=True)]
    return Data(*parts[0], *parts[1])


def measure_one(name: str, method: str, seed: int, threads: int) -> Record:
    """Fit a method to a set in this process."""
    data = load(name)
    _ = data.rows if method in ("IMSAT", "DEC") else data.coordinates  # computed here, so it does not count as cost
    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        clock, processor = time.perf_counter(), time.process_time()
        train, test = METHODS[method](data, seed)
        seconds, processor_seconds = time.perf_counter() - clock, time.process_time() - processor
    return {
        "accuracy": nb.clustering_accuracy(test.astype(int), data.test_classes),
        "train_accuracy": nb.clustering_accuracy(train.astype(int), data.train_classes),
        "nmi": float(normalized_mutual_info_score(data.test_classes, test)),
        "ari": float(adjusted_rand_score(data.test_classes, test)),
        "found": len(set(train.tolist())),
        "seconds": seconds,
        "processor_seconds": processor_seconds,
    }


def in_child(name: str, method: str, seed: int, threads: int) -> Record:
    """Call `measure_one` in a new process; after an error or the time limit, the record only says what failed."""
    command = [sys.executable, __file__, "--one", name, method, str(seed), "--threads", str(threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {TIME_LIMIT / 60:.0f} minutes"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    record: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return record


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, help=f"default: {SEEDS}, fewer for slow methods")
    parser.add_argument("--only", nargs="+", metavar="SET", help="measure only these sets")
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="METHOD", help="measure only these methods")
    parser.add_argument("--again", action="store_true", help="discard earlier results of these sets, methods and seeds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", nargs=3, metavar=("SET", "METHOD", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # peers warn about disconnected graphs and starts that did not converge
    if arguments.one:
        name, method, seed = arguments.one
        print(json.dumps(measure_one(name, method, int(seed), arguments.threads)))
        return
    results = Results(ROOT / "results" / FIELD, PACKAGES, [FIELD], "python benchmarks/field.py", arguments.threads)
    todo: list[Record] = [
        {"set": name, "method": method, "seed": seed}
        for name in arguments.only or [full + suffix for full in SETS for suffix in ("", UNEQUAL)]
        for seed in range(arguments.seeds or SEEDS)
        for method in arguments.methods or METHODS
        if arguments.seeds or seed < FEWER.get(method, SEEDS)
    ]
    if arguments.again:
        results.forget(FIELD, todo)
    for job in todo:
        if not results.has(FIELD, job):
            results.add(FIELD, {**job, **in_child(job["set"], job["method"], job["seed"], arguments.threads)})
            print(results.records[FIELD][-1], flush=True)


if __name__ == "__main__":
    main()
