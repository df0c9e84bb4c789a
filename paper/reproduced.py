"""Figures of the results page: intervals, scatter plots, curves with bands, filters, shares, both protocols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuralbayes.plot.filters import tile_wall
from neuralbayes.plot.style import COLORS, current_theme, new_picture, quiet_frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Interval = tuple[float, float | None]
"""A mean and half the width of its confidence interval."""

Point = tuple[float, float]
HONEST, PAPER, PUBLISHED = "#0072B2", "#D55E00", "#222222"


@dataclass(frozen=True)
class Row:
    """A row of :func:`draw_rows`: its label, both measurements and the published value, any of which may be missing."""

    label: str
    honest: Interval | None = None
    paper: Interval | None = None
    published: float | None = None


def draw_rows(rows: Sequence[Row], unit: str) -> Figure:
    """Draw each row as points on a line: the honest, the paper's and the published value."""
    figure, ax = new_picture()
    figure.set_size_inches(7.2, 0.9 + 0.34 * len(rows))
    heights = np.arange(len(rows))[::-1].astype(float)
    for name, color, marker, shift in (
        ("honest", HONEST, "o", 0.14),
        ("paper", PAPER, "s", -0.14),
    ):
        found = [(height + shift, getattr(row, name)) for height, row in zip(heights, rows, strict=True)]
        _points(ax, [(y, value) for y, value in found if value is not None], color, marker, _MEANING[name])
    published = [(y, row.published) for y, row in zip(heights, rows, strict=True) if row.published is not None]
    if published:
        ax.plot(
            [x for _, x in published],
            [y for y, _ in published],
            linestyle="",
            marker="D",
            markersize=5,
            markerfacecolor="none",
            color=PUBLISHED,
            label=_MEANING["published"],
        )
    ax.set_yticks(heights, [row.label for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlabel(unit)
    quiet_frame(ax)
    ax.grid(axis="x", color="#eeeeee")
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def draw_scatter(
    panels: Mapping[str, Mapping[str, Sequence[Point]]], lines: Mapping[str, float], ylabel: str
) -> Figure:
    """Draw several series of points, one panel per x axis, with the mean of each series as a dotted line.

    Parameters
    ----------
    panels : mapping of str to mapping of str to sequence of points
        Name of the x axis -> name of the series -> points.
    lines : mapping of str to float
        Other levels, drawn in black.
    ylabel : str
    """
    figure, axes = _panels(len(panels), width=4.6, height=3.6)
    for ax, (xlabel, series) in zip(axes, panels.items(), strict=True):
        for i, (name, points) in enumerate(series.items()):
            color = COLORS[i % len(COLORS)]
            ax.scatter(*_columns(points), s=22, color=color, alpha=0.85, linewidths=0, label=name, zorder=2)
            if points:
                ax.axhline(float(np.mean([y for _, y in points])), color=color, linestyle=":", linewidth=1.4)
        for name, level in lines.items():
            ax.axhline(level, color="#222222", linestyle="--", linewidth=1.0, label=name)
        ax.set_xlabel(xlabel)
        quiet_frame(ax)
    axes[0].set_ylabel(ylabel)
    axes[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_lines(panels: Mapping[str, Mapping[str, Mapping[float, Interval]]], xlabel: str, ylabel: str) -> Figure:
    """Draw means with intervals against a logarithmic x axis: panel -> series -> x -> interval."""
    figure, axes = _panels(len(panels), width=3.1, height=3.3)
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    for ax, (title, series) in zip(axes, panels.items(), strict=True):
        for name, values in series.items():
            i = names.index(name)
            x = [value * 1.05**i for value in values]  # side by side instead of overlapping
            y = [mean for mean, _ in values.values()]
            error = [half or 0.0 for _, half in values.values()]
            ax.errorbar(x, y, yerr=error, color=COLORS[i], marker="os^"[i % 3], markersize=5, capsize=2, label=name)
        ticks = sorted({value for values in series.values() for value in values})
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlabel(xlabel)
        ax.set_title(title, loc="left", fontsize=10)
        quiet_frame(ax)
    axes[0].set_ylabel(ylabel)
    axes[-1].legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


def draw_bands(panels: Mapping[str, Mapping[str, NDArray[np.float64]]], xlabel: str, ylabel: str) -> Figure:
    """Draw mean curves with a band of one standard deviation: panel -> series -> (n_curves, n_points)."""
    figure, axes = _panels(len(panels), width=4.2, height=3.4)
    for ax, (title, series) in zip(axes, panels.items(), strict=True):
        for i, (name, curves) in enumerate(series.items()):
            x = np.arange(1, curves.shape[1] + 1)
            mean, std = curves.mean(axis=0), curves.std(axis=0)
            ax.plot(x, mean, color=COLORS[i], linewidth=1.8, label=name)
            ax.fill_between(x, mean - std, mean + std, color=COLORS[i], alpha=0.2, linewidth=0)
        ax.set_title(title, loc="left", fontsize=10)
        ax.set_xlabel(xlabel)
        quiet_frame(ax)
    axes[0].set_ylabel(ylabel)
    axes[-1].legend(frameon=False, fontsize=8)
    return figure


def draw_walls(walls: Mapping[str, NDArray[np.uint8]], columns: int) -> Figure:
    """Draw a wall of grey images for each title: title -> (n, H, W)."""
    figure, first = new_picture()
    first.remove()
    tiles = {title: np.repeat(pictures[..., np.newaxis] / 255.0, 3, axis=3) for title, pictures in walls.items()}
    built = {title: tile_wall(pictures, columns) for title, pictures in tiles.items()}
    heights = [wall.shape[0] / wall.shape[1] for wall in built.values()]
    figure.set_size_inches(7.2, sum(0.45 + 7.0 * height for height in heights))
    axes = figure.subplots(len(built), 1, squeeze=False)[:, 0]
    for ax, (title, wall) in zip(axes, built.items(), strict=True):
        ax.imshow(wall, interpolation="nearest")
        ax.set_axis_off()
        ax.set_title(title, loc="left", fontsize=10)
    return figure


def draw_shares(
    panels: Mapping[str, NDArray[np.float64]],
    columns: Sequence[str],
    rows: Sequence[str],
    xlabel: str,
    ylabel: str,
    low: float = 0.0,
) -> Figure:
    """Draw shares between `low` and 1 as shades with percentages, one panel per table of shape (rows, columns).

    NaN cells stay empty.
    """
    figure, axes = _panels(len(panels), width=3.1, height=3.4)
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("shares", current_theme().shades)
    for ax, (title, table) in zip(axes, panels.items(), strict=True):
        ax.imshow(table, cmap=shades, vmin=low, vmax=1.0, origin="lower", aspect="auto")
        for (i, j), value in np.ndenumerate(table):
            if np.isfinite(value):
                ax.text(
                    j,
                    i,
                    f"{100 * value:.0f}",
                    ha="center",
                    va="center",
                    color="white" if value > (low + 1.5) / 2.5 else "black",
                )
        ax.set_xticks(range(len(columns)), columns)
        ax.set_yticks(range(len(rows)), rows)
        ax.set_xlabel(xlabel)
        ax.set_title(title, loc="left", fontsize=10)
    axes[0].set_ylabel(ylabel)
    return figure


def draw_protocols(pairs: Mapping[str, Sequence[Point]]) -> Figure:
    """Draw the paper's protocol against the honest one, in percent, and a histogram of the differences.

    Parameters
    ----------
    pairs : mapping of str to sequence of (honest, paper)
        Accuracies of all runs, by experiment.
    """
    figure, (left, right) = _panels(2, width=4.4, height=4.0)
    everything = [100.0 * value for points in pairs.values() for point in points for value in point]
    low, high = min(everything) - 1.0, max(everything) + 1.0
    left.plot([low, high], [low, high], color="#999999", linewidth=1.0, linestyle="--")
    for i, (name, points) in enumerate(pairs.items()):
        x, y = _columns([(100.0 * a, 100.0 * b) for a, b in points])
        left.scatter(x, y, s=16, color=COLORS[i % len(COLORS)], alpha=0.8, linewidths=0, label=name, zorder=2)
    left.set_xlabel("honest: accuracy on all test images, %")
    left.set_ylabel("paper's protocol: best epoch on 128 images, %")
    left.legend(frameon=False, fontsize=8)
    differences = [100.0 * (paper - honest) for points in pairs.values() for honest, paper in points]
    edges = np.arange(np.floor(min(differences)), np.ceil(max(differences)) + 1.5)  # one bar per point
    right.hist(differences, bins=edges.tolist(), color=HONEST, zorder=2)
    right.axvline(0.0, color="#222222", linewidth=1.0)
    right.axvline(float(np.mean(differences)), color=PAPER, linewidth=1.4, linestyle=":")
    right.set_xlabel("paper's protocol minus honest, points; dotted: mean")
    right.set_ylabel("probes")
    for ax in (left, right):
        quiet_frame(ax)
    return figure


_MEANING = {"honest": "here, honest", "paper": "here, the paper's protocol", "published": "published"}


def _points(ax: Axes, values: Sequence[tuple[float, Interval]], color: str, marker: str, label: str) -> None:
    if values:
        x = [mean for _, (mean, _) in values]
        error = [half or 0.0 for _, (_, half) in values]
        y = [height for height, _ in values]
        ax.errorbar(x, y, xerr=error, linestyle="", color=color, marker=marker, markersize=5, capsize=2, label=label)


def _panels(n: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A row of axes."""
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(width * n + (0.8 if n < 3 else 1.2), height)
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
