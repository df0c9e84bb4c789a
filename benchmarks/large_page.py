"""Section of docs/clustering.md on many rows, from results/real/million.json and large.json."""

from __future__ import annotations

from pathlib import Path

from pages import table
from records import Record, Results

FOLDER = Path(__file__).parents[1] / "results" / "real"


def large_sections() -> list[str]:
    """The paragraphs and tables of the section, in order, without what was not measured."""
    results = Results(FOLDER, None, ["million", "large"], "")
    files, rows = results.records["million"], [record for record in results.records["large"] if "accuracy" in record]
    parts = ["## Many rows"] if files or rows else []
    if files:
        parts += [
            f"A CSV file of {files[0]['rows']:,} rows and 20 columns ({files[0]['megabytes']} MB), from file to "
            "labels. The rows were drawn from eight clusters: twelve numbers and five categories with missing cells, a "
            "date, an id and a constant. The peer is a pipeline of pandas and scikit-learn, written by hand for these "
            "columns; `neuralbayes label` finds out what they hold (`python benchmarks/million.py`).",
            table(
                ["one thread", "ARI", "processor s", "GB"],
                [[record["method"], f"{record['ari']:.3f}", *_cost(record)] for record in files],
            ),
        ]
    if rows:
        parts += [
            f"{rows[0]['rows']:,} memory-mapped rows of 384 columns in 150 clusters, made from the embeddings of "
            "CLINC150: each row lies between a sentence and one of its neighbours of the same class, with noise. The "
            "memory is what the fit adds to the mapped file (`python benchmarks/large.py`).",
            table(
                ["one thread", "accuracy %", "clusters", "rows left out %", "processor s", "GB"],
                [
                    [
                        record["method"],
                        f"{100 * record['accuracy']:.1f}",
                        f"{record['clusters']:,}",
                        f"{100 * record['left out']:.1f}",
                        *_cost(record),
                    ]
                    for record in rows
                ],
            ),
        ]
    return parts


def _cost(record: Record) -> list[str]:
    return [f"{record['processor_seconds']:,.0f}", f"{record['gigabytes']:.1f}"]
