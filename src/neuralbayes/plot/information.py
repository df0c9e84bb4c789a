"""I(x; z) of each layer, with its upper bound."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from neuralbayes.plot.display import Display
from neuralbayes.plot.style import current_theme, literal, quiet_frame, state_color
from neuralbayes.system.files import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class InformationDisplay(Display):
    """Bars of I(x; z) in nats for each layer, with the bound log n_states.

    Parameters
    ----------
    information : mapping of str to float
        Nats, by layer.
    bounds : mapping of str to float
        log n_states, by layer.

    Attributes
    ----------
    information, bounds : dict of str to float
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import math
    >>> import neuralbayes as nb
    >>> bounds = {"relu1": math.log(8), "relu2": math.log(16)}
    >>> display = nb.plot.InformationDisplay({"relu1": 1.2, "relu2": 2.0}, bounds)
    >>> [text.get_text() for text in display.plot().ax_.texts]
    ['1.20 of 2.08, 58 %', '2.00 of 2.77, 72 %']
    """

    def __init__(self, information: Mapping[str, float], bounds: Mapping[str, float]) -> None:
        if not information or list(information) != list(bounds):
            raise ValueError(
                f"`information` and `bounds` must have the same layers, got {list(information)} and {list(bounds)}"
            )
        if min(bounds.values()) <= 0:
            raise ValueError(f"`bounds` must be positive, got {dict(bounds)}")
        self.information = {name: float(value) for name, value in information.items()}
        self.bounds = {name: float(value) for name, value in bounds.items()}

    @classmethod
    def from_run(cls, folder: str | Path, *, ax: Axes | None = None) -> Self:
        """Draw from the result.json of a finished run of :func:`neuralbayes.pretrain`."""
        path = Path(folder) / "result.json"
        if not path.is_file():
            raise FileNotFoundError(f"`folder` must hold a finished pretraining with its result.json, got {folder}")
        layers = read_json(path).get("layers")
        if not layers:
            raise ValueError(f"{path} does not contain the information of the layers")
        return cls(
            {name: layer["information"] for name, layer in layers.items()},
            {name: layer["bound"] for name, layer in layers.items()},
        ).plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the `mutual_information_` of a fitted :class:`neuralbayes.MIMEncoder`."""
        names = [f"layer {i}" for i in range(len(estimator.n_states_))]
        return cls(
            dict(zip(names, estimator.mutual_information_, strict=True)),
            dict(zip(names, np.log(estimator.n_states_), strict=True)),
        ).plot(ax=ax)

    @classmethod
    def from_posteriors(cls, posteriors: Mapping[str, ArrayLike], *, ax: Axes | None = None) -> Self:
        """Draw the mutual information of posteriors of shape (n_samples, n_states), by layer.

        Examples
        --------
        >>> import numpy as np
        >>> import neuralbayes as nb
        >>> display = nb.plot.InformationDisplay.from_posteriors({"certain": np.eye(4), "vague": np.full((4, 4), 0.25)})
        >>> [round(value, 3) for value in display.information.values()]
        [1.386, 0.0]
        """
        import torch

        from neuralbayes.bayes import mutual_information

        arrays = {name: np.array(p_zx, dtype=np.float64) for name, p_zx in posteriors.items()}
        return cls(
            {name: float(mutual_information(torch.from_numpy(p_zx))) for name, p_zx in arrays.items()},
            {name: float(np.log(p_zx.shape[1])) for name, p_zx in arrays.items()},
        ).plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> Self:
        """Draw into `ax`, by default into a new figure; returns self."""
        ax = self._begin(ax)
        colors = current_theme()
        names = list(self.information)
        heights = np.arange(len(names))[::-1]
        found, bounds = list(self.information.values()), list(self.bounds.values())
        ax.barh(heights, bounds, height=0.42, color=colors.grid, edgecolor=colors.line, linewidth=0.8, zorder=1)
        ax.barh(heights, found, height=0.42, color=state_color(0), zorder=2)
        for y, value, bound in zip(heights, found, bounds, strict=True):
            words = f"{value:.2f} of {bound:.2f}, {100 * value / bound:.0f} %"
            ax.text(0.0, y + 0.25, words, va="bottom", fontsize=8, color=colors.muted, zorder=3)
        ax.set_yticks(heights, list(map(literal, names)))
        ax.set_ylim(-0.5, len(names) - 0.2)
        ax.set_xlim(0.0, 1.02 * max(bounds))
        ax.set_xlabel("nats", fontsize=9, color=colors.muted)
        ax.set_title("I(x; z) of each layer; frame: its bound log K", loc="left", fontsize=10)
        quiet_frame(ax)
        ax.grid(visible=False, axis="y")
        ax.spines["left"].set_visible(False)
        ax.tick_params(axis="y", length=0)
        return self
