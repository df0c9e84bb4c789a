"""Section of docs/clustering.md on known classes, links and updates, from results/real/*.json."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from pages import table
from records import Record, Results

FOLDER = Path(__file__).parents[1] / "results" / "real"
OURS = "InformationClusterer"


def few_labels_sections() -> list[str]:
    """The paragraphs and tables of the section, in order."""
    results = Results(FOLDER, None, ["few_labels", "links", "update"], "")
    names = results.names("few_labels", "set")
    nothing_new = [record for record in results.records["update"] if not record["new"]]
    return [
        "## Known classes, links and updates",
        f"A few rows of each class of the same {len(names)} tables have a known class, which `fit(X, known=...)` gets. "
        "The figures are adjusted Rand indices over the other rows, for one seed. The peers get the same labels. How "
        "the labels are used was chosen on these tables (`python benchmarks/few_labels.py known`).",
        known_table(results),
        links(results.records["links"]),
        "New rows come with `update`, among them a class that was not there before. The table shows how many labels "
        "the update added, the share of the rows of the new class and of the other new rows that got one of them, and "
        "the share of the old rows that kept their label. The adjusted Rand index of the new rows is compared with "
        "a new fit of all rows with the right number of clusters (`python benchmarks/few_labels.py update`).",
        update_table([record for record in results.records["update"] if record["new"]]),
        f"Without a new class, {sum(record['n_new_labels'] > 0 for record in nothing_new)} of {len(nothing_new)} "
        "updates added a label.",
    ]


def known_table(results: Results) -> str:
    """Table of means over data sets, by method and number of labels."""
    numbers = results.names("few_labels", "labels")
    rows = []
    for method in results.names("few_labels", "method"):
        of_method = [record for record in results.records["few_labels"] if record["method"] == method]
        found = [[record["ari"] for record in of_method if record["labels"] == n] for n in numbers]
        name = {"without": f"{OURS}, without labels", "with labels": f"**{OURS}, with labels**"}.get(method, method)
        rows.append([name, *(f"{np.mean(values):.3f}" for values in found)])
    return table(["", *(f"{n} per class" for n in numbers)], rows)


def links(records: list[Record]) -> str:
    mean = {field: np.mean([record[field] for record in records]) for field in records[0] if " with" in field}
    return (
        f"With 100 pairs of rows as `must_link` and `cannot_link`, half of each, {mean['pairs with']:.1%} are "
        f"labelled as asked; without them {mean['pairs without']:.1%} are. The mean adjusted Rand index over "
        f"{len(records)} tables rises from {mean['ari without']:.3f} to {mean['ari with']:.3f} (`few_labels.py links`)."
    )


def update_table(records: list[Record]) -> str:
    heads = ["class", "new labels", "of its rows", "of others", "old labels kept", "ARI", "ARI of a new fit"]
    shares = ("new rows with new labels", "other rows with new labels", "kept")
    rows = [
        [
            f"{record['set']} {', '.join(map(str, record['new']))}" if len(record["new"]) < 5 else record["set"],
            str(record["n_new_labels"]),
            *(f"{100 * record[share]:.1f} %" for share in shares),
            *(f"{record[score]:.3f}" for score in ("ari", "ari of a refit")),
        ]
        for record in records
    ]
    return table(heads, rows)
