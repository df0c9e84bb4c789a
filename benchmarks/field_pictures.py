"""Picture of the results of benchmarks/field.py."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
from field_methods import METHODS
from field_records import FIELD, OURS, cost, values
from field_sets import IMAGES
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from records import Results

from neuralbayes.plot.style import COLORS, save_picture

THEIRS = "#777777"
GRID = "#e5e5e5"
Point = tuple[float, float]
SIDES = {6: "left", -6: "right", 0: "center"}
HEIGHTS = {3: "bottom", -3: "top", 9: "bottom", -9: "top"}
"""Possible places of a name: its offset from its data point, in typographic points, and its alignment."""


def draw_field(results: Results, path: Path) -> None:
    """Plot accuracy against processor time, one panel per set of images, with the best accuracy at each cost."""
    names = [name for name in IMAGES if name in results.names(FIELD, "set")]
    n_columns = 2 if len(names) == 4 else len(names)
    n_rows = -(-len(names) // n_columns)
    figure = Figure(figsize=(4.6 * n_columns, 4.0 * n_rows), layout="constrained")
    axes = figure.subplots(n_rows, n_columns, squeeze=False)
    panels: list[tuple[Axes, dict[str, Point]]] = []
    for ax, name in zip(axes.flat, names, strict=True):
        points: dict[str, Point] = {}
        for method in METHODS:
            seconds = cost(results, name, method)
            if seconds is not None:
                points[method] = (seconds, 100 * float(np.mean(values(results, name, method))))
        _draw_front(ax, list(points.values()))
        for method, (seconds, accuracy) in points.items():
            color = COLORS[0] if method == OURS else THEIRS
            ax.plot(seconds, accuracy, "o", color=color, markersize=6)
        ax.set_xscale("log")
        ax.set_title(name, fontsize=10)
        ax.margins(x=0.3, y=0.12)
        _quiet(ax)
        panels.append((ax, points))
    for ax in axes[-1]:
        ax.set_xlabel("processor seconds of a fit")
    for ax in axes[:, 0]:
        ax.set_ylabel("clustering accuracy on the test set, %")
    figure.draw_without_rendering()  # computes the layout of the panels, which places the names
    figure.set_layout_engine("none")
    for ax, points in panels:
        _write_names(ax, points)
    save_picture(figure, path)


def _write_names(ax: Axes, points: dict[str, Point]) -> None:
    """Write a name next to each point, if possible without covering other points and names."""
    taken = [Bbox.from_bounds(x - 6, y - 6, 12, 12) for x, y in ax.transData.transform(list(points.values()))]
    for method, point in points.items():
        color = COLORS[0] if method == OURS else THEIRS
        tried: list[tuple[int, int, Annotation, Bbox]] = []
        for (dx, side), (dy, height) in itertools.product(SIDES.items(), HEIGHTS.items()):
            text = ax.annotate(
                method,
                point,
                (dx, dy),
                textcoords="offset points",
                fontsize=7.5,
                color=color,
                horizontalalignment=side,
                verticalalignment=height,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 0.5},
            )
            box = text.get_window_extent()
            outside = not (ax.bbox.x0 + 4 <= box.x0 and box.x1 <= ax.bbox.x1)  # keep clear of the axis
            tried.append((int(outside) + sum(box.overlaps(other) for other in taken), len(tried), text, box))
        _, best, _, box = min(tried, key=lambda one: one[:2])
        taken.append(box)
        for _, number, text, _ in tried:
            if number != best:
                text.remove()


def _draw_front(ax: Axes, points: list[Point]) -> None:
    """Draw the best accuracy at each cost as a step function."""
    points = sorted(points)
    best = np.maximum.accumulate([accuracy for _, accuracy in points])
    ax.step([seconds for seconds, _ in points], best, where="post", color=COLORS[0], linewidth=1, alpha=0.5)


def _quiet(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
