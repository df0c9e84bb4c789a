"""Results do not depend on rounding, memory layout and the types of the inputs."""

import math

import paper_loops as paper
import pytest
import torch

import neuralbayes as nb
from neuralbayes.bayes import LOG_2, js_divergence, js_overlap, normalized_weight, weighted_sum


def test_logits_that_lie_transposed_in_memory_have_the_same_posteriors() -> None:
    logits = torch.randn(3, 5, dtype=torch.float64).T
    expected = torch.tensor([paper.softmax(row) for row in logits.tolist()], dtype=torch.float64)
    torch.testing.assert_close(nb.posterior(logits), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_posteriors_in_half_precision_are_averaged_in_float32(dtype: torch.dtype) -> None:
    """The mean of 1 and 1/1024 is 0.50048828125, which neither half precision can represent."""
    p_zx = torch.tensor([[1.0, 0.0], [2**-10, 1 - 2**-10]]).to(dtype)
    p_zx[1, 1] = 1.0
    p_z = nb.prior(p_zx)
    assert p_z.dtype == torch.float32
    assert p_z.tolist() == [0.50048828125, 0.5]


@pytest.mark.parametrize("weights", [False, True], ids=["equal", "weighted"])
def test_a_state_with_no_mass_and_one_with_all_of_it_have_a_divergence_of_exactly_0(weights: bool) -> None:
    """The formula is log 2 minus a mean of log 2, which rounding keeps from 0 for some batch sizes."""
    for n in range(2, 60):
        p_zx = torch.tensor([[1.0, 0.0]]).repeat(n, 1)
        weight = torch.arange(1.0, n + 1) if weights else None
        assert nb.js_divergence(p_zx, sample_weight=weight).tolist() == [0.0, 0.0]


def test_each_position_has_states_without_mass_of_its_own() -> None:
    """One state has everything at the first position and nothing at the second, in float32, for any sample size."""
    for n in range(2, 60):
        p_zx = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]]).repeat(n, 1, 1)
        assert nb.js_divergence(p_zx).tolist() == [0.0, 0.0]


def test_js_overlap_takes_a_large_prior_at_each_position_of_its_own() -> None:
    """If p(z) > 3/4, then 1 - p(z) is a sum over the other states at that position, not over all positions."""
    p_zx = torch.randn(4, 3, 2, dtype=torch.float64).softmax(dim=1)
    p_z = torch.tensor([[0.8, 0.1], [0.15, 0.05], [0.05, 0.85]], dtype=torch.float64)
    f, g = p_zx / p_z, (1 - p_zx) / (1 - p_z)
    expected = 0.5 * (f * torch.log(1 + g / f) + g * torch.log(1 + f / g))
    torch.testing.assert_close(js_overlap(p_zx, p_z), expected, rtol=0, atol=1e-12)


def test_a_weighted_sum_has_the_type_of_the_values() -> None:
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = weighted_sum(torch.tensor([0.25, 0.75], dtype=torch.float64), values)
    assert found.dtype == torch.float32
    assert found.tolist() == [2.5, 3.5]


def test_whole_numbers_as_weights_keep_the_digits_of_the_posteriors() -> None:
    values = torch.zeros(2, 3, dtype=torch.float64)
    weight = normalized_weight(torch.tensor([1, 2]), values)
    assert weight.dtype == torch.float64
    assert weight.tolist() == pytest.approx([1 / 3, 2 / 3], abs=1e-16)
    assert math.isclose(float(weight.sum()), 1.0, abs_tol=1e-16)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 2), (4, 3, 2, 2)])
def test_a_weighted_sum_has_the_gradient_of_its_weights_and_of_its_values(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    values = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(weighted_sum, (weight, values))
    channels_last = values.detach().movedim(1, -1).contiguous().movedim(-1, 1).requires_grad_()
    assert torch.autograd.gradcheck(weighted_sum, (weight, channels_last))


def test_a_state_with_all_mass_at_one_position_is_not_apart_there_alone() -> None:
    """Two positions: disjoint states at the first, and one state with everything at the second."""
    apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    one = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    found = js_divergence(torch.stack([apart, one], dim=2))  # the mean over positions
    torch.testing.assert_close(found, torch.full((2,), LOG_2 / 2.0, dtype=torch.float64))
