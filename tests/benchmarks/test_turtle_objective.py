"""The objective of TURTLE equals that of its authors, and it separates clusters that a line separates."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from neuralbayes.clusters.accuracy import clustering_accuracy

FILE = Path(__file__).parents[2] / "benchmarks" / "turtle_objective.py"


@pytest.fixture(scope="module")
def benchmark() -> dict[str, Any]:
    return runpy.run_path(str(FILE))


def test_the_objective_is_the_loss_of_the_classifier_less_the_entropy_of_the_prior(benchmark: dict[str, Any]) -> None:
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    learnt = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    objective = benchmark["Turtle"](gamma=7.0)
    objective.log_q = learnt.log_softmax(dim=1)
    labels = logits.softmax(dim=1)
    expected = functional.cross_entropy(learnt, labels) - 7.0 * torch.special.entr(labels.mean(dim=0)).sum()
    torch.testing.assert_close(objective(logits), expected)
    ours, theirs = (torch.autograd.grad(loss, logits)[0] for loss in (objective(logits), expected))
    torch.testing.assert_close(ours, theirs)


def test_rows_of_any_length_are_divided(benchmark: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 60)
    rows = 4.0 * np.eye(3)[classes] @ rng.standard_normal((3, 400)) + rng.standard_normal((180, 400))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    monkeypatch.setitem(benchmark["turtle"].__globals__, "N_STEPS", 150)
    labels = benchmark["turtle"](rows, 3, 0)
    assert clustering_accuracy(labels, classes) > 0.95
