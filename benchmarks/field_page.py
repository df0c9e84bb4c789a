"""What benchmarks/field.py measured: a table for the terminal, docs/clustering.md and its picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from field_methods import METHODS
from field_sets import IMAGES, TABLES
from matplotlib.figure import Figure
from records import Results
from rich.console import Console
from rich.table import Table

from neuralbayes.plot.style import save_picture

FILE = "field"
NOT_MEASURED = "-"
OURS, THEIRS = "#0072B2", "#777777"


def cell(results: Results, name: str, method: str, field: str = "accuracy") -> str:
    """Mean and standard deviation over the seeds in percent; a dash where it was not measured."""
    values = 100 * np.array(list(results.column(FILE, field, set=name, method=method).values()))
    if not len(values):
        return NOT_MEASURED
    return f"{values.mean():.1f}" + (f" ± {values.std(ddof=1):.1f}" if len(values) > 1 else "")


def cost(results: Results, name: str, method: str) -> float | None:
    """Median processor time of a fit in seconds."""
    values = list(results.column(FILE, "processor_seconds", set=name, method=method).values())
    return float(np.median(values)) if values else None


def print_summary(results: Results) -> None:
    """Accuracy on the terminal."""
    names = results.names(FILE, "set")
    table = Table(title="Accuracy in percent, processor seconds")
    table.add_column("method")
    for name in names:
        table.add_column(name, justify="right")
    for method in METHODS:
        seconds = [cost(results, name, method) for name in names]
        cells = [
            cell(results, name, method) + (f"\n{second:.0f} s" if second is not None else "")
            for name, second in zip(names, seconds, strict=True)
        ]
        table.add_row(method, *cells)
    Console().print(table)
    for record in results.records[FILE]:
        if "failed" in record:
            Console().print(f"{record['set']}, {record['method']}, seed {record['seed']}: {record['failed']}")


def draw_field(results: Results, path: Path) -> None:
    """Accuracy against processor time, a panel for each set of images."""
    names = [name for name in IMAGES if name in results.names(FILE, "set")]
    figure = Figure(figsize=(4.2 * len(names), 3.8), layout="constrained")
    for ax, name in zip(np.atleast_1d(figure.subplots(1, len(names))), names, strict=True):
        for method in METHODS:
            accuracy = list(results.column(FILE, "accuracy", set=name, method=method).values())
            seconds = cost(results, name, method)
            if seconds is None:
                continue
            color = OURS if method == "ManifoldLabeler" else THEIRS
            y = 100 * float(np.mean(accuracy))
            ax.plot(seconds, y, "o", color=color, markersize=6)
            ax.annotate(method, (seconds, y), (5, 4), textcoords="offset points", fontsize=7.5, color=color)
        ax.set_xscale("log")
        ax.set_title(name, fontsize=10)
        ax.set_xlabel("processor seconds of a fit")
        ax.margins(x=0.25, y=0.12)
        ax.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("clustering accuracy on the test set, %")
    save_picture(figure, path)


def accuracy_table(results: Results, names: list[str]) -> str:
    """Accuracies of all methods in Markdown."""
    lines = [f"| | {' | '.join(names)} |", f"| --- |{' ---: |' * len(names)}"]
    for method in METHODS:
        cells = [cell(results, name, method) for name in names]
        if any(text != NOT_MEASURED for text in cells):
            lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write_page(results: Results, docs: Path) -> None:
    """docs/clustering.md and its picture."""
    images = [name for name in IMAGES if name in results.names(FILE, "set")]
    tables = [name for name in TABLES if name in results.names(FILE, "set")]
    draw_field(results, docs / "pictures" / "field.png")
    versions = ", ".join(f"{name} {number}" for name, number in results.versions.items())
    (docs / "clustering.md").write_text(
        f"""<!-- Generated from results/field by benchmarks/field.py --page: not to be edited. -->

# Clusters of images, measured

![Accuracy against processor time](pictures/field.png)

{accuracy_table(results, images)}

{accuracy_table(results, tables)}

Measured with {versions}.
""",
        encoding="utf-8",
    )
