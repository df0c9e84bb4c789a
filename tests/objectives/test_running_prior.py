"""The exponential average of p(z) over past batches."""

import math
from collections.abc import Callable

import pytest
import torch

from neuralbayes import DML, RunningPrior, WeightedSum


def test_average_is_the_weighted_mean_of_all_batches() -> None:
    """a_t = (1 - m) / (1 - m^t) makes E the mean with weights m^(t - s), starting with the first batch."""
    batches = torch.rand(6, 4, dtype=torch.float64)
    running = RunningPrior(momentum=0.7)
    for t in range(1, 7):
        average = running.update(0, batches[t - 1])
        weights = torch.tensor([0.7 ** (t - s) for s in range(1, t + 1)], dtype=torch.float64)
        expected = (weights[:, None] * batches[:t]).sum(0) / weights.sum()
        torch.testing.assert_close(average, expected, rtol=0, atol=1e-12)


def test_update_takes_no_gradient_and_hands_out_no_handle() -> None:
    running = RunningPrior()
    average = running.update(0, torch.tensor([0.5, 0.5], requires_grad=True))
    assert not average.requires_grad
    average.zero_()
    assert running.get_buffer("p_z_0").tolist() == [0.5, 0.5]


@pytest.mark.parametrize("make", [DML, lambda: WeightedSum(DML())])
def test_a_fresh_objective_takes_the_average_of_a_trained_one(make: Callable[[], DML]) -> None:
    trained, fresh = make(), make()
    trained.running_prior.update(0, torch.tensor([0.3, 0.7]))
    trained.running_prior.update(1, torch.rand(3, 2, 2))
    fresh.load_state_dict(trained.state_dict())
    for output, p_z in ((0, torch.tensor([0.6, 0.4])), (1, torch.rand(3, 2, 2))):
        assert torch.equal(fresh.running_prior.update(output, p_z), trained.running_prior.update(output, p_z))


def test_another_shape_is_refused() -> None:
    running = RunningPrior()
    running.update(0, torch.tensor([0.5, 0.5]))
    with pytest.raises(ValueError, match=r"output 0 had a prior of shape \(2,\) before, got \(3,\)"):
        running.update(0, torch.ones(3) / 3)


@pytest.mark.parametrize("momentum", [-0.1, 1.0, math.nan])
def test_a_momentum_that_never_learns_or_never_settles_is_refused(momentum: float) -> None:
    with pytest.raises(ValueError, match=r"`momentum` must be in \[0, 1\), got"):
        RunningPrior(momentum)


def test_the_average_is_kept_without_gaps_whatever_the_layout_of_the_prior() -> None:
    """The prior of a network in channels_last has its states next to each other in memory."""
    p_z = torch.rand(2, 2, 3).movedim(-1, 0)
    running = RunningPrior()
    assert torch.equal(running.update(0, p_z), p_z)
    assert running.get_buffer("p_z_0").is_contiguous()
