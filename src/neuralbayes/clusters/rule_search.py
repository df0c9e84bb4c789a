"""Search rules: which bins of which columns set a cluster apart from the rest.

Given the other conditions of a rule, the search finds the best interval of a column, or the best set of values of a
category, exactly. Cumulative counts compare all intervals. For a category, the best set is a prefix of its values in
the order of their share of the cluster. A beam search adds conditions; then each condition is optimised again while
the others are fixed, until F1 stops improving.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from neuralbayes.clusters.cells import Column

BEAM = 6
"""Number of rules to keep at each length."""

MAX_VALUES = 4
"""Maximum number of values of a category that a condition names or excludes."""

ROUNDS = 4
"""Maximum number of passes that optimise all conditions again."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Draft:
    """A rule in bins: conditions, each a column and its allowed bins, and how many of them must hold."""

    parts: tuple[tuple[int, Mask], ...]
    needed: int
    f1: float


class RuleSearch:
    """Search rules, one cluster at a time.

    Parameters
    ----------
    columns : sequence of Column
        Columns of numbers, dates and categories, not text.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns
        sizes = [column.n_bins + 1 for column in columns]
        self.starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.bins = np.stack([column.bins for column in columns], axis=1)
        self._flat = self.bins + self.starts[:-1]

    def by_length(self, members: Mask, n_conditions: int) -> list[Draft]:
        """The rules with the highest F1 for `members` with 1, 2, ... conditions, all of which must hold."""
        beam = self._extended(Draft((), 0, 0.0), members)
        best = [beam[0]]
        while len(best) < min(n_conditions, len(self.columns)):
            longer = [found for draft in beam for found in self._extended(draft, members)]
            longer.sort(key=lambda draft: -draft.f1)
            beam = sorted((self._improved(draft, members) for draft in longer[:BEAM]), key=lambda draft: -draft.f1)
            best.append(beam[0])
        return best

    def some_of(self, starts: Sequence[Draft], members: Mask, n_conditions: int) -> list[Draft]:
        """Rules with only some conditions required, optimised from `starts` and from the best single conditions."""
        single = [draft.parts[0] for draft in self._extended(Draft((), 0, 0.0), members)]
        parts = [draft.parts for draft in starts] + [tuple(single[:n]) for n in range(2, n_conditions + 1)]
        return [self._improved(Draft(p, needed, -1.0), members) for p in parts for needed in range(1, len(p))]

    def _holds(self, part: tuple[int, Mask]) -> Mask:
        return np.asarray(part[1][self.bins[:, part[0]]])

    def _extended(self, draft: Draft, members: Mask) -> list[Draft]:
        """Add one condition on a column that the rule does not use yet; returns the best rules first."""
        within = np.ones(len(members), bool)
        for part in draft.parts:
            within &= self._holds(part)
        taken = {column for column, _ in draft.parts}
        found = self._conditions(within, members, np.zeros(len(members), bool))
        found = [(f1, part) for f1, part in found if part[0] not in taken]
        found.sort(key=lambda scored: -scored[0])
        return [Draft((*draft.parts, part), len(draft.parts) + 1, f1) for f1, part in found[:BEAM]]

    def _improved(self, draft: Draft, members: Mask) -> Draft:
        """Optimise each condition with the others fixed, until F1 stops improving."""
        parts, best = list(draft.parts), draft.f1
        for _ in range(ROUNDS):
            before = best
            for i in range(len(parts)):
                others = [self._holds(part) for j, part in enumerate(parts) if j != i]
                counts = np.sum(others, axis=0) if others else np.zeros(len(members), int)
                found = self._conditions(counts == draft.needed - 1, members, counts >= draft.needed)
                taken = {part[0] for j, part in enumerate(parts) if j != i}
                f1, part = max((one for one in found if one[1][0] not in taken), key=lambda scored: scored[0])
                if f1 > best + 1e-9:
                    parts[i], best = part, f1
            if best <= before + 1e-9:
                break
        return Draft(tuple(parts), draft.needed, best)

    def _conditions(self, undecided: Mask, members: Mask, inside: Mask) -> list[tuple[float, tuple[int, Mask]]]:
        """The best condition of each column on the `undecided` rows, with F1 of the whole rule.

        Rows `inside` satisfy the rule already; rows in neither mask cannot satisfy it.
        """
        n = self.starts[-1]
        hits = np.bincount(self._flat[undecided & members].ravel(), minlength=n)
        misses = np.bincount(self._flat[undecided & ~members].ravel(), minlength=n)
        right, claimed, wanted = (inside & members).sum(), inside.sum(), members.sum()
        found = []
        for j, column in enumerate(self.columns):
            own = slice(self.starts[j], self.starts[j + 1])
            best = _best_interval if column.ordered else _best_values
            f1, allowed = best(hits[own], misses[own], float(right), float(claimed + wanted))
            found.append((f1, (j, allowed)))
        return found


def _best_interval(
    hits: NDArray[np.int64], misses: NDArray[np.int64], right: float, total: float
) -> tuple[float, Mask]:
    """The best interval of bins, or the bin of missing cells; counts have shape (n_bins + 1,)."""
    n = len(hits) - 1
    ends = np.concatenate([[0], np.cumsum(hits[:n])]), np.concatenate([[0], np.cumsum((hits + misses)[:n])])
    inside, size = (end[None, 1:] - end[:-1, None] for end in ends)  # [first, last]
    f1 = np.where(np.tri(n, k=-1, dtype=bool), -1.0, 2.0 * (right + inside) / np.maximum(total + size, 1.0))
    first, last = np.unravel_index(int(f1.argmax()), f1.shape)
    allowed = np.zeros(n + 1, bool)
    allowed[first : last + 1] = True
    best = float(f1[first, last])
    missing = 2.0 * (right + hits[n]) / (total + hits[n] + misses[n])
    if missing > best:
        allowed = ~np.ones(n + 1, bool)
        allowed[n] = True
        best = float(missing)
    return best, allowed


def _best_values(hits: NDArray[np.int64], misses: NDArray[np.int64], right: float, total: float) -> tuple[float, Mask]:
    """The best set of values, including missing, that names few values or excludes few."""
    size = hits + misses
    order = np.argsort(-hits / np.maximum(size, 1), kind="stable")
    inside, taken = np.cumsum(hits[order]), np.cumsum(size[order])
    f1 = 2.0 * (right + inside) / (total + taken)
    n = np.arange(1, len(hits) + 1)
    n_there = int((size > 0).sum())
    f1[(n > MAX_VALUES) & (n < n_there - MAX_VALUES)] = -1.0
    best = int(f1.argmax())
    allowed = np.zeros(len(hits), bool)
    allowed[order[: best + 1]] = True
    return float(f1[best]), allowed
