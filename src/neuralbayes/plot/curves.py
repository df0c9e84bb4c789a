"""Curves of training: information or loss by update."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from neuralbayes.plot.style import Display, current_theme, literal, quiet_frame, state_color
from neuralbayes.system.files import read_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curve = tuple[Sequence[float], Sequence[float]]  # x and y values
LAYER = "mi/"  # prefix of the metrics of a layer's information
LEGENDS: dict[str, dict[str, Any]] = {
    "outside": {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)},
    "below": {"loc": "upper center", "bbox_to_anchor": (0.5, -0.26), "ncols": 2},
}


class CurvesDisplay(Display):
    """Curves by update or epoch, with optional upper bounds.

    Parameters
    ----------
    curves : mapping of str to (sequence of float, sequence of float)
        x and y values of each curve, by name.
    bounds : mapping of str to float, optional
        Upper bounds by name, drawn as dotted lines.
    title, xlabel, ylabel : str, optional

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
        self.curves, self.bounds = dict(curves), dict(bounds or {})
        if unknown := set(self.bounds) - set(self.curves):
            raise ValueError(f"`bounds` must have the names of `curves`, got {sorted(unknown)}")
        self.title, self.xlabel, self.ylabel = title, xlabel, ylabel

    @classmethod
    def from_run(
        cls, folder: str | Path, what: Literal["information", "loss"] = "loss", *, ax: Axes | None = None
    ) -> Self:
        """Draw the loss, or the information of each layer, from the folder of a run of :func:`neuralbayes.pretrain`."""
        from neuralbayes.training.run_folder import read_metrics

        if what not in ("information", "loss"):
            raise ValueError(f"`what` must be 'information' or 'loss', got {what!r}")
        folder = Path(folder)
        if not (folder / "metrics.jsonl").is_file():
            raise FileNotFoundError(f"`folder` must hold a run with its metrics.jsonl, got {folder}")
        metrics = read_metrics(folder / "metrics.jsonl")
        if what == "loss":
            return cls({"loss": _column(metrics, "loss")}, title="objective; lower is better").plot(ax=ax)
        layers = read_json(folder / "result.json").get("layers", {}) if (folder / "result.json").is_file() else {}
        bounds = {name: float(layer["bound"]) for name, layer in layers.items()}
        found = [name.removeprefix(LAYER) for line in metrics[:1] for name in line if name.startswith(LAYER)]
        curves = {name: _column(metrics, LAYER + name) for name in bounds or found}
        return cls(curves, bounds=bounds, title="I(x; z); dotted: its bound log K", ylabel="nats").plot(ax=ax)

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Axes | None = None) -> Self:
        """Draw the `loss_curve_` of a clusterer or of a :class:`neuralbayes.MIMEncoder`, by iteration."""
        losses, n_iter = list(estimator.loss_curve_), estimator.n_iter_
        every = max(1, round(n_iter / max(len(losses), 1)))  # ManifoldLabeler records every fifth step
        places = [every * (i + 1) for i in range(len(losses))]
        n_start = round(len(losses) * getattr(estimator, "n_iter_start_", 0) / max(n_iter, 1))
        curves: dict[str, Curve] = {"loss": (places, losses)}
        if 0 < n_start < len(losses):
            curves = {"start": (places[:n_start], losses[:n_start]), "clusters": (places[n_start:], losses[n_start:])}
        return cls(curves, title="objective; lower is better", xlabel="iterations").plot(ax=ax)

    def plot(self, *, ax: Axes | None = None, legend: Literal["outside", "below"] = "outside") -> Self:
        """Draw into `ax`, by default into a new figure, with the legend beside or below it; returns self."""
        ax = self._begin(ax)
        several = len(self.curves) > 1 or bool(self.bounds)
        for i, (name, (x, y)) in enumerate(self.curves.items()):
            color = state_color(i) if several else current_theme().muted
            label = f"{name}: {y[-1]:.2f} of {self.bounds[name]:.2f}" if name in self.bounds and len(y) else name
            marker = "o" if len(x) < 20 else ""  # a single point would be invisible
            ax.plot(x, y, color=color, linewidth=1.6, marker=marker, markersize=4, label=literal(label))
            if name in self.bounds:
                ax.axhline(self.bounds[name], color=color, linewidth=1.0, linestyle=(2 * i, (1, 4)))
        if self.bounds:
            ax.set_ylim(0.0, 1.06 * max(self.bounds.values()))
        ax.set_title(literal(self.title), loc="left", fontsize=10)
        ax.set(xlabel=self.xlabel, ylabel=self.ylabel)
        if several:
            ax.legend(frameon=False, fontsize=8, **LEGENDS[legend])
        quiet_frame(ax)
        return self


def _column(metrics: Sequence[Mapping[str, float]], name: str) -> Curve:
    lines = [line for line in metrics if name in line]
    return [line["step"] for line in lines], [line[name] for line in lines]
