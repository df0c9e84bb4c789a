"""MIM: Theorem 1, Proposition 1, the prior terms of Eqs. 5 and 6 and their strength (appendix C.1)."""

import math

import pytest
import torch
from torch import Tensor

import neuralbayes as nb
from neuralbayes import MIM

both_versions = pytest.mark.parametrize("version", [1, 2])


def random_logits(*shape: int) -> Tensor:
    return 2.0 * torch.randn(*shape, dtype=torch.float64)


# Theorem 1


def test_theorem_1_is_special_to_the_mutual_information() -> None:
    """Appendix A: for other objectives, the gradient through E_x[L] is not 0; DML needs it."""
    logits = random_logits(30, 5).requires_grad_()
    p_zx = logits.softmax(1)
    (full,) = torch.autograd.grad(nb.DML()(logits), logits)
    (stopped,) = torch.autograd.grad(nb.DML().sample_term(p_zx, p_zx.mean(0).detach()).mean(), logits)
    assert float((full - stopped).norm()) > 0.1 * float(full.norm())


@both_versions
def test_mim_has_the_gradient_of_the_papers_decoupled_form(version: int) -> None:
    """Eq. 5 with <.> on both logarithms, Eq. 7 with <.> on the first, both without epsilon."""
    alpha = 2.0
    logits = random_logits(30, 5).requires_grad_()
    L = logits.softmax(1)
    E = L.mean(0)
    first = -(L * L.log().detach()).sum(1).mean()
    if version == 1:
        paper = first + (1 + alpha) * (E * E.log().detach()).sum()
    else:
        paper = first - (1 + alpha) * (1 / 5 * E.log() + 4 / 5 * (1 - E).log()).sum()
    (expected,) = torch.autograd.grad(paper, logits)
    (ours,) = torch.autograd.grad(MIM(alpha, version)(logits), logits)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


# Proposition 1


@pytest.mark.parametrize("shape", [(9, 4), (9, 4, 2, 3)], ids=["vector", "spatial"])
def test_version_1_without_alpha_is_minus_the_mutual_information(shape: tuple[int, ...]) -> None:
    """Proposition 1, Eq. 2."""
    logits = random_logits(*shape)
    information = nb.mutual_information(logits, from_logits=True)
    assert float(MIM(alpha=0.0, version=1)(logits)) == pytest.approx(-float(information), abs=1e-12)


# Prior terms


@both_versions
@pytest.mark.parametrize("target", [None, [0.6, 0.3, 0.1]], ids=["uniform", "target"])
def test_prior_term_is_larger_at_every_other_prior(version: int, target: list[float] | None) -> None:
    objective = MIM(version=version, target_prior=target)
    best = objective.prior_term(torch.tensor(target or [1 / 3] * 3, dtype=torch.float64))
    others = torch.distributions.Dirichlet(torch.ones(3, dtype=torch.float64)).sample((300,))
    assert float(objective.prior_term(others.T).min()) > float(best)


def test_prior_terms_by_their_minimum() -> None:
    """At the uniform prior version 1 is -log K and version 2 log K - (K - 1) log(1 - 1/K), times 1 + alpha."""
    p_z = torch.full((4,), 0.25, dtype=torch.float64)
    assert float(MIM(2.0, 1).prior_term(p_z)) == pytest.approx(-3 * math.log(4), abs=1e-12)
    assert float(MIM(2.0, 2).prior_term(p_z)) == pytest.approx(3 * (math.log(4) - 3 * math.log(0.75)), abs=1e-12)


def pull_from_collapse(version: int, rest: float) -> float:
    """|d R_p / d theta| for E = softmax(theta), with all but `rest` of the mass on one of four states."""
    p_z = torch.tensor([1 - rest, rest / 3, rest / 3, rest / 3], dtype=torch.float64)
    theta = p_z.log().requires_grad_()
    (slope,) = torch.autograd.grad(MIM(0.0, version).prior_term(theta.softmax(0)), theta)
    return float(slope.norm())


def test_version_2_pulls_where_version_1_lets_go() -> None:
    """Appendix C.1: as E_k -> 1, the gradient of version 1 goes to 0, and that of version 2 does not."""
    near, nearer = 1e-3, 1e-9
    assert pull_from_collapse(1, nearer) < 1e-4 * pull_from_collapse(1, near)
    assert pull_from_collapse(2, nearer) > 0.99 * pull_from_collapse(2, near)
    assert pull_from_collapse(2, near) > 100 * pull_from_collapse(1, near)


def test_version_2_is_exact_where_1_minus_p_is_rounded_to_0_in_float32() -> None:
    p_z = torch.tensor([1.0, 1e-12])
    exact = MIM(0.0, 2).prior_term(torch.tensor([1.0 - 1e-12, 1e-12], dtype=torch.float64))
    assert float(MIM(0.0, 2).prior_term(p_z)) == pytest.approx(float(exact), rel=1e-6)


def test_version_2_brings_back_a_state_below_the_floor() -> None:
    """In float32, the smallest probability that differs from 0 is 1e-19; a state at 1e-26 is still pulled up."""
    logits = torch.zeros(4, 3)
    logits[:, 0] = -60.0
    logits.requires_grad_()
    MIM()(logits).backward()
    assert logits.grad is not None
    assert float(logits.grad[:, 0].max()) < 0.0  # descent raises its logit


# Module, errors


@both_versions
def test_a_uniform_target_is_the_default(version: int) -> None:
    logits = random_logits(7, 4)
    given = MIM(version=version, target_prior=[0.25] * 4)(logits)
    assert float(given) == pytest.approx(float(MIM(version=version)(logits)), abs=1e-12)


BAD_TARGETS = [0.5, 0.6], [1.0, 0.0], [0.5, -0.5, 1.0], [[0.5, 0.5]], [0.5, math.nan]


@pytest.mark.parametrize(
    ("option", "value"),
    [("alpha", -1.0), ("alpha", math.nan), ("version", 3), *(("target_prior", target) for target in BAD_TARGETS)],
)
def test_an_option_that_makes_no_sense_is_refused(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{option}` must be .* got"):
        MIM(**{option: value})  # type: ignore[arg-type]


def test_a_target_for_another_number_of_states_is_refused() -> None:
    with pytest.raises(ValueError, match="`target_prior` must have one entry for each of the 3 states, got 2"):
        MIM(target_prior=[0.5, 0.5])(random_logits(4, 3))


def test_a_target_that_is_rounded_is_made_to_sum_to_1() -> None:
    target = MIM(target_prior=[0.5, 0.25, 0.2499995]).target_prior
    assert target is not None
    assert target.tolist() == pytest.approx([0.5 / 0.9999995, 0.25 / 0.9999995, 0.2499995 / 0.9999995], abs=1e-15)
