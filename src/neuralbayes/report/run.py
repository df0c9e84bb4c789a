"""What a pretraining left in its folder, as pictures: filters, information, use of states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from neuralbayes.encoder import STATES, ImageEncoder
from neuralbayes.files import read_tensors
from neuralbayes.pretraining import WATCHED
from neuralbayes.report.frames import quiet_frame
from neuralbayes.report.labels import COLORS, new_picture, save_picture
from neuralbayes.training.metrics import read_metrics

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_FILTERS = 200
NEAR = 0.3  # share of the largest bound from which on the bounds are drawn
GAP = (0.86, 0.91, 0.97)
DEAD = 0.1  # share of 1 / n_states below which a state is called dead


def draw_run(folder: str | Path) -> list[Path]:
    """Draw filters.png, information.png and states.png into the folder of a finished pretraining.

    Parameters
    ----------
    folder : path
        As `neuralbayes.pretrain` leaves it.

    Returns
    -------
    list of Path
        The pictures.
    """
    folder = Path(folder)
    encoder = ImageEncoder.load(folder)
    priors, _ = read_tensors(folder / "states.safetensors")
    p_z = {name: priors[name].numpy() for name in STATES}
    pictures = {
        "filters.png": draw_filters(encoder.network.state_dict()["conv1.weight"].numpy()),
        "information.png": draw_information(
            read_metrics(folder / "metrics.jsonl"), {name: math.log(len(p)) for name, p in p_z.items()}
        ),
        "states.png": draw_states(p_z),
    }
    for name, figure in pictures.items():
        save_picture(figure, folder / name)
    return [folder / name for name in pictures]


def draw_filters(weight: ArrayLike) -> Figure:
    """Draw convolution kernels side by side, the loudest first.

    Parameters
    ----------
    weight : array of shape (n_filters, C, h, w)
        In colours for three channels, in grey otherwise, then the mean over channels. Each filter is scaled to its own
        largest weight; middle grey is 0.

    Returns
    -------
    matplotlib Figure
    """
    kernels = np.asarray(weight, dtype=np.float64)
    if kernels.ndim != 4:
        raise ValueError(f"`weight` must have shape (n_filters, C, h, w), got {kernels.shape}")
    n = len(kernels)
    kernels = kernels[np.argsort(-np.square(kernels).sum(axis=(1, 2, 3)), kind="stable")[:MAX_FILTERS]]
    if kernels.shape[1] != 3:
        kernels = np.repeat(kernels.mean(axis=1, keepdims=True), 3, axis=1)
    largest = np.abs(kernels).max(axis=(1, 2, 3), keepdims=True)
    tiles = (0.5 + 0.5 * kernels / np.maximum(largest, 1e-12)).transpose(0, 2, 3, 1)
    columns = math.ceil(math.sqrt(1.6 * len(tiles)))
    wall = tile_wall(tiles, columns)
    figure, ax = new_picture()
    figure.set_size_inches(7.2, 0.9 + 7.0 * wall.shape[0] / wall.shape[1])
    ax.imshow(wall, interpolation="nearest")
    ax.set_axis_off()
    shown = f"the {len(tiles)} loudest of {n}" if len(tiles) < n else f"{n}"
    ax.set_title(f"{shown} filters of the first layer, each scaled to its largest weight", loc="left", fontsize=10)
    return figure


def draw_information(metrics: Sequence[Mapping[str, float]], bounds: Mapping[str, float]) -> Figure:
    """Draw I(x; z) of each layer against epochs with its bound, and the loss below.

    Parameters
    ----------
    metrics : sequence of mapping
        Lines of metrics.jsonl with "step", "epoch", "loss" and "mi/NAME" for each layer.
    bounds : mapping of str to float
        log n_states of each layer.

    Returns
    -------
    matplotlib Figure
    """
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(7.2, 6.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(2.0, 1.0))
    highest = 0.0
    for i, (name, bound) in enumerate(bounds.items()):
        points = [(m["step"], m[f"mi/{name}"]) for m in metrics if f"mi/{name}" in m]
        highest = max([highest, *(y for _, y in points)])
        label = f"{name}: {points[-1][1]:.2f} of {bound:.2f}" if points else name
        upper.plot(*_columns(points), color=COLORS[i], linewidth=1.6, label=label, **_marker(points))
        upper.axhline(bound, color=COLORS[i], linewidth=1.0, linestyle=(2 * i, (1, 4)))
    # Curves far below their bounds would be flat at the foot of the picture.
    near = highest > NEAR * max(bounds.values())
    upper.set_ylim(0.0, 1.06 * max(bounds.values()) if near or highest == 0 else 1.15 * highest)
    upper.set_ylabel("nats")
    where = "dotted" if near else "above the picture"
    upper.set_title(f"I(x; z) on {WATCHED} training images; its bound log K: {where}", loc="left", fontsize=10)
    upper.legend(frameon=False, fontsize=8, loc="center left", bbox_to_anchor=(1.0, 0.5))
    losses = [(m["step"], m["loss"]) for m in metrics if "loss" in m]
    lower.plot(*_columns(losses), color="#555555", linewidth=1.2, **_marker(losses))
    lower.set_title("objective, smoothness included; lower is better", loc="left", fontsize=10)
    lower.set_xlabel("updates")
    for ax in (upper, lower):
        quiet_frame(ax)
    return figure


def draw_states(p_z: Mapping[str, NDArray[Any]]) -> Figure:
    """Draw p(z) of the states of each layer, the largest first, in units of 1 / n_states.

    Parameters
    ----------
    p_z : mapping of str to array of shape (n_states,)

    Returns
    -------
    matplotlib Figure
    """
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(9.0, 5.6)
    grid = figure.subplots(math.ceil(len(p_z) / 2), 2, squeeze=False).ravel()
    for ax in grid[len(p_z) :]:
        ax.remove()
    for i, (ax, (name, prior)) in enumerate(zip(grid, p_z.items(), strict=False)):
        shares = np.sort(np.asarray(prior, dtype=np.float64))[::-1] * len(prior)
        dead = shares < DEAD
        ax.bar(np.flatnonzero(~dead), shares[~dead], width=1.0, color=COLORS[i % len(COLORS)], zorder=2)
        if dead.any():  # too low to be seen: a mark at the foot
            foot = np.full(int(dead.sum()), 0.02)
            ax.plot(np.flatnonzero(dead), foot, "|", color="#cc0000", transform=ax.get_xaxis_transform(), zorder=3)
        ax.axhline(1.0, color="#999999", linewidth=0.8, linestyle=(0, (4, 4)), zorder=3)
        ax.set_xlim(-0.5, len(prior) - 0.5)
        ax.set_ylim(0.0, 1.08 * max(1.0, float(shares[0])))
        found = f"{dead.sum()} of {len(prior)} states dead" if dead.any() else f"{len(prior)} states, none dead"
        ax.set_title(f"{name}: {found}", loc="left", fontsize=10)
        quiet_frame(ax)
    figure.supxlabel(f"states, the commonest first; red: below {DEAD:g} of the equal share", fontsize=9)
    figure.supylabel("p(z) in units of 1 / K", fontsize=9)
    return figure


def tile_wall(tiles: NDArray[np.float64], columns: int) -> NDArray[np.float64]:
    """Tiles (n, h, w, 3) side by side with a pale gap between them, which no grey can be taken for: (H, W, 3)."""
    n, height, width, channels = tiles.shape
    rows = math.ceil(n / columns)
    wall = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, channels), GAP)
    for i, tile in enumerate(tiles):
        top, left = i // columns * (height + 1), i % columns * (width + 1)
        wall[top : top + height, left : left + width] = tile
    return wall


def _columns(points: Sequence[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _marker(points: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """A line of few points shows each of them: one point alone would not be seen."""
    return {"marker": "o", "markersize": 4} if len(points) < 20 else {}
