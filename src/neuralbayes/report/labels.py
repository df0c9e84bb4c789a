"""The picture of ``neuralbayes label``, and names of :mod:`neuralbayes.plot` as other modules know them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from neuralbayes.plot.maps import StateMapDisplay
from neuralbayes.plot.style import COLORS, check_picture, new_picture, save_picture, state_color

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLORS", "check_picture", "new_picture", "plot_labels", "save_picture", "state_color"]


def plot_labels(
    X: ArrayLike,
    labels: ArrayLike,
    *,
    proba: ArrayLike | None = None,
    feature_names: Sequence[str] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw rows as points, coloured by label: a :class:`neuralbayes.plot.StateMapDisplay`, of which the axes."""
    return StateMapDisplay(X, labels, proba=proba, feature_names=feature_names).plot(ax=ax, title=title).ax_
