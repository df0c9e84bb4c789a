"""The objective of TURTLE equals that of its authors, and it separates clusters that a line separates."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import neuralbayes as nb

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from features import Turtle, turtle


def test_the_objective_is_the_loss_of_the_classifier_less_the_entropy_of_the_prior() -> None:
    logits = torch.randn(50, 4, generator=torch.Generator().manual_seed(0), requires_grad=True)
    learnt = torch.randn(50, 4, generator=torch.Generator().manual_seed(1))
    objective = Turtle(gamma=7.0)
    objective.log_q = learnt.log_softmax(dim=1)
    labels = logits.softmax(dim=1)
    expected = functional.cross_entropy(learnt, labels) - 7.0 * torch.special.entr(labels.mean(dim=0)).sum()
    torch.testing.assert_close(objective(logits), expected)
    ours, theirs = (torch.autograd.grad(loss, logits)[0] for loss in (objective(logits), expected))
    torch.testing.assert_close(ours, theirs)


def test_rows_of_any_length_are_divided() -> None:
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(3), 60)
    rows = 4.0 * np.eye(3)[classes] @ rng.standard_normal((3, 400)) + rng.standard_normal((180, 400))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = turtle(rows, 3, 0, n_steps=150)
    assert nb.clustering_accuracy(labels, classes) > 0.95
