"""The course of training, as pictures and a table."""

from __future__ import annotations

import math
from typing import Any

from neuralbayes.plot.curves import LAYER, CurvesDisplay, loss_curves
from neuralbayes.plot.information import InformationDisplay
from neuralbayes.report.explorer.figures import Picture, drawn
from neuralbayes.report.explorer.side import Grid, Layer


def information_grid(layers: list[Layer]) -> Grid:
    """Information and dead states of each layer, as a table."""
    rows = [
        (
            layer.name,
            f"{layer.n_states:,}",
            "unknown" if layer.information is None else f"{layer.information:.3f}",
            f"{layer.bound:.3f}",
            "" if layer.information is None else f"{100 * layer.information / layer.bound:.0f} %",
            f"{int(layer.dead.sum()):,}",
        )
        for layer in layers
    ]
    n = layers[-1].n_informed
    return Grid(
        "Information of each layer",
        ("layer", "states", "nats", "log K", "share", "dead"),
        rows,
        f"I(x; z) in nats, its bound log K, and its share of that. Measured on {n:,} samples, which can show at most "
        f"log {n:,} = {math.log(max(n, 1)):.2f} nats. Dead states are counted on the samples in this page.",
    )


def training_pictures(layers: list[Layer], metrics: list[dict[str, float]]) -> list[Picture]:
    """Pictures of the information per layer, and of its course and that of the loss."""
    known = {layer.name: layer.information for layer in layers if layer.information is not None}
    bounds = {layer.name: layer.bound for layer in layers if layer.information is not None}
    pictures = []
    if known:
        words = "; ".join(f"{name} {value:.2f} of {bounds[name]:.2f}" for name, value in known.items())
        pictures.append(
            drawn(
                "Information of each layer",
                f"I(x; z) in nats of each layer against its bound log K: {words}.",
                lambda ax: _untitled(InformationDisplay(known, bounds).plot(ax=ax)),
            )
        )
    if any(name.startswith(LAYER) for line in metrics[:1] for name in line):
        last = metrics[-1]
        words = ", ".join(f"{name} {last[LAYER + name]:.2f}" for name in known if LAYER + name in last)
        pictures.append(
            drawn(
                "Information while training",
                f"I(x; z) in nats of each layer against updates, on a few watched images. At the end: {words}.",
                lambda ax: _untitled(
                    CurvesDisplay.from_metrics(metrics, "information", bounds=bounds, ax=ax, legend="below")
                ),
            )
        )
    losses = [line["loss"] for line in metrics if "loss" in line]
    if losses:
        pictures.append(
            drawn(
                "Loss while training",
                f"The objective against updates: from {losses[0]:.3f} to {losses[-1]:.3f}, at least {min(losses):.3f}.",
                lambda ax: _untitled(CurvesDisplay.from_metrics(metrics, ax=ax)),
            )
        )
    return pictures


def loss_pictures(estimator: Any) -> list[Picture]:
    """The loss curve of an estimator, if it has more than one point."""
    if len(estimator.loss_curve_) < 2:
        return []
    curves = loss_curves(estimator)
    words = (
        f"{'' if name == 'loss' else f'of the {name} '}from {curve[0]:.4f} to {curve[-1]:.4f}"
        for name, (_, curve) in curves.items()
    )
    return [
        drawn(
            "Loss while training",
            f"The objective: {', '.join(words)}.",
            lambda ax: _untitled(CurvesDisplay.from_estimator(estimator, ax=ax)),
        )
    ]


def _untitled(display: Any) -> None:
    """Remove the title, which the page shows as a heading."""
    display.ax_.set_title("", loc="left")
