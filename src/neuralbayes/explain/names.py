"""Names that cannot be false: up to three checked claims, which together tell a cluster from the rest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from neuralbayes.explain.claims import MOST, Checked, Claim, Part, strongest
from neuralbayes.explain.columns import Cells, membership_information
from neuralbayes.explain.conditions import Mask
from neuralbayes.explain.prototypes import at_most

LARGE, SMALL = 0.25, 0.05
"""Minimum difference between the shares of members and of other rows: of a claim in a name, and of a claim that only
tells a cluster from those with the same name."""

ENOUGH, BETTER = 0.6, 1.05
"""Share of the entropy of membership that a name should explain, and minimum gain, as a factor, of one more claim."""

LONGEST, N_CONSIDERED = 3, 12
"""Maximum number of claims in a name, not counting one for siblings, and of claims to choose them from."""

MAX_ROWS = 10_000
"""Maximum number of rows, drawn at random, to count which claims hold together."""

NOTHING, TOO_FEW, FEW = "nothing stands out", "too few rows to name", 10
"""Names of clusters without a claim, and the number of rows below which no claim about numbers can be checked."""


def name_clusters(checked: Checked) -> list[tuple[str, list[Claim]]]:
    """A name for each cluster, different from the others, and the claims that it makes, the strongest first.

    Examples
    --------
    >>> import pandas as pd
    >>> from neuralbayes.explain.claims import check_claims
    >>> from neuralbayes.explain.columns import as_cells
    >>> checked = check_claims(as_cells(pd.DataFrame({"mass_kg": np.arange(90) / 4})), np.arange(90) // 30, 3)
    >>> [name for name, claims in name_clusters(checked)]
    ['low mass', 'medium mass', 'high mass']
    """
    parts, choice, check = checked.parts, checked.choice, checked.check
    told = checked.told(LARGE, MOST)
    rows = at_most(np.flatnonzero(checked.chooses), MAX_ROWS, np.random.default_rng(0))
    searched, labels = [column.take(rows) for column in checked.columns], checked.labels[rows]
    chosen = [_chosen(told[k], parts, searched, labels == k) for k in range(len(told))]
    sound = checked.sound(SMALL, MOST)
    chosen = [_told_apart(k, chosen, sound[k], choice.inside, check.inside) for k in range(len(told))]
    names, claims = [], []
    for k, own in enumerate(chosen):
        size = int((checked.labels == k).sum())
        claims.append([checked.claim(k, j) for j in own])
        nothing = (
            "no rows" if not size else "all rows" if size == len(checked.labels) else TOO_FEW if size < FEW else NOTHING
        )
        names.append(", ".join(claim.words for claim in claims[k]) or nothing)
    return list(zip(numbered(names), claims, strict=True))


def numbered(names: Sequence[str]) -> list[str]:
    """The names, with a number after names that were there before.

    Examples
    --------
    >>> numbered(["low mass", "low mass", "old", "low mass"])
    ['low mass', 'low mass (2)', 'old', 'low mass (3)']
    """
    found: list[str] = []
    for name in names:
        number, new = 1, name
        while new in found:
            number, new = number + 1, f"{name} ({number + 1})"
        found.append(new)
    return found


def _chosen(told: NDArray[np.float64], parts: Sequence[Part], columns: Sequence[Cells], members: Mask) -> list[int]:
    """The most informative part about a cluster, then the parts that tell most together with it."""
    candidates = strongest(told, parts, N_CONSIDERED)
    if not candidates:
        return []
    share = float(members.mean())
    enough = ENOUGH * float(entr(share) + entr(1.0 - share))
    holds = np.stack([parts[j].bins[columns[parts[j].column].bins] for j in candidates])  # (n_candidates, n_rows)
    chosen, together = [0], holds[0]
    best = float(_information(together[None], members)[0])
    while best < enough and len(chosen) < min(LONGEST, len(candidates)):
        gained = _information(holds & together, members)
        gained[chosen] = 0.0
        if gained.max() < BETTER * best:
            break
        chosen.append(int(gained.argmax()))
        together, best = together & holds[chosen[-1]], float(gained.max())
    return [candidates[i] for i in chosen]


def _information(masks: Mask, members: Mask) -> NDArray[np.float64]:
    """Information of masks (n_masks, n_rows) about membership, in nats."""
    own, every = masks[:, members].sum(axis=1), masks.sum(axis=1)
    inside = np.stack([own, members.sum() - own], axis=1)
    return membership_information(inside, np.stack([every, len(members) - every], axis=1) - inside)


def _told_apart(k: int, chosen: list[list[int]], sound: Mask, *inside: NDArray[np.float64]) -> list[int]:
    """Add to the name of a cluster what is true of far more of its members than of any cluster with the same name."""
    same = [i for i, other in enumerate(chosen) if i != k and other == chosen[k]]
    if not same or not len(sound):
        return chosen[k]
    gap = np.min([share[k] - share[same].max(axis=0) for share in inside], axis=0)
    gap = np.where(sound, gap, 0.0)
    return [*chosen[k], int(gap.argmax())] if gap.max() >= LARGE else chosen[k]
