"""Curves of training: information or loss by update."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from neuralbayes.plot.display import Display
from neuralbayes.plot.style import current_theme, literal, quiet_frame, state_color
from neuralbayes.system.files import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = tuple[Sequence[float], Sequence[float]]
"""x and y values of a curve."""

Legend = Literal["outside", "inside", "below"]

NEAR = 0.3  # bounds are drawn if a curve reaches this fraction of the largest bound
FEW = 20  # with fewer points each gets a marker, since a single point would be invisible
LAYER = "mi/"  # prefix of the metrics of a layer's information


class CurvesDisplay(Display):
    """Curves by update or epoch, with optional upper bounds.

    Parameters
    ----------
    curves : mapping of str to (sequence of float, sequence of float)
        x and y values of each curve, by name.
    bounds : mapping of str to float, optional
        Upper bounds by name, drawn as dotted lines unless all curves are far below.
    title, xlabel, ylabel : str, optional

    Attributes
    ----------
    curves, bounds : as given
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

    Examples
    --------
    >>> import neuralbayes as nb
    >>> display = nb.plot.CurvesDisplay({"loss": ([20, 40, 60], [3.1, 2.4, 2.2])}, ylabel="objective").plot()
    >>> display.ax_.lines[0].get_ydata().tolist()
    [3.1, 2.4, 2.2]
    """

    def __init__(
        self,
        curves: Mapping[str, Curve],
        *,
        bounds: Mapping[str, float] | None = None,
        title: str = "",
        xlabel: str = "updates",
        ylabel: str = "",
    ) -> None:
        for name, (x, y) in curves.items():
            if len(x) != len(y):
                raise ValueError(f"`curves` must have a value for each place, got {len(x)} and {len(y)} in {name!r}")
        self.curves = dict(curves)
        self.bounds = {} if bounds is None else dict(bounds)
        if unknown := set(self.bounds) - set(self.curves):
            raise ValueError(f"`bounds` must have the names of `curves`, got {sorted(unknown)}")
        self.title, self.xlabel, self.ylabel = title, xlabel, ylabel

    @classmethod
    def from_metrics(
        cls,
        metrics: Sequence[Mapping[str, float]],
        what: Literal["information", "loss"] = "loss",
        *,
        bounds: Mapping[str, float] | None = None,
        title: str | None = None,
        ax: Axes | None = None,
        legend: Legend = "outside",
    ) -> Self:
        """Draw lines of a metrics.jsonl.

        Parameters
        ----------
        metrics : sequence of mapping
            With "step", "loss", and "mi/NAME" for each layer.
        what : {"loss", "information"}, default="loss"
        bounds : mapping of str to float, optional
            log n_states by layer, for the information. Only these layers are drawn.
        title : str, optional
            Title. The placeholder {bounds} is replaced by a note on how the bounds are drawn.
        ax, legend
            As in :meth:`plot`.

        Examples
        --------
        >>> import neuralbayes as nb
        >>> metrics = [{"step": 1, "loss": 5.0, "mi/relu1": 0.1}, {"step": 2, "loss": 4.0, "mi/relu1": 0.7}]
        >>> nb.plot.CurvesDisplay.from_metrics(metrics, "information", bounds={"relu1": 2.1}).curves
        {'relu1': ([1, 2], [0.1, 0.7])}
        """
        if what not in ("information", "loss"):
            raise ValueError(f"`what` must be 'information' or 'loss', got {what!r}")
        if what == "loss":
            words = "objective, smoothness included; lower is better" if title is None else title
            return cls({"loss": _column(metrics, "loss")}, title=words).plot(ax=ax, legend=legend)
        found = [name.removeprefix(LAYER) for line in metrics[:1] for name in line if name.startswith(LAYER)]
        curves = {name: _column(metrics, LAYER + name) for name in (found if bounds is None else bounds)}
        words = "I(x; z); its bound log K: {bounds}" if title is None else title
        return cls(curves, bounds=bounds, title=words, ylabel="nats").plot(ax=ax, legend=legend)

    @classmethod
    def from_run(
        cls,
        folder: str | Path,
        what: Literal["information", "loss"] = "loss",
        *,
        ax: Axes | None = None,
        legend: Legend = "outside",
    ) -> Self:
        """Draw the metrics.jsonl in the folder of a run; parameters as in :meth:`from_metrics`."""
        from neuralbayes.training.run_folder import read_metrics

        folder = Path(folder)
        if not (folder / "metrics.jsonl").is_file():
            raise FileNotFoundError(f"`folder` must hold a run with its metrics.jsonl, got {folder}")
        layers = read_json(folder / "result.json").get("layers") if (folder / "result.json").is_file() else None
        bounds = None if layers is None else {name: float(layer["bound"]) for name, layer in layers.items()}
        return cls.from_metrics(read_metrics(folder / "metrics.jsonl"), what, bounds=bounds, ax=ax, legend=legend)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the `loss_curve_` of a clusterer or of a :class:`neuralbayes.MIMEncoder`."""
        return cls(loss_curves(estimator), title="objective; lower is better", xlabel="iterations").plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, legend: Legend = "outside") -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            By default the axes of a new figure.
        legend : {"outside", "inside", "below"}, default="outside"
            Position of the legend.

        Returns
        -------
        self
        """
        ax = self._begin(ax)
        several = len(self.curves) > 1 or bool(self.bounds)
        highest = max((value for _, y in self.curves.values() for value in y), default=0.0)
        # Curves far below their bounds would be flat at the bottom.
        near = not self.bounds or highest > NEAR * max(self.bounds.values())
        for i, (name, (x, y)) in enumerate(self.curves.items()):
            color = state_color(i) if several else current_theme().muted
            marks: dict[str, Any] = {"marker": "o", "markersize": 4} if len(x) < FEW else {}
            ax.plot(x, y, color=color, linewidth=1.6, label=literal(self._label(name)), **marks)
            if name in self.bounds:
                ax.axhline(self.bounds[name], color=color, linewidth=1.0, linestyle=(2 * i, (1, 4)))
        if self.bounds:
            ax.set_ylim(0.0, 1.06 * max(self.bounds.values()) if near or highest == 0 else 1.15 * highest)
        title = self.title.replace("{bounds}", "dotted" if near else "above the picture")
        ax.set_title(literal(title), loc="left", fontsize=10)
        ax.set_xlabel(self.xlabel, fontsize=9, color=current_theme().muted)
        ax.set_ylabel(self.ylabel, fontsize=9, color=current_theme().muted)
        if several:
            ax.legend(frameon=False, fontsize=8, **_LEGENDS[legend])
        quiet_frame(ax)
        return self

    def _label(self, name: str) -> str:
        _, y = self.curves[name]
        known = name in self.bounds and len(y) and math.isfinite(y[-1])
        return f"{name}: {y[-1]:.2f} of {self.bounds[name]:.2f}" if known else name


_LEGENDS: dict[Legend, dict[str, Any]] = {
    "outside": {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)},
    "inside": {"loc": "upper left", "bbox_to_anchor": (0.01, 0.84)},
    "below": {"loc": "upper center", "bbox_to_anchor": (0.5, -0.26), "ncols": 2},
}


def loss_curves(estimator: Any) -> dict[str, Curve]:
    """The `loss_curve_` of an estimator by iteration: one loss, or those of the start and of the clusters."""
    curve = list(estimator.loss_curve_)
    every = max(1, round(estimator.n_iter_ / max(len(curve), 1)))  # ManifoldLabeler records every fifth step
    places = [every * (i + 1) for i in range(len(curve))]
    n_iter_start = getattr(estimator, "n_iter_start_", estimator.n_iter_)
    if n_iter_start == estimator.n_iter_:
        return {"loss": (places, curve)}
    n = round(len(curve) * n_iter_start / estimator.n_iter_)
    return {"start": (places[:n], curve[:n]), "clusters": (places[n:], curve[n:])}


def _column(metrics: Sequence[Mapping[str, float]], name: str) -> Curve:
    lines = [line for line in metrics if name in line]
    return [line["step"] for line in lines], [line[name] for line in lines]
