"""Objectives by name, and their records."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

import neuralbayes as nb
from neuralbayes.cli.pretrain import named_objective
from neuralbayes.objectives.base import described

SOURCE = """
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import neuralbayes as nb


@dataclass
class Settings:
    kind: ClassVar[str] = "of its own"
    strength: float = 3.0


class Mine(nb.Objective):
    def __init__(self, strength=Settings().strength):
        super().__init__()
        self.strength = strength

    def sample_term(self, p_zx, p_z):
        return -self.strength * (p_zx * p_zx / p_z).sum(dim=1)


class Needy(Mine):
    def __init__(self, strength, other):
        super().__init__(strength)


twice = Mine(6.0)
number = 3
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "my_objective_file.py"
    path.write_text(SOURCE)
    return str(path)


def test_a_class_and_an_instance_of_a_file(file: str) -> None:
    logits = torch.randn(6, 3)
    mine, twice = named_objective(f"{file}:Mine"), named_objective(f"{file}:twice")
    torch.testing.assert_close(twice(logits), 2 * mine(logits))
    assert described(mine) == "my_objective_file.Mine(strength=3.0)"
    assert described(twice) == "my_objective_file.Mine(strength=6.0)"


def test_a_name_of_a_module() -> None:
    assert isinstance(named_objective("neuralbayes.objectives:DML"), nb.DML)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Nothing", "must be defined in .*Nothing"),
        ("Needy", "must be a class that takes no arguments, or an instance"),
        ("Settings", "must be a neuralbayes.Objective, got .*, a Settings"),
        ("number", "must be a neuralbayes.Objective, got .*, a int"),
        ("not a name", "must be written as file.py:name or package.module:name"),
    ],
)
def test_what_is_no_objective_is_refused(file: str, name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        named_objective(f"{file}:{name}")


def test_plain_attributes_tell_objectives_apart_and_what_training_changes_does_not() -> None:
    objective = nb.MIM(alpha=0.5)
    before = described(objective)
    assert before != described(nb.MIM())
    nb.backward(objective, torch.nn.Linear(2, 3), torch.randn(8, 2), marginal="running")
    objective.eval()
    assert described(objective) == before


def test_a_sum_is_told_by_its_parts_and_weights() -> None:
    class Nothing(nb.Objective):
        def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
            return p_zx[:, 0]

    text = described(nb.WeightedSum([nb.DML(), Nothing()], weights=[1.0, 0.5]))
    assert "DML(" in text
    assert "Nothing(" in text
    assert "weights=[1.0, 0.5]" in text
