"""Properties that must hold for every objective, those of the paper and of users: one suite for all."""

import math

import paper_loops as paper
import pytest
import torch
from objective_cases import HAND_POSTERIOR, Case, every_objective
from torch import Tensor

from neuralbayes import Objective
from neuralbayes.objectives.base import interior, interior_posterior

K = 3
every_float = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
with_and_without_space = pytest.mark.parametrize("spatial", [(), (2, 2)], ids=["vector", "spatial"])


def random_logits(n: int = 6, spatial: tuple[int, ...] = (), dtype: torch.dtype = torch.float64) -> Tensor:
    return 2.0 * torch.randn(n, K, *spatial, dtype=dtype)


def gradient(objective: Objective, logits: Tensor) -> tuple[Tensor, Tensor]:
    leaf = logits.detach().requires_grad_()
    value = objective(leaf)
    value.backward()
    assert leaf.grad is not None
    return value.detach(), leaf.grad


# Values


@every_objective
def test_value_by_hand(case: Case) -> None:
    logits = HAND_POSTERIOR.log().clamp_min(-1e4)
    assert float(case.objective()(logits)) == pytest.approx(case.hand, abs=1e-12)


@every_objective
@with_and_without_space
def test_value_equals_the_slow_loop(case: Case, spatial: tuple[int, ...]) -> None:
    """Eqs. 5, 7, 13 and the objectives of users, computed by loops over Python floats."""
    logits = random_logits(spatial=spatial)
    p_zx = torch.softmax(logits, dim=1)
    slow = paper.average_over_positions(case.loop, p_zx)
    assert float(case.objective()(logits)) == pytest.approx(slow, abs=1e-12)


@every_objective
def test_names_of_the_states_do_not_matter(case: Case) -> None:
    """A target prior belongs to states, so it is permuted as well."""
    logits, order = random_logits(), [2, 0, 1]
    permuted = case.permuted(order) if case.permuted else case.objective()
    assert float(permuted(logits[:, order])) == pytest.approx(float(case.objective()(logits)), abs=1e-12)


@every_objective
def test_order_of_the_samples_does_not_matter(case: Case) -> None:
    logits = random_logits()
    assert float(case.objective()(logits.flip(0))) == pytest.approx(float(case.objective()(logits)), abs=1e-12)


@every_objective
@with_and_without_space
def test_weights_are_repetitions_of_samples(case: Case, spatial: tuple[int, ...]) -> None:
    logits = random_logits(spatial=spatial)
    counts = torch.tensor([2, 1, 0, 3, 1, 1])
    weighted = case.objective()(logits, counts.double())
    repeated = case.objective()(logits.repeat_interleave(counts, dim=0))
    assert float(weighted) == pytest.approx(float(repeated), abs=1e-12)


# Gradients


@every_objective
@with_and_without_space
def test_gradient_is_that_of_finite_differences(case: Case, spatial: tuple[int, ...]) -> None:
    logits = random_logits(n=4, spatial=spatial).requires_grad_()
    assert torch.autograd.gradcheck(case.objective(), (logits,))


# Edge cases: an empty state, a state with all samples, logits beyond the range of exp


def collapsed_logits(name: str, n: int, n_states: int, dtype: torch.dtype) -> Tensor:
    logits = torch.randn(n, n_states, dtype=dtype)
    if name == "prior 0":
        logits[:, 0] = -1e4
    elif name == "prior 1":
        logits[:, 0] = 1e4
    elif name == "prior 1e-30":
        logits[:, 0] = math.log(1e-30)
    elif name == "prior 1 - 1e-30":
        logits[:, 0] = -math.log(1e-30)
    elif name == "one sample at 1e-30":
        logits[0, 0] = math.log(1e-30)
    elif name == "logits +-1e4":
        logits = 1e4 * logits.sign()
    return logits


EDGES = ["prior 0", "prior 1", "prior 1e-30", "prior 1 - 1e-30", "one sample at 1e-30", "logits +-1e4"]


@every_objective
@every_float
@pytest.mark.parametrize("edge", EDGES)
def test_value_and_gradient_are_finite_at_the_edge(case: Case, dtype: torch.dtype, edge: str) -> None:
    value, grad = gradient(case.objective(), collapsed_logits(edge, 8, K, dtype))
    assert bool(torch.isfinite(value))
    assert bool(torch.isfinite(grad).all())


@every_objective
@every_float
@pytest.mark.parametrize(("p", "of_sample"), [(0.0, 0.0), (1.0, 1.0), (1e-30, 1e-30), (0.0, 1.0)])
def test_derivatives_in_both_arguments_are_finite_at_the_edge(
    case: Case, dtype: torch.dtype, p: float, of_sample: float
) -> None:
    """Derivatives that `backward` needs: d phi / d p(z|x), d phi / d p(z) and psi'(p(z)), not hidden by a softmax.

    With a running prior, p(z|x) can be 1 if p(z) is 0: the ratio must not overflow.
    """
    p_z, p_x = (torch.tensor([q, (1 - q) / 2, (1 - q) / 2], dtype=dtype) for q in (p, of_sample))
    p_z, p_zx = p_z.requires_grad_(), interior(p_x).expand(4, K).clone().requires_grad_()
    value = case.objective().per_sample(p_zx, p_z).sum() + case.objective().of_prior(p_z)
    grads = torch.autograd.grad(value, (p_zx, p_z), materialize_grads=True)
    assert bool(torch.isfinite(value))
    assert all(bool(torch.isfinite(g).all()) for g in grads)


def test_the_posterior_inside_the_bounds_has_value_and_gradient_of_softmax() -> None:
    logits = random_logits(spatial=(2, 2)).requires_grad_()
    weight = torch.randn_like(logits)
    ours, softmax = interior_posterior(logits), logits.softmax(1)
    torch.testing.assert_close(ours, softmax, rtol=0, atol=1e-15)
    (ours_grad,) = torch.autograd.grad((weight * ours).sum(), logits)
    (softmax_grad,) = torch.autograd.grad((weight * softmax).sum(), logits)
    torch.testing.assert_close(ours_grad, softmax_grad, rtol=0, atol=1e-14)


@every_float
def test_certain_states_get_the_last_number_before_1_and_the_others_the_root_of_the_smallest(
    dtype: torch.dtype,
) -> None:
    before_1 = torch.nextafter(torch.ones((), dtype=dtype), torch.zeros((), dtype=dtype)).item()
    floor = torch.tensor(math.sqrt(torch.finfo(dtype).tiny), dtype=dtype).item()
    assert interior_posterior(torch.tensor([[2e3, 0.0]], dtype=dtype)).tolist() == [[before_1, floor]]
    assert interior(torch.tensor([1.0, 0.0, 0.5], dtype=dtype)).tolist() == [before_1, floor, 0.5]


# Formats and errors


@every_objective
def test_bfloat16_logits_count_as_what_they_are_rounded_to(case: Case) -> None:
    logits = random_logits(n=8, dtype=torch.float32).bfloat16()
    value, grad = gradient(case.objective(), logits)
    exact, exact_grad = gradient(case.objective(), logits.float())
    assert value.dtype == torch.float32
    assert torch.equal(value, exact)
    assert torch.equal(grad, exact_grad.bfloat16())


@every_objective
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_logits_that_are_no_numbers_are_named(case: Case, bad: float) -> None:
    logits = random_logits()
    logits[2, 1] = bad
    with pytest.raises(ValueError, match="`logits` must be finite, got NaN or infinity"):
        case.objective()(logits)


@every_objective
@pytest.mark.parametrize("shape", [(5,), (5, 1), (0, 3)], ids=str)
def test_logits_of_a_wrong_shape_are_named(case: Case, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="`logits` must have shape"):
        case.objective()(torch.zeros(shape))


def test_an_objective_without_sample_term_says_so() -> None:
    with pytest.raises(NotImplementedError, match=r"Objective must define `sample_term\(p_zx, p_z\)`"):
        Objective()(random_logits())
