"""Figures of the results page: rows of intervals, scatter plots, lines, bands and walls of filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuralbayes.plot.images import tile_wall
from neuralbayes.plot.style import COLORS, new_picture, quiet_frame
from paper.statistics import estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Point = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """A row of :func:`draw_rows`: accuracies under both protocols, one per seed, and the published one in percent."""

    label: str
    honest: Sequence[float]
    paper: Sequence[float]
    published: float | None = None


def draw_rows(rows: Sequence[Row], unit: str) -> Figure:
    """Draw the means of each row with their intervals, and the published value."""
    figure, ax = new_picture()
    figure.set_size_inches(7.2, 0.9 + 0.34 * len(rows))
    heights = np.arange(len(rows))[::-1].astype(float)
    measured = (
        ("here, honest", COLORS[0], "o", 0.14, [row.honest for row in rows]),
        ("here, the paper's protocol", COLORS[1], "s", -0.14, [row.paper for row in rows]),
    )
    for label, color, marker, shift, column in measured:
        found = [(y + shift, estimate(values)) for y, values in zip(heights, column, strict=True) if values]
        means = [100 * one.mean for _, one in found]
        # The interval of two seeds is wider than the axis, and says less than their mean.
        halves = [100 * one.half if one.half is not None and one.n > 2 else 0.0 for _, one in found]
        ax.errorbar(
            means, [y for y, _ in found], xerr=halves, linestyle="", color=color, marker=marker,
            markersize=5, capsize=2, label=label,
        )  # fmt: skip
    published = [(row.published, y) for y, row in zip(heights, rows, strict=True) if row.published is not None]
    if published:
        ax.plot(
            *_columns(published), linestyle="", marker="D", markersize=5, markerfacecolor="none", color="#222222",
            label="published",
        )  # fmt: skip
    ax.set_yticks(heights, [row.label for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    left, right = ax.get_xlim()
    ax.set_xlim(max(0.0, left), min(103.0, right))
    ax.set_xlabel(unit)
    quiet_frame(ax)
    ax.grid(axis="x", color="#eeeeee")
    ax.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3)
    return figure


def draw_scatter(
    panels: Mapping[str, Mapping[str, Sequence[Point]]], lines: Mapping[str, float], ylabel: str
) -> Figure:
    """Draw series of points, one panel for each x axis, with dotted means and dashed other levels."""
    figure, axes = _panels(len(panels), width=4.4, height=3.6)
    for ax, (xlabel, series) in zip(axes, panels.items(), strict=True):
        for i, (name, points) in enumerate(series.items()):
            color = COLORS[i]
            ax.scatter(*_columns(points), s=22, color=color, alpha=0.8, linewidths=0, label=name, zorder=2)
            if points:
                ax.axhline(float(np.mean([y for _, y in points])), color=color, linestyle=":", linewidth=1.4)
        for name, level in lines.items():
            ax.axhline(level, color="#222222", linestyle="--", linewidth=1.0, label=name)
        ax.set_xlabel(xlabel)
        quiet_frame(ax)
    axes[0].set_ylabel(ylabel)
    _legend_beside(axes[-1])
    return figure


def draw_lines(panels: Mapping[str, Mapping[str, Mapping[float, Sequence[float]]]], xlabel: str, ylabel: str) -> Figure:
    """Draw means in percent with intervals against a logarithmic x axis: panel -> series -> x -> values."""
    figure, axes = _panels(len(panels), width=3.1, height=3.3)
    names = list(dict.fromkeys(name for series in panels.values() for name in series))
    for ax, (title, series) in zip(axes, panels.items(), strict=True):
        for name, values in series.items():
            i = names.index(name)
            x = [value * 1.06**i for value in values]  # side by side instead of overlapping
            found = [estimate(one) for one in values.values()]
            y, error = [100 * one.mean for one in found], [100 * (one.half or 0.0) for one in found]
            ax.errorbar(x, y, yerr=error, color=COLORS[i], marker="os^"[i], markersize=5, capsize=2, label=name)
        ticks = sorted({value for values in series.values() for value in values})
        ax.set_xscale("log")
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.minorticks_off()
        ax.set_xlabel(xlabel)
        ax.set_title(title, loc="left", fontsize=10)
        quiet_frame(ax)
    axes[0].set_ylabel(ylabel)
    limits = [limit for ax in axes for limit in ax.get_ylim()]
    for ax in axes:
        ax.set_ylim(min(limits), max(limits))  # one scale, so that panels can be compared
    _legend_beside(axes[-1])
    return figure


def draw_bands(panels: Mapping[str, Mapping[str, NDArray[np.float64]]], xlabel: str, ylabel: str) -> Figure:
    """Draw mean curves with a band of one standard deviation: panel -> series -> (n_curves, n_points)."""
    figure, axes = _panels(len(panels), width=4.0, height=3.4)
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
    _legend_beside(axes[-1])
    return figure


def draw_walls(walls: Mapping[str, NDArray[np.uint8]], columns: int) -> Figure:
    """Draw a wall of grey images for each title: title -> (n, H, W)."""
    figure, first = new_picture()
    first.remove()
    built = {
        title: tile_wall(np.repeat(images[..., np.newaxis] / 255.0, 3, axis=3), columns)
        for title, images in walls.items()
    }
    figure.set_size_inches(7.2, sum(0.45 + 7.0 * wall.shape[0] / wall.shape[1] for wall in built.values()))
    for ax, (title, wall) in zip(figure.subplots(len(built), 1, squeeze=False)[:, 0], built.items(), strict=True):
        ax.imshow(wall, interpolation="nearest")
        ax.set_axis_off()
        ax.set_title(title, loc="left", fontsize=10)
    return figure


def _panels(n: int, *, width: float, height: float) -> tuple[Figure, list[Axes]]:
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(width * n + 1.2, height)
    return figure, list(figure.subplots(1, n, squeeze=False)[0])


def _legend_beside(ax: Axes) -> None:
    ax.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))


def _columns(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]
