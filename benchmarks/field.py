"""Compare the accuracy and cost of clusterers on images and tables.

    python benchmarks/field.py                  measure tables with one seed, without saving: minutes
    python benchmarks/field.py --full           measure images too, with more seeds, into results/field: hours
    python benchmarks/field.py --full --again --methods InformationClusterer    measure one method again
    python benchmarks/field.py --page           write docs/clustering.md and its pictures

An interrupted --full continues. Every fit runs in its own process, and its cost
is the processor time without loading the data.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from field_methods import METHODS
from field_page import write_page
from field_records import FIELD, field_results, print_summary
from field_sets import IMAGES, TABLES
from records import Record
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from threadpoolctl import threadpool_limits

from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.training.progress import progress

ROOT = Path(__file__).parents[1]
TIME_LIMIT = 45 * 60.0  # maximum seconds of one fit
SEEDS, SEEDS_OF_TABLES = 5, 3
FEWER = {"IMSAT": 1, "DEC": 1, "GemClus": 1, "HDBSCAN on UMAP": 1, "GMM on UMAP": 1, "spectral clustering": 2}
"""Number of seeds on images for slow methods, unless --seeds says otherwise."""
PACKAGES = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn", "hdbscan", "umap-learn", "gemclus")


def measure_one(name: str, method: str, seed: int, threads: int) -> Record:
    """Fit a method to a set in this process."""
    data = {**IMAGES, **TABLES}[name]()
    _ = data.rows if method in ("IMSAT", "DEC") else data.coordinates  # computed here, so it does not count as cost
    torch.set_num_threads(threads)
    with threadpool_limits(threads):
        clock, processor = time.perf_counter(), time.process_time()
        train, test, *more = METHODS[method](data, seed)
        seconds, processor_seconds = time.perf_counter() - clock, time.process_time() - processor
    return {
        "accuracy": clustering_accuracy(test.astype(int), data.test_classes),
        "train_accuracy": clustering_accuracy(train.astype(int), data.train_classes),
        "nmi": float(normalized_mutual_info_score(data.test_classes, test)),
        "ari": float(adjusted_rand_score(data.test_classes, test)),
        "found": len(set(train.tolist())),
        "seconds": seconds,
        "processor_seconds": processor_seconds,
        **(more[0]() if more else {}),
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


def jobs(full: bool, seeds: int | None) -> list[dict[str, Any]]:
    """List the fits to measure. `seeds` is the number of seeds; by default it depends on the set and the method."""
    of_images, of_tables = seeds or SEEDS, seeds or (SEEDS_OF_TABLES if full else 1)
    sets = {**(IMAGES if full else {}), **TABLES}
    return [
        {"set": name, "method": method, "seed": seed}
        for name in sets
        for seed in range(of_images if name in IMAGES else of_tables)
        for method in METHODS
        if name in TABLES or seeds or seed < FEWER.get(method, of_images)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--full", action="store_true", help="also measure images, with more seeds, and save the results"
    )
    parser.add_argument(
        "--seeds", type=int, help=f"default: 1; with --full {SEEDS} on images, {SEEDS_OF_TABLES} on tables"
    )
    parser.add_argument("--only", nargs="+", metavar="SET", help="measure only these sets")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="measure only these methods")
    parser.add_argument("--again", action="store_true", help="discard earlier results of these sets, methods and seeds")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="only write docs/clustering.md from saved results")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder to write the page to")
    parser.add_argument("--one", nargs=3, metavar=("SET", "METHOD", "SEED"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")  # peers warn about disconnected graphs and starts that did not converge
    if arguments.one:
        name, method, seed = arguments.one
        print(json.dumps(measure_one(name, method, int(seed), arguments.threads)))
        return
    out = ROOT / "results" / "field" if arguments.full or arguments.page else None
    if arguments.page:
        write_page(field_results(out, None), arguments.docs)
        return
    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    results = field_results(out, versions, arguments.threads)
    todo = [
        job
        for job in jobs(arguments.full, arguments.seeds)
        if (not arguments.only or job["set"] in arguments.only)
        and (not arguments.methods or job["method"] in arguments.methods)
    ]
    if arguments.again:
        results.forget(FIELD, todo)
    left = [job for job in todo if not results.has(FIELD, job)]
    with progress(len(todo), description="fit", completed=len(todo) - len(left)) as display:
        for job in left:
            results.add(FIELD, {**job, **in_child(job["set"], job["method"], job["seed"], arguments.threads)})
            display.advance()
    print_summary(results)


if __name__ == "__main__":
    main()
