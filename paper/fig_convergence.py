"""Figure 3: how fast a classifier learns on learnt and on random features."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import partial
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from paper import fig_ablation
from paper.cells import LAST, Cell
from paper.cells import settings as settings
from paper.claims import Claim, every
from paper.experiment import Picture
from paper.fig_ablation import TWO, of_mim, of_random, unit_of
from paper.pictures import draw_bands
from paper.protocol import Protocol
from paper.published import FIGURE_3
from paper.runs import Record, Results, Scale
from paper.statistics import difference, means, text
from paper.tables import Table

NAME = "fig-convergence"
TITLE = "Figure 3: accuracy against epochs of the classifier"
AT_FULL_SCALE = "that of figure 2"
ABOUT = "The classifiers of figure 2 with scaling, epoch by epoch. Bands show one standard deviation over runs."
Measure = Callable[[list[float]], float]
NEAR = 0.01
"""A curve has converged when it is within one point of its best value."""

PANELS: dict[Protocol, str] = {"validation": "validation images", "paper": "first 128 test images"}


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """The runs of figure 2 with scaling, and its random encoders."""
    every_run = fig_ablation.runs(scale, seeds)
    return [cell for cell in every_run if cell.method == "random" or cell.training["scales"] == TWO]


def tables(results: Results) -> list[Table]:
    return []  # the claims have the numbers


def pictures(results: Results) -> list[Picture]:
    arms = _arms(results)
    panels = {
        title: {name: 100 * _curves(records, protocol) for name, records in arms.items() if records}
        for protocol, title in PANELS.items()
    }
    return [Picture(NAME, TITLE, partial(draw_bands, panels, "epoch of the classifier", "accuracy, %"))]


def claims(results: Results) -> list[Claim]:
    starts, arrivals = (
        [_values(results, name, measure, "validation") for name in FIGURE_3] for measure in (itemgetter(0), _arrival)
    )
    run = all(starts)
    where = "caption of figure 3"
    return [
        Claim(
            "Features learned by Neural Bayes-MIM allow training to start at a much higher value",
            where,
            "accuracy after one epoch, learnt minus random, is above 0",
            every({"start": difference(*starts)} if run else {}),
            f"{text(starts[0])} and {text(starts[1])} % on validation images; published: about {FIGURE_3['MIM']:.0f} "
            f"and {FIGURE_3['random encoder']:.0f} %"
            if run
            else "",
        ),
        Claim(
            "and converge faster as opposed to a random encoder",
            where,
            "the first epoch within a point of the best of its curve is earlier on learnt features",
            every({"arrival": difference(arrivals[1], arrivals[0])} if run else {}),
            f"epoch {text(arrivals[0], factor=1)} and {text(arrivals[1], factor=1)} with random features, which reach "
            f"{text(_values(results, 'random encoder', max, 'validation'))} % at best"
            if run
            else "",
        ),
    ]


def _arms(results: Results) -> dict[str, list[Record]]:
    return dict(zip(FIGURE_3, (of_mim(results, TWO), of_random(results)), strict=True))


def _values(results: Results, name: str, measure: Measure, protocol: Protocol) -> list[float]:
    """One value for each draw of alpha and beta, or for each random encoder."""
    records = _arms(results)[name]

    def value(record: Record) -> float:
        curves: list[list[float]] = record.values["probes"][LAST][protocol]["curves"]
        return statistics.fmean(map(measure, curves))

    return list(means(records, unit_of, value).values()) if name == "MIM" else [value(record) for record in records]


def _arrival(curve: list[float]) -> float:
    """The first epoch, counted from 1, at which a curve is near its best value.

    Examples
    --------
    >>> _arrival([0.2, 0.495, 0.5, 0.48])
    2.0
    """
    return float(next(epoch for epoch, value in enumerate(curve, start=1) if value >= max(curve) - NEAR))


def _curves(records: Results, protocol: Protocol) -> NDArray[np.float64]:
    """All curves, cut to the length of the shortest: (n_curves, n_epochs)."""
    curves = [curve for record in records for curve in record.values["probes"][LAST][protocol]["curves"]]
    shortest = min(map(len, curves))
    return np.array([curve[:shortest] for curve in curves])


def not_run(results: Results) -> list[str]:
    return []  # figure 2 says it
