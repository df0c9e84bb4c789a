"""Figure of an image encoder: information by epoch, accuracy of probes, typical images of its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from neuralbayes.plot.curves import CurvesDisplay
from neuralbayes.plot.members import MembersDisplay
from neuralbayes.plot.style import current_theme, new_picture, quiet_frame, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Members = tuple[str, NDArray[np.uint8], Sequence[float]]
"""Name of a state, its images (n, H, W), and p(x|z) / p(x) of each."""

GREYS = ("#c4c4c4", "#999999", "#6e6e6e")


def draw_digits(
    *,
    information: Mapping[str, Sequence[float]],
    bounds: Sequence[float],
    accuracy: Mapping[str, Mapping[str, float]],
    members: Sequence[Members],
) -> Figure:
    """Draw curves and bars on the left, and one row of images per state on the right.

    Parameters
    ----------
    information : mapping of str to sequence of float
        I(x; z) of each layer in nats, before training and after each epoch.
    bounds : sequence of float
        log n_states of each layer.
    accuracy : mapping of str to mapping of str to float
        Accuracy by kind of features and by number of labels per class; the last kind is highlighted.
    members : sequence of (str, ndarray of shape (n, H, W), sequence of float)
        States with their most typical images.
    """
    figure, first = new_picture()
    first.remove()
    figure.set_size_inches(11.5, 5.6)
    left, right = figure.subfigures(1, 2, squeeze=False, width_ratios=(1.0, 1.25))[0]
    upper, lower = left.subplots(2, 1)
    CurvesDisplay(
        {name: (range(len(curve)), curve) for name, curve in information.items()},
        bounds=dict(zip(information, bounds, strict=True)),
        title="I(x; z) in nats; its bound log K: {bounds}",
        xlabel="epoch",
    ).plot(ax=upper, legend="inside")
    plot_accuracy(accuracy, lower)
    lower.set_title("linear probe, accuracy on test images in % (axis cut)", loc="left", fontsize=10)
    right.suptitle(
        "states of the last layer: images with the largest p(x|z) / p(x), and its range",
        fontsize=10,
        x=0.02,
        ha="left",
    )
    names, images, ratios = zip(*members, strict=True) if members else ((), (), ())
    MembersDisplay(images, names, ratios).plot(ax=right.subplots(), cmap="gray_r")
    return figure


def plot_accuracy(accuracy: Mapping[str, Mapping[str, float]], ax: Axes) -> None:
    """Draw bars of test accuracy, grouped by the number of labels per class."""
    kinds = list(accuracy)
    groups = list(accuracy[kinds[0]])
    colors = [GREYS[i % len(GREYS)] for i in range(len(kinds) - 1)] + [state_color(0)]
    width = 0.8 / len(kinds)
    for i, (kind, color) in enumerate(zip(kinds, colors, strict=True)):
        heights = [100.0 * accuracy[kind][group] for group in groups]
        places = np.arange(len(groups)) + (i - (len(kinds) - 1) / 2) * width
        bars = ax.bar(places, heights, 0.92 * width, color=color, label=kind, zorder=2)
        ax.bar_label(bars, fmt="%.1f", fontsize=6.5, color=current_theme().ink, padding=1)
    lowest = min(min(values.values()) for values in accuracy.values())
    ax.set_ylim(max(0.0, 100.0 * lowest - 15.0), 104.0)
    ax.set_xticks(
        np.arange(len(groups)), [f"{group} labels per class" if group != "all" else "all labels" for group in groups]
    )
    room = {"columnspacing": 1.2, "handlelength": 1.2, "handletextpad": 0.5}
    ax.legend(frameon=False, fontsize=8, loc="upper center", ncols=len(kinds), bbox_to_anchor=(0.5, -0.12), **room)
    quiet_frame(ax)
