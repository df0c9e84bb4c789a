"""Section of docs/clustering.md on rules for merging states of images, from results/field/image_states.json."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from field_records import percent
from pages import table
from records import Results

FOLDER = Path(__file__).parents[1] / "results" / "field"
FILE = "image_states"


def image_states_sections() -> list[str]:
    """The paragraphs and tables of the section, in order."""
    results = Results(FOLDER, None, [FILE], "")
    return [
        "## Merging states of images",
        "The states of images are merged by entropy minus variation of information, H - V "
        "([How it works](images.md#how-it-works)). The other rule merges the two states that share most images and "
        "transformed images compared with chance, and takes the number of clusters at the largest drop of this ratio. "
        "The table compares them on the same states of small images, before the clusters are trained. *Agreement* is "
        "the mean adjusted Rand index between two seeds, which needs no classes. *Found* is the number of clusters "
        'with `n_clusters="auto"`, with the number of seeds in brackets. All sets have ten classes; in those '
        "named 1:10, each class has fewer images than the one before, down to a tenth "
        "(`python benchmarks/image_states.py`).",
        states_table(results),
        "The rule was chosen on training images of digits, small MNIST, MNIST, MNIST 1:10 and Fashion-MNIST, with both "
        "accuracy and agreement in view. We compared nine weights of V with p(z|x), and a few with the most probable "
        "states instead. So the accuracies above are not those of new data, and on one set the agreement is lower than "
        "with the ratio. The margin of 2 % was chosen among five by the numbers found.",
    ]


def states_table(results: Results) -> str:
    """Table of agreement, accuracy and numbers found, by set and rule."""
    rows = []
    for name in results.names(FILE, "set"):
        for rule in results.names(FILE, "rule"):
            agreement, accuracy, numbers = (
                list(results.column(FILE, field, set=name, rule=rule).values())
                for field in ("agreement", "accuracy", "number")
            )
            found = ", ".join(f"{number} ({count})" for number, count in sorted(Counter(numbers).items()))
            rows.append([name, rule, f"{agreement[0]:.3f}", percent(accuracy), found])
    return table(["", "rule", "agreement", "accuracy, %", "found (seeds)"], rows)
