"""Picture of a sweep: the metric against each searched setting."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from neuralbayes.plot.style import current_theme, new_picture, quiet_frame, state_color
from neuralbayes.sweeps.space import Choice, Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from neuralbayes.sweeps.search import Outcome

COLUMNS = 3
WIDTH, HEIGHT = 3.4, 2.9  # inches of a panel


def draw_sweep(outcomes: Sequence[Outcome], space: Space, metric: str) -> Figure:
    """Draw the metric of all trials against each searched setting, one panel per setting.

    Parameters
    ----------
    outcomes : sequence of Outcome
        At least one finished trial. Trials without a value are marked at the bottom.
    space : Space
        The searched settings.
    metric : str
        Name of the metric.
    """
    figure, first = new_picture()
    first.remove()
    columns = 2 if len(space) == 4 else min(COLUMNS, len(space))
    rows = math.ceil(len(space) / columns)
    figure.set_size_inches(max(WIDTH * columns, 5.4), HEIGHT * rows + 0.5)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True)
    for i, name in enumerate(space):
        ax = panels[divmod(i, columns)]
        _panel(ax, outcomes, space, name)
        if i % columns == 0:
            ax.set_ylabel(metric, fontsize=9)
    for ax in panels.ravel()[len(space) :]:
        ax.remove()
    best = max((one for one in outcomes if one.value is not None), key=lambda one: one.value or 0.0)
    n_without = sum(one.value is None for one in outcomes)
    without = f"; red, at the foot: {n_without} without a value" if n_without else ""
    figure.suptitle(
        f"{metric} of {len(outcomes)} trials; orange: the best, {best.trial}, {best.value:.4g}{without}",
        fontsize=10,
        x=0.01,
        ha="left",
    )
    return figure


def _panel(ax: Axes, outcomes: Sequence[Outcome], space: Space, name: str) -> None:
    searched = space[name]
    rng = np.random.default_rng(0)

    def place(outcome: Outcome) -> float:
        value = outcome.settings[name]
        if not isinstance(searched, Choice):
            return float(value)
        # Jitter, so that trials with the same choice do not overlap.
        return list(searched.values.values()).index(value) + rng.uniform(-0.15, 0.15)

    known = [one for one in outcomes if name in one.settings]
    finished = [(place(one), float(one.value)) for one in known if one.value is not None]
    ended = [place(one) for one in known if one.value is None]
    theme = current_theme()
    ax.scatter([x for x, _ in finished], [y for _, y in finished], s=22, color=state_color(0), alpha=0.75)
    ax.plot(ended, np.full(len(ended), 0.02), "|", color=theme.dead, transform=ax.get_xaxis_transform())
    best = max(finished, key=lambda point: point[1])
    ax.scatter(*best, s=60, color=state_color(1), edgecolor=theme.ground, zorder=3)
    if isinstance(searched, Choice):
        ax.set_xticks(range(len(searched.values)), list(searched.values))
        ax.set_xlim(-0.5, len(searched.values) - 0.5)
    else:
        ax.set_xscale("log" if searched.log else "linear")
        ax.set_xlim(*_wider(searched.low, searched.high, searched.log))
    ax.set_xlabel(name, fontsize=9)
    quiet_frame(ax)


def _wider(low: float, high: float, log: bool) -> tuple[float, float]:
    """A range with a margin on either side."""
    if log:
        room = (high / low) ** 0.03
        return low / room, high * room
    room = 0.03 * (high - low)
    return low - room, high + room
