"""The loss of several starts together, and its explicit gradient."""

import pytest
import torch
from torch.testing import assert_close

from neuralbayes.manifolds.descent import StartsLoss, dml_gradient, others
from neuralbayes.objectives import DML, MIM

COST = torch.linspace(0.0, 2.0, 6, dtype=torch.float64)


def problem(n_states, size=1.0):
    generator = torch.Generator().manual_seed(n_states)
    values = torch.randn(40, 6, dtype=torch.float64, generator=generator)
    return values, size * torch.randn(n_states, 3, 6, dtype=torch.float64, generator=generator)


@pytest.mark.parametrize("objective", [DML(), DML(alpha=1.0), DML(weights="prior"), MIM()], ids=repr)
def test_each_start_has_the_loss_it_would_have_alone(objective):
    values, weights = problem(3)
    found = StartsLoss(objective, 0.1, COST)(values, weights)
    for start in range(3):
        head = weights[:, start]
        assert_close(found[start], objective(values @ head.T) + 0.1 * (COST * head.square()).sum())


@pytest.mark.parametrize("n_states", [2, 3, 5])
@pytest.mark.parametrize("size", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("objective", [DML(), DML(alpha=1.0), MIM()], ids=repr)
def test_the_gradient_is_that_of_autograd(objective, n_states, size):
    values, weights = problem(n_states, size)
    loss = StartsLoss(objective, 0.1, COST)
    leaf = weights.clone().requires_grad_()
    heads = [objective(values @ leaf[:, start].T) for start in range(3)]
    (sum(heads) + 0.1 * (COST * leaf.square()).sum()).backward()
    assert_close(loss.gradient(values, weights), leaf.grad)
    assert not weights.requires_grad


def test_an_objective_of_ones_own_is_not_taken_for_dml():
    class Twice(DML):
        def sample_term(self, p_zx, p_z):
            return 2.0 * super().sample_term(p_zx, p_z)

    values, weights = problem(3)
    plain, twice = (StartsLoss(one, 0.0, COST) for one in (DML(), Twice()))
    assert_close(twice(values, weights), 2.0 * plain(values, weights))
    assert_close(twice.gradient(values, weights), 2.0 * plain.gradient(values, weights))


@pytest.mark.parametrize("n_states", [2, 4])
def test_what_little_is_left_of_the_gradient_of_certain_rows_is_not_lost_to_rounding(n_states):
    """Rows that are certain in float32 move as in float64, up to a few digits."""
    logits = 25.0 * torch.eye(n_states, dtype=torch.float64).repeat(1, 5)
    exact, rounded = (dml_gradient(logits.to(dtype).softmax(dim=0)) for dtype in (torch.float64, torch.float32))
    assert 0.0 < exact.abs().max() < 1e-8
    assert_close(rounded.double(), exact, rtol=1e-3, atol=1e-14)


def test_the_gradient_is_finite_where_a_state_has_no_mass():
    weights = torch.zeros(3, 1, 2)
    weights[0] = 1e4
    gradient = StartsLoss(DML(), 0.0, torch.zeros(2)).gradient(torch.ones(5, 2), weights)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("n_states", [2, 3, 6])
def test_others_leaves_one_out(n_states):
    values = torch.rand(n_states, 4, 7, dtype=torch.float64)
    assert_close(others(values), values.sum(dim=0) - values)
