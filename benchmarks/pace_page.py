"""Results of benchmarks/pace.py: a picture, its caption, and a table of changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from field_records import percent, seconds
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pages import table
from records import Results

from neuralbayes.plot.style import COLORS, save_picture

PACE, CHANGED = "pace", "changes"
COMMANDS = {PACE: "python benchmarks/pace.py", CHANGED: "python benchmarks/pace.py --changes"}
NAMES = {"ours": "preset laptop", "paper": "the paper's recipe"}


def pace_results(file: str, folder: Path, versions: dict[str, str] | None, threads: int = 1) -> Results:
    return Results(folder, versions, [file], COMMANDS[file], threads)


def curve(results: Results, recipe: str) -> NDArray[Any]:
    """Images processed, accuracy in percent and processor seconds at each probe: (n, 3)."""
    records = sorted((r for r in results.records[PACE] if r["recipe"] == recipe), key=lambda r: int(r["images"]))
    return np.array([(r["images"], 100 * r["accuracy"], r["processor_seconds"]) for r in records]).reshape(-1, 3)


def draw(results: Results, path: Path) -> None:
    """Plot accuracy against images processed, with lines before training and at the best of the paper's recipe."""
    figure = Figure(figsize=(7.0, 4.0), layout="constrained")
    ax = figure.subplots()
    for color, (recipe, name) in zip(COLORS, NAMES.items(), strict=False):
        images, accuracy, _ = curve(results, recipe)[1:].T
        ax.plot(images, accuracy, "o-", color=color, label=name, markersize=4)
        lines = {"before training": curve(results, recipe)[0, 1]}
        if recipe == "paper":
            lines["its best"] = accuracy.max()
        for text, height in lines.items():
            ax.axhline(height, color=color, linewidth=0.8, linestyle="--")
            ax.annotate(
                text,
                (1.0, height),
                (0, 3),
                xycoords=ax.get_yaxis_transform(),
                textcoords="offset points",
                horizontalalignment="right",
                fontsize=7.5,
                color=color,
            )
    ax.set_xscale("log")
    ax.set_xlabel("images processed")
    ax.set_ylabel("accuracy of an MLP probe on all test images, %")
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(axis="y", color="#e5e5e5")
    ax.set_axisbelow(True)
    ax.legend(frameon=False, loc="center right")
    save_picture(figure, path)


def caption(results: Results) -> str:
    """Text on when our recipe reaches the best accuracy of the paper's recipe."""
    paper, ours = curve(results, "paper"), curve(results, "ours")
    images, best, seconds = paper[paper[:, 1].argmax()]
    start = f"The paper's recipe is best after {images:,.0f} images, with {best:.1f} %"
    reached = ours[ours[:, 1] >= best]
    if not len(reached):
        return f"{start}. Ours stays below it and ends with {ours[-1, 1]:.1f} % after {ours[-1, 0]:,.0f} images."
    first = reached[0]
    return (
        f"{start}. Ours exceeds it after {first[0]:,.0f} images, with {first[1]:.1f} %. These are "
        f"{images / first[0]:.0f} times fewer images and {seconds / first[2]:.0f} times less processor time. Ours ends "
        f"with {ours[-1, 1]:.1f} %. Before training, the encoder has {ours[0, 1]:.1f} % with our normalisation and "
        f"{paper[0, 1]:.1f} % with the paper's."
    )


def changes_table(results: Results) -> str:
    """Table of the accuracy and cost of a short training with each change."""
    rows = []
    for change in results.names(CHANGED, "change"):
        accuracy, cost = (
            list(results.column(CHANGED, field, change=change).values()) for field in ("accuracy", "processor_seconds")
        )
        rows.append([change, percent(accuracy), seconds(float(np.median(cost)))])
    return table(["change", "MLP probe, % right", "processor s"], rows)
