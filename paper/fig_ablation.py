"""Figure 2: accuracy on CIFAR-10 for random draws of alpha and beta, with and without scaling of the hidden states."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paper.cells import IMAGES, LAST, Cell, ImageScale, cell_cost, run_cell
from paper.experiment import Experiment, Record, Results, Scale, by
from paper.protocols import accuracies, accuracy, both
from paper.reproduced import draw_scatter
from paper.results_page import Claim, Table
from paper.statistics import Estimate, difference, estimate, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "fig-ablation"

PAPER = {"random": 67.97, "random, lowest": 58.59, "best": 83.59}
"""Section 5.1.1 and the caption of figure 2, in percent: random encoders over 16 classifiers, and the best model."""

PAPER_BETA, PAPER_MAX_ALPHA, PAPER_MAX_BETA = 4.0, 10.0, 5.0
"""Beta of the paper's final table, and upper bounds of the draws of alpha and beta (section 5.1.1)."""

ONE, TWO = (1,), (1, 2)
"""Without scaling, and with states pooled by 2 as well."""


@dataclass(frozen=True)
class AblationScale:
    """Number of draws of (alpha, beta) at one scale.

    Attributes
    ----------
    images : ImageScale
    both, no_alpha, no_beta : int
        Number of draws of both, of draws with alpha = 0, and of draws with beta = 0.
    baselines : int
        Number of random encoders.
    """

    images: ImageScale
    both: int
    no_alpha: int
    no_beta: int
    baselines: int

    def draws(self) -> list[tuple[float, float]]:
        """Draw (alpha, beta), the same for all compared runs. The interval of beta grows with the beta of the scale."""
        rng = np.random.default_rng(0)
        n = self.both + self.no_alpha + self.no_beta
        alpha = rng.uniform(0.0, PAPER_MAX_ALPHA, n).round(3)
        beta = rng.uniform(0.0, PAPER_MAX_BETA * self.images.training["beta"] / PAPER_BETA, n).round(4)
        alpha[self.both : self.both + self.no_alpha] = 0.0
        beta[self.both + self.no_alpha :] = 0.0
        return list(zip(alpha.tolist(), beta.tolist(), strict=True))

    def cells(self, experiment: str, seeds: int | None, **changes: Any) -> list[Cell]:
        """One run per draw and seed. Runs of the same draw start from the same weights."""
        return [
            self.images.cell(experiment, 1000 * seed + i, alpha=alpha, beta=beta, **changes)
            for seed in range(1 if seeds is None else seeds)
            for i, (alpha, beta) in enumerate(self.draws())
        ]


SCALES: dict[Scale, AblationScale] = {
    "smoke": AblationScale(IMAGES["smoke"], 2, 1, 1, 2),
    "laptop": AblationScale(IMAGES["laptop"], 8, 4, 4, 4),
    "paper": AblationScale(IMAGES["paper"], 32, 5, 5, 16),
}


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """All draws with and without scaling, and random encoders."""
    config = SCALES[scale]
    learnt = [cell for scales in (ONE, TWO) for cell in config.cells(NAME, seeds, version=2, scales=scales)]
    return learnt + [config.images.cell(NAME, seed, "random", batch_norm=True) for seed in range(config.baselines)]


def of_mim(results: Results, scales: tuple[int, ...], version: int = 2) -> list[Record]:
    """The runs of MIM with these scales and this version, sorted by draw."""
    chosen = [
        record
        for record in results
        if record.settings["method"] == "mim"
        and tuple(record.settings["training"]["scales"]) == scales
        and record.settings["training"]["version"] == version
    ]
    return sorted(chosen, key=lambda record: int(record.settings["seed"]))


def of_random(results: Results) -> list[Record]:
    """The random encoders."""
    return [record for record in results if record.settings["method"] == "random"]


def paired(a: Results, b: Results) -> Estimate | None:
    """Mean gain of `a` over `b` in honest accuracy, over the draws in both; None if they share none."""
    first, second = ({r.settings["seed"]: accuracy(r, LAST, "validation") for r in results} for results in (a, b))
    gains = [value - second[seed] for seed, value in first.items() if seed in second]
    return estimate(gains) if gains else None


def arm_rows(arms: dict[str, list[Record]]) -> list[tuple[str, ...]]:
    """Mean and best accuracy of each arm under both protocols."""
    rows = []
    for name, records in arms.items():
        mean_paper, mean_honest = both(records, LAST)
        best = [
            f"{100 * max(accuracies(records, LAST, protocol)):.1f}" if records else "-"
            for protocol in ("paper", "validation")
        ]
        rows.append((name, str(len(records)), mean_paper, mean_honest, *best))
    return rows


ARM_HEAD = ("runs", "number", "mean, paper's protocol", "mean, honest", "best, paper's protocol", "best, honest")


def arm_points(arms: dict[str, list[Record]]) -> dict[str, dict[str, list[tuple[float, float]]]]:
    """Honest accuracy in percent against alpha and against beta."""
    return {
        name: {
            arm: [(record.settings["training"][name], 100 * accuracy(record, LAST, "validation")) for record in records]
            for arm, records in arms.items()
        }
        for name in ("alpha", "beta")
    }


def tables(results: Results) -> list[Table]:
    arms = _arms(results) | {"random encoder": of_random(results)}
    published = (
        f"Published: {PAPER['best']} % for the best of all runs, {PAPER['random, lowest']} to {PAPER['random']} % for "
        "random encoders over 16 classifiers. The paper shows the means only in figure 2."
    )
    return [Table("Accuracy on CIFAR-10 in %, over draws of alpha and beta", ARM_HEAD, arm_rows(arms), published)]


def draw(results: Results) -> Figure:
    random = accuracies(of_random(results), LAST, "validation")
    lines = {"random encoder": 100 * estimate(random).mean} if random else {}
    return draw_scatter(arm_points(_arms(results)), lines, "honest accuracy, %")


def claims(results: Results) -> list[Claim]:
    learnt, random = [record for arm in _arms(results).values() for record in arm], of_random(results)
    gains = {
        "alpha is important: performance is worse without it": _without(learnt, "alpha", "beta"),
        "beta is especially important: performance is worse without it": _without(learnt, "beta", "alpha"),
        "Applying the objective at several scales improves the average performance": paired(*_arms(results).values()),
        "Learnt features beat the features of a random encoder": _difference(learnt, random),
    }
    best = ""
    if learnt and random:
        honest = accuracies(learnt, LAST, "validation")
        best = f"; best run {100 * max(honest):.1f}, random {text(accuracies(random, LAST, 'validation'))} %"
    return [
        Claim(
            statement,
            "section 5.1.1, figure 2",
            verdict([gain] if gain else []),
            f"{gain.text(sign=True)} points{best if 'random' in statement else ''}" if gain else "",
            power([gain] if gain else [], each=2),  # each draw with and without scaling
        )
        for statement, gain in gains.items()
    ]


def _arms(results: Results) -> dict[str, list[Record]]:
    return {"scaled by 1 and 2": of_mim(results, TWO), "no scaling": of_mim(results, ONE)}


def _without(results: Results, name: str, other: str) -> Estimate | None:
    """Mean gain of runs where `name` is positive over runs where it is 0; `other` is positive in both."""
    fair = [record for record in results if record.settings["training"][other] > 0]
    positive, zero = ([r for r in fair if (r.settings["training"][name] > 0) == wanted] for wanted in (True, False))
    return _difference(positive, zero)


def _difference(a: Results, b: Results) -> Estimate | None:
    """Difference in honest accuracy, with one value per draw: its mean with and without scaling."""
    if not a or not b:
        return None
    draws = [by(results, lambda record: record.settings["seed"]).values() for results in (a, b)]
    return difference(*([statistics.fmean(accuracies(d, LAST, "validation")) for d in drawn] for drawn in draws))


EXPERIMENT = Experiment(
    name=NAME,
    title="Figure 2: alpha, beta and scaling",
    about=(
        "We train MIM on CIFAR-10 with random draws of alpha and beta; some draws have alpha = 0 and some beta = 0. "
        "Each draw is trained with and without scaling. The interval of beta is scaled down with the encoder, because "
        "the paper's interval is too large for a narrow one. Our random encoders differ in their seed; the paper's "
        "differ in the settings of the classifier."
    ),
    runs=runs,
    run_one=run_cell,
    cost=cell_cost,
    tables=tables,
    draw=draw,
    claims=claims,
)
