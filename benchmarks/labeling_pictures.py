"""Pictures of docs/labeling.md: the ten sets with their labels, and time against the number of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from labeling_records import scale_seconds
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, NullLocator
from numpy.typing import NDArray
from records import Results

from neuralbayes.data.toys import HARDER, PAPER
from neuralbayes.plot.style import save_picture, state_color

OURS, THEIRS = "#0072B2", "#D55E00"
N_TRAIN, N_FRESH = 1200, 10_000


def draw_sets(results: Results, path: Path) -> None:
    """Plot the training points of the first seed, before their rotation into 512 dimensions."""
    figure = Figure(figsize=(11.0, 4.7), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    axes = figure.subplots(2, 5).ravel()
    for ax, (name, (make, _)) in zip(axes, {**PAPER, **HARDER}.items(), strict=True):
        columns = results.column("accuracy", "labels", set=name, method="ours")
        seed, labels = next(iter(columns.items()))
        X = make(N_TRAIN + N_FRESH, random_state=seed)[0][:N_TRAIN]
        _scatter(ax, X, np.array(list(labels), dtype=int), name)
        accuracy = results.column("accuracy", "accuracy", set=name, method="ours")[seed]
        ax.set_title(name, fontsize=11, color="#222222")
        ax.set_xlabel(f"{accuracy * N_TRAIN:,.0f} of {N_TRAIN:,} right", fontsize=9, color="#666666")
    save_picture(figure, path)


def _scatter(ax: Axes, X: NDArray[Any], labels: NDArray[Any], name: str) -> None:
    """Plot two columns directly, or three in a view from the side and above; nearer points are on top and darker."""
    colors = to_rgba_array([state_color(k) for k in range(labels.max() + 1)])[labels]
    colors[:, 3] = 0.75
    if X.shape[1] == 3:
        if name == "nested spheres":  # cut open to show the inside
            X, colors = X[X[:, 1] > -0.1], colors[X[:, 1] > -0.1]
        points, depth = _projected(X, turn=-0.45 if name == "interlocked rings" else 0.12, tilt=0.3)
        order = np.argsort(-depth)
        nearness = 1.0 - (depth - depth.min()) / np.ptp(depth)
        colors[:, 3] = 0.3 + 0.6 * nearness
        X, colors = points[order], colors[order]
    ax.scatter(X[:, 0], X[:, 1], s=7, c=colors, linewidths=0, rasterized=True)
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.08)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_color("#dddddd")


def _projected(X: NDArray[Any], turn: float, tilt: float) -> tuple[NDArray[Any], NDArray[Any]]:
    """Project along the second column, after a turn about the third and a tilt; returns points and depth."""
    x = np.cos(turn) * X[:, 0] - np.sin(turn) * X[:, 1]
    y = np.sin(turn) * X[:, 0] + np.cos(turn) * X[:, 1]
    height = np.cos(tilt) * X[:, 2] + np.sin(tilt) * y
    return np.column_stack([x, height]), np.cos(tilt) * y - np.sin(tilt) * X[:, 2]


def draw_time(results: Results, path: Path) -> None:
    """Plot the seconds of a fit against the number of rows for ManifoldLabeler and SpectralClustering, log-log."""
    figure = Figure(figsize=(9.4, 4.2), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    dims = results.names("scale", "dim")
    sizes = results.names("scale", "n")
    panels = figure.subplots(1, len(dims), sharey=True, squeeze=False)[0]
    for ax, dim in zip(panels, dims, strict=True):
        for method, name, color, marker in (
            ("ours", "ManifoldLabeler", OURS, "o"),
            ("SpectralClustering", "SpectralClustering", THEIRS, "s"),
        ):
            seconds = scale_seconds(results, method, dim)
            n, t = list(seconds), list(seconds.values())
            ax.plot(n, t, color=color, marker=marker, markersize=7, linewidth=2, markeredgecolor="white", label=name)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlim(900, 1.4 * max(sizes))
        ax.set_xticks(sizes, [_short(n) for n in sizes])
        ax.xaxis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g} s"))
        ax.set_xlabel("rows", color="#555555")
        ax.set_title(f"{dim} dimensions", loc="left", fontsize=11)
        ax.grid(color="#e8e8e8", which="major")
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color("#999999")
        ax.tick_params(color="#999999", labelcolor="#555555", which="both")
    panels[0].legend(frameon=False, loc="upper left")
    panels[0].set_ylabel("time of a fit on one thread", color="#555555")
    save_picture(figure, path)


def _short(n: int) -> str:
    return f"{n:,}" if n < 10_000 else f"{n // 1000}k" if n < 1_000_000 else f"{n // 1_000_000}M"
