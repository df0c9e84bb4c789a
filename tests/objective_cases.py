"""Objectives for the property tests: those of the paper, with and without a target prior, and two of a user."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import paper_loops as paper
import pytest
import torch
from torch import Tensor

from neuralbayes import DML, MIM, Objective

LOG2, LOG3 = math.log(2.0), math.log(3.0)
TARGET = [0.5, 0.25, 0.25]

HAND_POSTERIOR = torch.tensor([[0.5, 0.25, 0.25], [0.0, 0.25, 0.75]], dtype=torch.float64)
"""Posteriors with the prior (1/4, 1/4, 1/2), so every objective is a sum of log 2 and log 3."""
HAND_ENTROPY = (3.5 * LOG2 - 0.75 * LOG3) / 2
"""Mean of 3/2 log 2 (first row) and 2 log 2 - 3/4 log 3 (second row)."""


class NegativeInformation(Objective):
    """-I(x; z) from its definition: `sample_term` needs p(z), unlike that of MIM."""

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return -(p_zx * (p_zx / p_z).log()).sum(1)


class Crowding(Objective):
    """An objective as a user might write it, without considering p(z) = 1: log(1 - p(z)), and a prior term."""

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return -(p_zx * (1.0 - p_z).log()).sum(1)

    def prior_term(self, p_z: Tensor) -> Tensor:
        return p_z.square().sum(0)


def crowding(L: paper.Rows) -> float:
    E = paper.prior(L)
    samples = [-sum(row[k] * math.log(1.0 - E[k]) for k in range(len(E))) for row in L]
    return sum(samples) / len(L) + sum(e * e for e in E)


@dataclass(frozen=True)
class Case:
    """An objective, the same as a slow loop, and its value on HAND_POSTERIOR, computed by hand."""

    name: str
    objective: Callable[[], Objective]
    loop: Callable[[paper.Rows], float]
    hand: float
    permuted: Callable[[list[int]], Objective] | None = None  # if the states have individual targets


def mim_case(name: str, alpha: float, version: int, hand_R_p: float, target: list[float] | None = None) -> Case:
    def make(order: list[int] | None = None) -> Objective:
        return MIM(alpha, version, target if target is None or order is None else [target[k] for k in order])

    return Case(
        name=name,
        objective=make,
        loop=lambda L: paper.mim(L, alpha, version, target),
        hand=HAND_ENTROPY + (1.0 + alpha) * hand_R_p,
        permuted=make,
    )


CASES = [
    # sum_k E_k log E_k = -(1/4 2 + 1/4 2 + 1/2) log 2
    mim_case("mim-v1", 2.0, 1, -1.5 * LOG2),
    # 1/3 (2 + 2 + 1) log 2 - 2/3 (2 log 3/4 + log 1/2)
    mim_case("mim-v2", 2.0, 2, 5 * LOG2 - 4 / 3 * LOG3),
    mim_case("mim-v1-alpha-0", 0.0, 1, -1.5 * LOG2),
    mim_case("mim-v2-alpha-0", 0.0, 2, 5 * LOG2 - 4 / 3 * LOG3),
    # -3/2 log 2 - log 3 + (1/4 + 2/4 + 2/2) log 2
    mim_case("mim-v1-target", 2.0, 1, 0.25 * LOG2 - LOG3, TARGET),
    # (2/2 + 2/4 + 1/4) log 2 + 5/4 log 4/3 + 3/4 log 2
    mim_case("mim-v2-target", 2.0, 2, 5 * LOG2 - 1.25 * LOG3, TARGET),
    # f = (2, 1, 1/2; 0, 1, 3/2) and g = (2/3, 1, 3/2; 4/3, 1, 1/2)
    Case("dml", DML, paper.dml, (26 / 3 * LOG2 - 2.5 * LOG3) / 6),
    # minus I(x; 1[z=k]): (3 log 2 - 3/2 log 3) / 2 for the first state, 0, 3/4 log 3 - log 2
    Case("dml-prior", lambda: DML(weights="prior"), lambda L: -sum(paper.state_information(L)), -0.5 * LOG2),
    Case(
        "dml-alpha",
        lambda: DML(alpha=2.0),
        lambda L: paper.dml(L) + 2.0 * paper.prior_cross_entropy_term(paper.prior(L)),
        (26 / 3 * LOG2 - 2.5 * LOG3) / 6 + 2.0 * (5 * LOG2 - 4 / 3 * LOG3),
    ),
    Case(
        "negative-information", NegativeInformation, lambda L: -paper.mutual_information(L), HAND_ENTROPY - 1.5 * LOG2
    ),
    # 1/2 log 4/3 + 1/2 log 2 + (1/16 + 1/16 + 1/4)
    Case("crowding", Crowding, crowding, 1.5 * LOG2 - 0.5 * LOG3 + 3 / 8),
]

every_objective = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
