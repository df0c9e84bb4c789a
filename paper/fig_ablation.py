"""Figure 2: accuracy on CIFAR-10 for random draws of alpha and beta, with and without scaling of the hidden states."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from paper.accuracy import accuracies, accuracy
from paper.cells import IMAGES, LAST, Cell
from paper.cells import settings as settings
from paper.claims import Claim, Verdict, every, listed
from paper.experiment import Picture
from paper.pictures import Point, draw_scatter
from paper.published import FIGURE_2
from paper.runs import Record, Results, Scale
from paper.statistics import Estimate, difference, estimate, means, paired
from paper.tables import Table

NAME = "fig-ablation"
TITLE = "Figure 2: alpha, beta and scaling"
AT_FULL_SCALE = "four days on two cores"
ABOUT = (
    "Random draws of alpha and beta, with the range of beta scaled down with the encoder. The first runs repeated 16 "
    "draws, some of them more often after a look at the results, so intervals are over draws."
)
ONE, TWO = (1,), (1, 2)
"""Without scaling, and with states pooled by 2 as well."""

MAX_ALPHA, MAX_BETA, PAPER_BETA = 10.0, 5.0, 4.0
"""Upper bounds of the paper's draws, and its beta of table 1, relative to which the bound of beta is scaled."""

FRESH = 10_000
"""First seed of a draw of its own. Smaller seeds in the records repeat 16 draws: 8 of both, 4 without alpha, 4 without
beta; the repeats of a draw count as one value."""

ENOUGH = 8
"""Draws of their own from which these decide on alpha and beta alone: those of scale "laptop"."""

SEEDS: dict[Scale, tuple[int, int]] = {"smoke": (2, 2), "laptop": (ENOUGH, 4), "paper": (32, 16)}
"""Draws and random encoders at each scale."""


def draws(scale: Scale, seeds: int | None) -> list[tuple[int, float, float]]:
    """Seed, alpha and beta of each draw. The interval of beta grows with the beta of the scale."""
    middle, found = float(IMAGES[scale].training["beta"]), []
    for seed in range(SEEDS[scale][0] if seeds is None else seeds):
        rng = np.random.default_rng([2, seed])
        alpha, beta = rng.uniform(0.0, MAX_ALPHA), rng.uniform(0.0, MAX_BETA * middle / PAPER_BETA)
        found.append((FRESH + seed, round(float(alpha), 3), round(float(beta), 4)))
    return found


def random_encoders(scale: Scale) -> list[Cell]:
    """The random encoders of a scale."""
    return [IMAGES[scale].cell(NAME, seed, "random", batch_norm=True) for seed in range(SEEDS[scale][1])]


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """Each draw with both, without alpha and without beta, and without scaling with both and with neither."""
    learnt = [
        IMAGES[scale].cell(NAME, seed, alpha=a, beta=b, version=2, scales=scales)
        for seed, alpha, beta in draws(scale, seeds)
        for a, b, scales in (
            (alpha, beta, TWO),
            (0.0, beta, TWO),
            (alpha, 0.0, TWO),
            (alpha, beta, ONE),
            (0.0, 0.0, ONE),
        )
    ]
    return learnt + random_encoders(scale)


def of_mim(results: Results, scales: tuple[int, ...], version: int = 2) -> list[Record]:
    """The runs of MIM with these scales and this version."""
    trained = [(record, record.settings["training"]) for record in results if record.settings["method"] == "mim"]
    return [r for r, t in trained if tuple(t["scales"]) == scales and t["version"] == version]


def of_random(results: Results) -> list[Record]:
    """The random encoders."""
    return [record for record in results if record.settings["method"] == "random"]


def draw_of(record: Record) -> tuple[float, float]:
    """Alpha and beta, by which repeats of a draw are one."""
    return record.settings["training"]["alpha"], record.settings["training"]["beta"]


def unit_of(record: Record) -> Any:
    """The draw; all arms of a draw of its own, which start from the same weights, are one."""
    return record.seed if record.seed >= FRESH else draw_of(record)


def by_draw(results: Results, value: Callable[[Record], float] = lambda r: accuracy(r, LAST)) -> dict[Any, float]:
    """Mean of each draw, by default of the honest accuracy."""
    return means(results, draw_of, value)


def arm_rows(arms: dict[str, list[Record]]) -> list[tuple[str, ...]]:
    """Mean and best accuracy of each arm under both protocols; the interval is over draws."""
    rows = []
    for name, records in arms.items():
        unit = (lambda r: r.seed) if name == "random encoder" else unit_of
        cells = []
        for protocol in ("paper", "validation"):
            one_each = list(means(records, unit, partial(accuracy, layer=LAST, protocol=protocol)).values())
            cells += [estimate(one_each).text(), f"{100 * max(accuracies(records, LAST, protocol)):.1f}"]
        rows.append((name, f"{len(records)} of {len({unit(r) for r in records})}", *cells))
    return rows


ARM_HEAD = ("runs", "runs, of draws", "mean, paper's protocol", "best", "mean, honest", "best")


def arm_points(arms: dict[str, list[Record]]) -> dict[str, dict[str, list[Point]]]:
    """Honest accuracy in percent against alpha and against beta."""
    return {
        name: {arm: [(draw_of(r)[i], 100 * accuracy(r, LAST)) for r in records] for arm, records in arms.items()}
        for i, name in enumerate(("alpha", "beta"))
    }


def tables(results: Results) -> list[Table]:
    arms = {name: found for name, found in (_arms(results) | {"random encoder": of_random(results)}).items() if found}
    note = (
        f"Published, under the paper's protocol: {FIGURE_2['best']} % for the best of all runs, "
        f"{FIGURE_2['random, lowest']} to {FIGURE_2['random']} % for random encoders over 16 classifiers."
    )
    return [Table("Accuracy in %, over draws of alpha and beta", ARM_HEAD, arm_rows(arms), note)]


def pictures(results: Results) -> list[Picture]:
    random = accuracies(of_random(results), LAST)
    lines = {"random encoder": 100 * estimate(random).mean} if random else {}
    points = arm_points(_arms(results))
    return [Picture(NAME, f"{TITLE}; dotted: means", partial(draw_scatter, points, lines, "honest accuracy, %"))]


def claims(results: Results) -> list[Claim]:
    scaled, plain = _arms(results).values()
    neither = [accuracy(r, LAST) for r in plain if draw_of(r) == (0.0, 0.0)]
    gains = {
        name: difference(list(by_draw(both_positive).values()), neither)
        for name, records in (("both and scaling", scaled), ("both without scaling", plain))
        if neither and (both_positive := [r for r in records if min(draw_of(r)) > 0])
    }
    pairs = paired(by_draw(scaled), by_draw(plain))
    scaling = {"paired by draw": estimate(pairs)} if pairs else {}
    where = "section 5.1.1, figure 2"
    rule = "{0} > 0 minus {0} = 0, with {1} > 0 in both, is above 0 over draws"
    found = []
    for i, (words, name, other) in enumerate(
        (
            ("both the hyper-parameters α and […] play an important role in the quality of representations", "α", "β"),
            ("[…] and especially β play an important role in the quality of representations", "β", "α"),
        )
    ):
        verdict, numbers = _effect(scaled, plain, i)
        found.append(Claim(words, where, rule.format(name, other), verdict, numbers))
    best = [f"{100 * max(accuracies(records, LAST)):.1f}" for records in (scaled, plain) if records]
    return [
        *found,
        Claim(
            "performance is significantly worse when α=β=0 and no scaling is used",
            "caption of figure 2",
            "draws of both minus runs with neither are above 0, with and without scaling",
            every(gains),
            listed(gains),
        ),
        Claim(
            "applying Neural Bayes-MIM at different scales of the network states significantly improves the average "
            "and best performance",
            where,
            "with scaling minus without, paired by draw, is above 0",
            every(scaling),
            listed(scaling),
            f"Best with scaling and without: {' and '.join(best)} %. Scaling changes the argument of R_c, too",
        ),
    ]


def not_run(results: Results) -> list[str]:
    learnt = of_mim(results, TWO) + of_mim(results, ONE)
    missing = ["figure 2's random encoders over 16 settings of the classifier"]
    if not any(r.settings["training"]["encoder"] == "paper" for r in learnt):
        missing.append("figures 2, 3 and 7 with the paper's encoder and settings")
    fresh = len({r.seed for r in learnt if r.seed >= FRESH})
    if fresh < ENOUGH:
        missing.append(f"figure 2 with {ENOUGH} new draws ({fresh} so far)")
    return missing


def _effect(scaled: list[Record], plain: list[Record], i: int) -> tuple[Verdict, str]:
    """The verdict on alpha (i = 0) or beta (i = 1), and the differences behind it."""
    found: dict[str, Estimate] = {}
    with_it, without = _with_and_without([r for r in scaled + plain if r.seed < FRESH], i)
    if with_it and without:
        found["16 draws"] = difference(list(by_draw(with_it).values()), list(by_draw(without).values()))
    own = _with_and_without([r for r in scaled if r.seed >= FRESH], i)
    pairs = paired(*({r.seed: accuracy(r, LAST) for r in arm} for arm in own))
    if pairs:
        found["own draws"] = estimate(pairs)
    deciding = "16 draws" if "16 draws" in found and len(pairs) < ENOUGH else "own draws"
    return every({deciding: found[deciding]} if found else {}), listed(found)


def _with_and_without(records: list[Record], i: int) -> tuple[list[Record], list[Record]]:
    """Runs with a positive alpha (i = 0) or beta (i = 1), and runs where it is 0, with the other positive in both."""
    fair = [record for record in records if draw_of(record)[1 - i] > 0]
    return [r for r in fair if draw_of(r)[i] > 0], [r for r in fair if draw_of(r)[i] == 0]


def _arms(results: Results) -> dict[str, list[Record]]:
    return {"scaled by 1 and 2": of_mim(results, TWO), "no scaling": of_mim(results, ONE)}
