"""Lemma 1 and its consequences: values by hand, slow loops from the paper, weights, errors."""

import math

import paper_loops as paper
import pytest
import torch

import neuralbayes as nb
from neuralbayes.bayes import complement, entropy, guard, js_overlap

SHAPES = [(7, 4), (5, 3, 2, 3)]
with_and_without_space = pytest.mark.parametrize("shape", SHAPES, ids=["vector", "spatial"])
from_posteriors_and_logits = pytest.mark.parametrize("from_logits", [False, True], ids=["posteriors", "logits"])

HALF_AND_HALF = torch.tensor([[1.0, 0.0], [0.5, 0.5]], dtype=torch.float64)


def case(shape: tuple[int, ...], from_logits: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Arguments of the function, and the posteriors that they stand for, by a softmax in Python."""
    logits = 3.0 * torch.randn(shape, dtype=torch.float64)
    rows = logits.movedim(1, -1).reshape(-1, shape[1]).tolist()
    p_zx = torch.tensor([paper.softmax(row) for row in rows], dtype=torch.float64)
    p_zx = p_zx.reshape(shape[0], *shape[2:], shape[1]).movedim(-1, 1)
    return (logits if from_logits else p_zx), p_zx


def close(a: torch.Tensor | float, b: object) -> None:
    torch.testing.assert_close(torch.as_tensor(a), torch.as_tensor(b, dtype=torch.float64), rtol=0, atol=1e-12)


# Hand values


def test_prior_is_the_mean_posterior() -> None:
    close(nb.prior(HALF_AND_HALF), [0.75, 0.25])


def test_density_ratio_by_hand() -> None:
    close(nb.density_ratio(HALF_AND_HALF), [[4 / 3, 0.0], [2 / 3, 2.0]])


def test_density_ratio_of_new_samples_uses_the_prior_given() -> None:
    close(nb.density_ratio(HALF_AND_HALF, p_z=torch.tensor([0.5, 0.5], dtype=torch.float64)), [[2.0, 0.0], [1.0, 1.0]])


def test_entropies_by_hand() -> None:
    h_quarter = 2 * math.log(2) - 0.75 * math.log(3)
    close(nb.marginal_entropy(HALF_AND_HALF), h_quarter)
    close(nb.conditional_entropy(HALF_AND_HALF), math.log(2) / 2)
    close(nb.mutual_information(HALF_AND_HALF), h_quarter - math.log(2) / 2)


def test_js_divergence_by_hand() -> None:
    """q_1 = (2/3, 1/3) and q_2 = (0, 1): 1/2 [2/3 log 2 + 1/3 log(1/2) + log(3/2)], the same for both states."""
    js = 0.5 * (2 / 3 * math.log(2) - 1 / 3 * math.log(2) + math.log(3 / 2))
    close(nb.js_divergence(HALF_AND_HALF), [js, js])


# Slow loops


@with_and_without_space
def test_posterior_is_the_softmax(shape: tuple[int, ...]) -> None:
    logits, p_zx = case(shape, from_logits=True)
    close(nb.posterior(logits), p_zx)


@with_and_without_space
@from_posteriors_and_logits
def test_prior_equals_the_loop_of_lemma_1(shape: tuple[int, ...], from_logits: bool) -> None:
    x, p_zx = case(shape, from_logits)
    slow = [paper.prior(L) for L in paper.positions(p_zx)]
    close(nb.prior(x, from_logits=from_logits).reshape(shape[1], -1).T, slow)


@with_and_without_space
@from_posteriors_and_logits
def test_density_ratio_equals_the_loop_of_lemma_1(shape: tuple[int, ...], from_logits: bool) -> None:
    x, p_zx = case(shape, from_logits)
    slow = torch.tensor([paper.density_ratio(L) for L in paper.positions(p_zx)], dtype=torch.float64)
    fast = nb.density_ratio(x, from_logits=from_logits).reshape(*shape[:2], -1)
    close(fast, slow.permute(1, 2, 0))


@with_and_without_space
@from_posteriors_and_logits
@pytest.mark.parametrize("name", ["mutual_information", "marginal_entropy", "conditional_entropy"])
def test_information_equals_the_loop_of_proposition_1(shape: tuple[int, ...], from_logits: bool, name: str) -> None:
    x, p_zx = case(shape, from_logits)
    slow = paper.average_over_positions(getattr(paper, name), p_zx)
    close(getattr(nb, name)(x, from_logits=from_logits), slow)


@with_and_without_space
@from_posteriors_and_logits
def test_js_divergence_equals_the_loop_of_theorem_3(shape: tuple[int, ...], from_logits: bool) -> None:
    x, p_zx = case(shape, from_logits)
    slow = torch.tensor([paper.js_divergence(L) for L in paper.positions(p_zx)], dtype=torch.float64)
    close(nb.js_divergence(x, from_logits=from_logits), slow.mean(0))


def test_js_overlap_takes_any_prior() -> None:
    """The bracket of Theorem 3 with f and g from a prior other than that of the samples."""
    _, p_zx = case((4, 3), from_logits=False)
    p_z = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    f, g = p_zx / p_z, (1 - p_zx) / (1 - p_z)
    close(js_overlap(p_zx, p_z), 0.5 * (f * torch.log(1 + g / f) + g * torch.log(1 + f / g)))


# Weights


@with_and_without_space
@pytest.mark.parametrize(
    "name", ["prior", "marginal_entropy", "conditional_entropy", "mutual_information", "js_divergence"]
)
def test_weights_are_repetitions_of_samples(shape: tuple[int, ...], name: str) -> None:
    function = getattr(nb, name)
    _, p_zx = case(shape, from_logits=False)
    counts = torch.arange(shape[0]) % 3  # some samples are left out
    close(function(p_zx, sample_weight=counts.double()), function(p_zx.repeat_interleave(counts, dim=0)))


@pytest.mark.parametrize(
    "weight",
    [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, math.nan], [1.0, math.inf], [[1.0, 1.0]]],
    ids=["too-few", "negative", "zero-sum", "nan", "infinite", "wrong-rank"],
)
def test_bad_weights_are_refused_by_name(weight: list[float]) -> None:
    with pytest.raises(ValueError, match="`sample_weight` must"):
        nb.prior(HALF_AND_HALF, sample_weight=torch.tensor(weight))


# Complement and guard


def test_complement_keeps_what_one_minus_p_rounds_away() -> None:
    """float32 has no number between 1 - 6e-8 and 1, so 1 - p is 0 here."""
    p = torch.tensor([1.0, 1e-12, 3e-12])
    assert float(1.0 - p[0]) == 0.0
    torch.testing.assert_close(complement(p, dim=0), torch.tensor([4e-12, 1.0, 1.0]), rtol=1e-6, atol=0)


def test_complement_is_one_minus_p_along_any_dimension() -> None:
    _, p_zx = case((5, 3, 2, 3), from_logits=False)
    close(complement(p_zx, dim=1), 1 - p_zx)
    close(complement(p_zx.movedim(1, -1), dim=-1), 1 - p_zx.movedim(1, -1))


def test_complement_of_equal_states_is_right_for_each() -> None:
    close(complement(torch.full((4,), 0.25, dtype=torch.float64), dim=0), [0.75] * 4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_guard_changes_no_probability_worth_the_name(dtype: torch.dtype) -> None:
    p = torch.tensor([1.0, 0.5, 1e-3, 1e-18], dtype=dtype)
    assert torch.equal(guard(p), p)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_guard_puts_a_floor_whose_inverse_can_be_squared(dtype: torch.dtype) -> None:
    floor = guard(torch.zeros(1, dtype=dtype))
    assert 0 < float(floor) < 1e-18
    assert bool(torch.isfinite((1 / floor).square()))
    assert bool(torch.isfinite(floor.log()))


def test_guard_passes_the_gradient_of_what_is_below_the_floor() -> None:
    p = torch.tensor([0.0, 1e-30, 0.5], requires_grad=True)
    guard(p).sum().backward()
    assert p.grad is not None
    assert p.grad.tolist() == [1.0, 1.0, 1.0]


def test_entropy_of_a_certain_state_is_zero_with_a_finite_gradient() -> None:
    p = torch.tensor([1.0, 0.0], requires_grad=True)
    h = entropy(p, dim=0)
    h.backward()
    assert h.item() == 0.0
    assert p.grad is not None
    assert bool(torch.isfinite(p.grad).all())


# Errors

FUNCTIONS = ["prior", "density_ratio", "marginal_entropy", "conditional_entropy", "mutual_information", "js_divergence"]


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(5,), (5, 1), (0, 3), (5, 0), (5, 3, 0, 2)], ids=str)
def test_a_wrong_shape_is_refused_with_what_it_must_be(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`p_zx` must have shape \(n_samples, n_states, \*spatial\)") as error:
        getattr(nb, name)(torch.ones(shape))
    assert str(shape) in str(error.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_logits_are_called_logits_in_errors(name: str) -> None:
    with pytest.raises(ValueError, match=r"`logits` must have shape .* got \(5, 1\)"):
        getattr(nb, name)(torch.ones(5, 1), from_logits=True)


def test_posterior_refuses_one_state() -> None:
    with pytest.raises(ValueError, match=r"`logits` must have shape .* n_states >= 2, got \(64, 1\)"):
        nb.posterior(torch.zeros(64, 1))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"`p_zx` must be of a floating dtype, got torch\.int64"):
        getattr(nb, name)(torch.ones(5, 2, dtype=torch.int64))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_lists_are_refused(name: str) -> None:
    with pytest.raises(TypeError, match=r"`p_zx` must be a torch\.Tensor, got list"):
        getattr(nb, name)([[0.5, 0.5]])


def test_a_state_without_mass_has_a_finite_density_ratio_and_gradient():
    p_zx = torch.tensor([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0]], requires_grad=True)
    ratio = nb.density_ratio(p_zx)
    close(ratio[:, 2].double(), [1.0, 1.0])
    ratio.sum().backward()
    assert p_zx.grad.isfinite().all()


@pytest.mark.parametrize("weight", [[2.0, -1.0], [0.0, 0.0], [math.inf, 1.0], [math.nan, 1.0]])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(ValueError, match="sample_weight"):
        nb.prior(torch.eye(2), sample_weight=torch.tensor(weight))
