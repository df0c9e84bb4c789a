"""Figure 7: version 1 of MIM against version 2, over the draws of figure 2."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paper.cells import LAST, Cell, cell_cost, dead_share, run_cell
from paper.experiment import Experiment, Record, Results, Scale
from paper.fig_ablation import ARM_HEAD, SCALES, TWO, arm_points, arm_rows, of_mim, paired
from paper.protocols import accuracies
from paper.reproduced import draw_scatter
from paper.results_page import Claim, Table
from paper.statistics import Estimate, difference, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME, ABLATION = "fig-v1-v2", "fig-ablation"
LAYERS = ("relu1", "relu2", "relu3", "relu4")


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """The draws of figure 2 with version 1. The runs with version 2 are those of figure 2 itself."""
    config = SCALES[scale]
    return config.cells(NAME, seeds, version=1, scales=TWO) + config.cells(ABLATION, seeds, version=2, scales=TWO)


def tables(results: Results) -> list[Table]:
    arms = _arms(results)
    dead = [
        (name, *(text([dead_share(record, layer) for record in records]) for layer in LAYERS))
        for name, records in arms.items()
    ]
    return [
        Table("Accuracy on CIFAR-10 in %, over draws of alpha and beta", ARM_HEAD, arm_rows(arms)),
        Table("Dead states in %: p(z) below a tenth of 1/K", ("runs", *LAYERS), dead),
    ]


def draw(results: Results) -> Figure:
    return draw_scatter(arm_points(_arms(results)), {}, "honest accuracy, %")


def claims(results: Results) -> list[Claim]:
    second, first = _arms(results).values()
    gain = paired(second, first)
    better = dead = ""
    fewer: list[Estimate] = []
    if gain is not None:
        best = [100 * max(accuracies(records, LAST, "validation")) for records in (second, first)]
        better = f"{gain.text(sign=True)} points on average; best {best[0]:.1f} vs {best[1]:.1f} %"
        shares = [[dead_share(record) for record in records] for records in (first, second)]
        fewer = [difference(*shares)]
        every = [[_dead_everywhere(record) for record in records] for records in (second, first)]
        dead = (
            f"dead states in the last layer: {text(shares[1])} vs {text(shares[0])} %, "
            f"in all layers {text(every[0])} vs {text(every[1])} %"
        )
    where = "appendix C.2, figure 7"
    return [
        Claim(
            "Version 2 performs better than version 1",
            where,
            verdict([gain] if gain else []),
            better,
            power([gain] if gain else [], each=2),
        ),
        Claim(
            "Version 2 has fewer dead states than version 1",
            "appendix C.2, figure 5",
            verdict(fewer),
            dead,
            power(fewer),
        ),
    ]


def _dead_everywhere(record: Record) -> float:
    states = [record.values["states"][layer] for layer in LAYERS]
    return float(sum(layer["dead"] for layer in states) / sum(layer["states"] for layer in states))


def _arms(results: Results) -> dict[str, list[Record]]:
    return {"version 2": of_mim(results, TWO), "version 1": of_mim(results, TWO, version=1)}


EXPERIMENT = Experiment(
    name=NAME,
    title="Figure 7: version 1 against version 2",
    about=(
        "The runs of figure 2 with scaling, and the same draws of alpha and beta with version 1 of the objective. The "
        "prior term of version 1 has no gradient once one state has all of the mass. The paper shows a picture without "
        "numbers."
    ),
    runs=runs,
    run_one=run_cell,
    cost=cell_cost,
    tables=tables,
    draw=draw,
    claims=claims,
)
