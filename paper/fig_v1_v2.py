"""Figure 7: version 1 against version 2 of the objective, for the draws of figure 2."""

from __future__ import annotations

from functools import partial

from paper import fig_ablation
from paper.accuracy import accuracies
from paper.cells import IMAGES, LAST, Cell, dead_share
from paper.cells import settings as settings
from paper.claims import Claim, every, listed
from paper.experiment import Picture
from paper.fig_ablation import TWO, arm_points, by_draw, draw_of, of_mim
from paper.pictures import draw_scatter
from paper.runs import Record, Results, Scale
from paper.statistics import estimate, paired, text
from paper.tables import Table

NAME = "fig-v1-v2"
TITLE = "Figure 7: version 1 against version 2"
AT_FULL_SCALE = "four days on two cores"
ABOUT = "The runs of figure 2 with scaling, and the same draws with version 1."
LAYERS = ("relu1", "relu2", "relu3", "relu4")


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """The draws of figure 2 with version 1, and the runs with version 2 of figure 2 itself."""
    return [
        IMAGES[scale].cell(experiment, seed, alpha=alpha, beta=beta, version=version, scales=TWO)
        for version, experiment in ((1, NAME), (2, fig_ablation.NAME))
        for seed, alpha, beta in fig_ablation.draws(scale, seeds)
    ]


def tables(results: Results) -> list[Table]:
    dead = [
        (name, *(text(list(by_draw(records, partial(dead_share, layer=layer)).values())) for layer in LAYERS))
        for name, records in _arms(results).items()
        if records
    ]
    return [Table("Dead states in %: p(z) below a tenth of 1/K", ("runs", *LAYERS), dead)]


def pictures(results: Results) -> list[Picture]:
    points = arm_points(_arms(results))
    return [Picture(NAME, f"{TITLE}; dotted: means", partial(draw_scatter, points, {}, "honest accuracy, %"))]


def claims(results: Results) -> list[Claim]:
    second, first = _arms(results).values()
    pairs = paired(by_draw(second), by_draw(first))
    gains = {"paired by draw": estimate(pairs)} if pairs else {}
    best = [f"{100 * max(accuracies(records, LAST)):.1f}" for records in (second, first) if records]
    return [
        Claim(
            "Neural Bayes-MIM-v2 has better average and best performance compared with Neural Bayes-MIM-v1",
            "appendix C.2, figure 7",
            "version 2 minus version 1, paired by draw, is above 0",
            every(gains),
            listed(gains),
            f"Best with version 2 and 1: {' and '.join(best)} %",
        )
    ]


def _arms(results: Results) -> dict[str, list[Record]]:
    """Version 2 and version 1, for the draws and seeds that both have."""
    arms = {"version 2": of_mim(results, TWO), "version 1": of_mim(results, TWO, version=1)}
    both = set.intersection(*({(r.seed, draw_of(r)) for r in records} for records in arms.values()))
    return {name: [r for r in records if (r.seed, draw_of(r)) in both] for name, records in arms.items()}


def not_run(results: Results) -> list[str]:
    return []  # figure 2 says it
