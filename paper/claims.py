"""Claims in the paper's own words, and the rules that give a verdict on each from what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from scipy.stats import binomtest

from paper.statistics import Estimate

Verdict = Literal["holds", "holds in part", "reversed", "undecided", "does not hold here", "not run"]

VERDICTS: dict[Verdict, str] = {
    "holds": "every condition of its rule is met",
    "holds in part": "some conditions are met",
    "reversed": "most differences are significant, but in the opposite direction",
    "undecided": "intervals contain both answers, or there are fewer than three runs",
    "does not hold here": "clearly short of the claim",
    "not run": "nothing in the records is about it",
}

LEAST = 3
"""Independent runs that a claim needs to hold."""


@dataclass(frozen=True)
class Claim:
    """A claim of the paper and what the records say."""

    words: str
    where: str
    rule: str
    verdict: Verdict
    numbers: str = ""
    note: str = ""

    @property
    def measured(self) -> str:
        """The numbers, and the note if there are any."""
        return f"{self.numbers}. {self.note}" if self.numbers and self.note else self.numbers


def every(differences: Mapping[str, Estimate], *, least: float = 0.0, short: Verdict = "reversed") -> Verdict:
    """The verdict on a claim that all differences are above `least`; if most lie below, it is `short`.

    Differences of fewer than three independent runs are not judged.

    Examples
    --------
    >>> up, unsure, down = Estimate(0.1, 0.05, 3), Estimate(0.1, 0.2, 3), Estimate(-0.1, 0.05, 3)
    >>> every({"a": up}), every({"a": up, "b": down}), every({"a": unsure}), every({"a": down}), every({})
    ('holds', 'holds in part', 'undecided', 'reversed', 'not run')
    >>> few = Estimate(0.9, 0.01, 2)
    >>> every({"a": few}), every({"a": few, "b": up})
    ('undecided', 'holds')
    """
    n, above, below = _sides(differences, least)
    if above:
        return "holds" if above == n else "holds in part"
    if not differences:
        return "not run"
    return short if 2 * below > n else "undecided"


def most(differences: Mapping[str, Estimate]) -> Verdict:
    """The verdict on a claim that most differences are positive.

    Examples
    --------
    >>> up, unsure, down = Estimate(0.1, 0.05, 3), Estimate(0.1, 0.2, 3), Estimate(-0.1, 0.05, 3)
    >>> most({"a": up, "b": up, "c": down}), most({"a": unsure, "b": down, "c": down}), most({"a": up, "b": down})
    ('holds', 'reversed', 'undecided')
    """
    n, above, below = _sides(differences, 0.0)
    if not differences:
        return "not run"
    return "holds" if 2 * above > n else "reversed" if 2 * below > n else "undecided"


def labelled(counts: Mapping[str, tuple[int, int]], share: float, expected: int) -> Verdict:
    """The verdict on a claim that each of `expected` sets is labelled without error: by at least a `share` of seeds.

    `counts` has the seeds that did so and all seeds. A set fails if Wilson's 95 % interval lies below the share.

    Examples
    --------
    >>> labelled({"a": (19, 20), "b": (20, 20)}, 0.9, 2), labelled({"a": (19, 20), "b": (8, 20)}, 0.9, 2)
    ('holds', 'holds in part')
    >>> labelled({"a": (8, 20)}, 0.9, 1), labelled({"a": (17, 20)}, 0.9, 1), labelled({"a": (2, 2)}, 0.9, 1)
    ('does not hold here', 'undecided', 'undecided')
    """
    counts = {name: (count, n) for name, (count, n) in counts.items() if n}
    if not counts:
        return "not run"
    solved = sum(n >= LEAST and count >= share * n for count, n in counts.values())
    highest = [(binomtest(count, n).proportion_ci(method="wilson").high, n) for count, n in counts.values()]
    failed = sum(n >= LEAST and high < share for high, n in highest)
    if solved:
        return "holds" if solved == expected else "holds in part"
    return "does not hold here" if failed == len(counts) else "undecided"


def listed(differences: Mapping[str, Estimate], what: str = "points", digits: int = 1, factor: float = 100.0) -> str:
    """Differences with their numbers of independent runs, for the numbers of a claim.

    Examples
    --------
    >>> listed({"batch 50": Estimate(0.103, 0.063, 3), "batch 250": Estimate(0.08, 0.02, 3)})
    'points (n = 3): batch 50: +10.3 ± 6.3; batch 250: +8.0 ± 2.0'
    >>> listed({"batch 50": Estimate(0.103, 0.063, 3), "batch 250": Estimate(0.08, None, 1)})
    'points: batch 50: +10.3 ± 6.3 (n = 3); batch 250: +8.0 (n = 1)'
    """
    counts = {d.n for d in differences.values()}
    found = "; ".join(
        f"{name}: {d.text(digits, factor, sign=True)}{f' (n = {d.n})' if len(counts) > 1 else ''}"
        for name, d in differences.items()
    )
    return f"{what}{f' (n = {counts.pop()})' if len(counts) == 1 else ''}: {found}" if found else ""


def _sides(differences: Mapping[str, Estimate], least: float) -> tuple[int, int, int]:
    """How many differences are of enough runs, how many of these significantly above `least`, and how many below."""
    judged = [(d.mean - least, d.half) for d in differences.values() if d.half is not None and d.n >= LEAST]
    return len(judged), sum(mean > half for mean, half in judged), sum(-mean > half for mean, half in judged)
