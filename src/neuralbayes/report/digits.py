"""What an encoder of images learnt: information against epochs, accuracy of probes, typical images of its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.report.frames import quiet_frame
from neuralbayes.report.labels import COLORS, new_picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Members = tuple[str, NDArray[np.uint8], Sequence[float]]
"""Name of a state, its images (n, H, W), and p(x|z) / p(x) of each."""

GREYS = ("#bbbbbb", "#888888")


def draw_digits(
    *,
    information: Mapping[str, Sequence[float]],
    bounds: Sequence[float],
    accuracy: Mapping[str, Mapping[str, float]],
    members: Sequence[Members],
) -> Figure:
    """Curves and bars on the left, one row of images a state on the right.

    Parameters
    ----------
    information : mapping of str to sequence of float
        For each layer I(x; z) in nats before training and after each epoch.
    bounds : sequence of float
        log n_states of each layer.
    accuracy : mapping of str to mapping of str to float
        For each kind of features the accuracy by the number of labels a class; the last kind is the one to look at.
    members : sequence of (str, ndarray of shape (n, H, W), sequence of float)
        States with their most typical images.

    Returns
    -------
    matplotlib Figure
        For :func:`neuralbayes.report.labels.save_picture`.
    """
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(11.5, 5.6)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.0, 1.25))[0]
    upper, lower = left.subplots(2, 1)
    plot_information(information, bounds, upper)
    plot_accuracy(accuracy, lower)
    right.suptitle(
        "states of the last layer: images of largest p(x|z) / p(x), with its range",
        fontsize=10,
        x=0.02,
        ha="left",
    )
    rows = right.subplots(max(len(members), 1), 1, squeeze=False)[:, 0]
    for ax in rows:
        ax.set_axis_off()
    for ax, state in zip(rows, members, strict=False):
        plot_members(state, ax)
    return figure


def plot_information(information: Mapping[str, Sequence[float]], bounds: Sequence[float], ax: Axes) -> None:
    """I(x; z) of each layer against epochs, with its bound log n_states as a dotted line."""
    for i, ((name, curve), bound) in enumerate(zip(information.items(), bounds, strict=True)):
        color = COLORS[i % len(COLORS)]
        ax.plot(curve, color=color, linewidth=1.8, label=name)
        ax.axhline(bound, color=color, linewidth=1.0, linestyle=(i, (1, 3)))
    ax.set_ylim(0.0, 1.06 * max(bounds))
    ax.set_xlabel("epoch", fontsize=8, color="#555555")
    ax.set_title("I(x; z) in nats; dotted: its bound log K", loc="left", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(0.01, 0.84))
    quiet_frame(ax)


def plot_accuracy(accuracy: Mapping[str, Mapping[str, float]], ax: Axes) -> None:
    """Bars of test accuracy, grouped by the number of labels a class."""
    kinds = list(accuracy)
    groups = list(accuracy[kinds[0]])
    colors = [GREYS[i % len(GREYS)] for i in range(len(kinds) - 1)] + [COLORS[0]]
    width = 0.8 / len(kinds)
    for i, (kind, color) in enumerate(zip(kinds, colors, strict=True)):
        heights = [100.0 * accuracy[kind][group] for group in groups]
        places = np.arange(len(groups)) + (i - (len(kinds) - 1) / 2) * width
        bars = ax.bar(places, heights, 0.92 * width, color=color, label=kind, zorder=2)
        ax.bar_label(bars, fmt="%.1f", fontsize=7, color="#333333", padding=1)
    lowest = min(min(values.values()) for values in accuracy.values())
    ax.set_ylim(max(0.0, 100.0 * lowest - 15.0), 104.0)
    ax.set_xticks(
        np.arange(len(groups)), [f"{group} labels a class" if group != "all" else "all labels" for group in groups]
    )
    ax.set_title("linear probe, % of test images right (axis cut)", loc="left", fontsize=10)
    ax.legend(frameon=False, fontsize=8, loc="upper left", ncols=len(kinds), bbox_to_anchor=(0.0, -0.12))
    quiet_frame(ax)


def plot_members(state: Members, ax: Axes) -> None:
    """The images of one state side by side, its name before them, their ratios after."""
    name, images, ratio = state
    n, height, width = images.shape
    gap = max(1, width // 8)
    strip = np.full((height, n * (width + gap) - gap), np.nan)
    for i, image in enumerate(images):
        strip[:, i * (width + gap) : i * (width + gap) + width] = image
    ax.imshow(strip, cmap="gray_r", vmin=0, vmax=255, interpolation="nearest")
    style: dict[str, Any] = {"fontsize": 8, "color": "#555555", "va": "center"}
    middle = (height - 1) / 2
    ax.text(-2 * gap, middle, name, ha="right", **style)
    ax.text(strip.shape[1] + gap, middle, f"{ratio[0]:.0f} to {ratio[-1]:.0f}", ha="left", **style)
