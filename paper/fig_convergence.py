"""Figure 3: how fast a classifier learns on learnt and on random features."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import numpy as np
from neuralbayes.probes.protocol import Protocol
from numpy.typing import NDArray

from paper import fig_ablation
from paper.cells import LAST, Cell, cell_cost, run_cell
from paper.experiment import Experiment, Record, Results, Scale
from paper.fig_ablation import TWO, of_mim, of_random
from paper.reproduced import draw_bands
from paper.results_page import Claim, Table
from paper.statistics import difference, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "fig-convergence"

PAPER = {"MIM": 65.0, "random encoder": 47.0}
"""Approximate mean accuracy at the start, in percent, from the caption of figure 3."""

NEAR = 0.01
"""A curve has converged when it is within one point of its best value."""

NAMES: dict[Protocol, str] = {"validation": "validation images", "paper": "first 128 test images"}


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """The runs of figure 2 with scaling, and its random encoders."""
    every = fig_ablation.runs(scale, seeds)
    return [cell for cell in every if cell.method == "random" or cell.training["scales"] == TWO]


def tables(results: Results) -> list[Table]:
    rows = []
    for name, records in _arms(results).items():
        cells = []
        for protocol in ("paper", "validation"):
            starts = _starts(records, protocol)
            arrivals = _arrivals(records, protocol)
            cells += [text(starts), text(arrivals, factor=1)]
        rows.append((name, f"about {PAPER[name]:.0f}", *cells))
    return [
        Table(
            "Accuracy after the first epoch in %, and the first epoch within one point of the best accuracy",
            ("features", "published start", "start, on 128", "epoch, on 128", "start, validation", "epoch, validation"),
            rows,
        )
    ]


def draw(results: Results) -> Figure:
    panels = {
        title: {name: 100 * _curves(records, protocol) for name, records in _arms(results).items() if records}
        for protocol, title in NAMES.items()
    }
    return draw_bands(panels, "epoch of the classifier", "accuracy, %")


def claims(results: Results) -> list[Claim]:
    learnt, random = _arms(results).values()
    start = faster = []
    start_numbers = faster_numbers = ""
    if learnt and random:
        starts = [_starts(records, "validation") for records in (learnt, random)]
        arrivals = [_arrivals(records, "validation") for records in (random, learnt)]
        start, faster = [difference(*starts)], [difference(*arrivals)]
        start_numbers = (
            f"after one epoch {text(starts[0])} vs {text(starts[1])} % on the validation images; "
            f"published: about {PAPER['MIM']:.0f} vs {PAPER['random encoder']:.0f} %"
        )
        faster_numbers = (
            f"within one point of the best at epoch {text(arrivals[1], factor=1)}, with random features at epoch "
            f"{text(arrivals[0], factor=1)}"
        )
    where = "section 5.1.1, figure 3"
    return [
        Claim(
            "A classifier on learnt features starts at a much higher accuracy",
            where,
            verdict(start),
            start_numbers,
            power(start),
        ),
        Claim(
            "It converges faster than a classifier on random features",
            where,
            verdict(faster),
            faster_numbers,
            power(faster),
        ),
    ]


def _arms(results: Results) -> dict[str, list[Record]]:
    return {"MIM": of_mim(results, TWO), "random encoder": of_random(results)}


def _all_curves(record: Record, protocol: Protocol) -> list[list[float]]:
    curves: list[list[float]] = record.values["probes"][LAST][protocol]["curves"]
    return curves


def _curves(records: Results, protocol: Protocol) -> NDArray[np.float64]:
    """All curves, cut to the length of the shortest: (n_curves, n_epochs)."""
    curves = [curve for record in records for curve in _all_curves(record, protocol)]
    shortest = min(map(len, curves))
    return np.array([curve[:shortest] for curve in curves])


def _starts(records: Results, protocol: Protocol) -> list[float]:
    return [statistics.fmean(curve[0] for curve in _all_curves(record, protocol)) for record in records]


def _arrivals(records: Results, protocol: Protocol) -> list[float]:
    return [statistics.fmean(_arrival(curve) for curve in _all_curves(record, protocol)) for record in records]


def _arrival(curve: list[float]) -> int:
    """The first epoch, counted from 1, at which a curve is near its best value.

    Examples
    --------
    >>> _arrival([0.2, 0.495, 0.5, 0.48])
    2
    """
    return next(epoch for epoch, value in enumerate(curve, start=1) if value >= max(curve) - NEAR)


EXPERIMENT = Experiment(
    name=NAME,
    title="Figure 3: accuracy against epochs of the classifier",
    about=(
        "The classifiers on the scaled encoders of figure 2 and on its random encoders. The curves show the accuracy "
        "after each epoch on the validation images, up to the epoch where the first classifier stopped, and on the "
        "paper's 128 test images. The bands show one standard deviation over runs."
    ),
    runs=runs,
    run_one=run_cell,
    cost=cell_cost,
    tables=tables,
    draw=draw,
    claims=claims,
)
