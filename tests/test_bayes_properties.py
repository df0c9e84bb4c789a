"""Consistency of Lemma 1 for any posteriors, and values that stay finite and bounded in all number formats."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from torch import Tensor

import neuralbayes as nb

shapes = st.tuples(st.integers(1, 6), st.integers(2, 5)) | st.tuples(
    st.integers(1, 4), st.integers(2, 4), st.integers(1, 2), st.integers(1, 3)
)


@st.composite
def any_logits(draw: st.DrawFn) -> Tensor:
    limit = draw(st.sampled_from([1.0, 20.0, 300.0]))
    values = npst.arrays("float64", draw(shapes), elements=st.floats(-limit, limit))
    return torch.from_numpy(draw(values))


def close(a: Tensor, b: Tensor) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=1e-9)


# Lemma 1


@given(any_logits())
def test_posteriors_sum_to_1(logits: Tensor) -> None:
    """Lemma 1: sum_k L_k(x) = 1 for all x."""
    p_zx = nb.posterior(logits)
    close(p_zx.sum(1), torch.ones_like(p_zx[:, 0]))


@given(any_logits())
def test_priors_sum_to_1(logits: Tensor) -> None:
    """Lemma 1, third consistency condition: sum_k p(z=k) = 1."""
    p_z = nb.prior(logits, from_logits=True)
    close(p_z.sum(0), torch.ones_like(p_z[0]))


@given(any_logits())
def test_each_conditional_integrates_to_1(logits: Tensor) -> None:
    """Lemma 1, first condition: the integral of p(x|z=k) is the mean of p(x|z=k) / p(x)."""
    ratio = nb.density_ratio(logits, from_logits=True)
    close(ratio.mean(0), torch.ones_like(ratio[0]))


@given(any_logits())
def test_conditionals_mix_to_the_marginal(logits: Tensor) -> None:
    """Lemma 1, second condition: sum_k p(x|z=k) p(z=k) = p(x)."""
    p_zx = nb.posterior(logits)
    mixture = (nb.density_ratio(p_zx) * nb.prior(p_zx)).sum(1)
    close(mixture, torch.ones_like(mixture))


@given(any_logits())
def test_bayes_rule_gives_the_posterior_back(logits: Tensor) -> None:
    """Lemma 1, last condition: p(z=k|x) = p(x|z=k) p(z=k) / p(x)."""
    p_zx = nb.posterior(logits)
    close(nb.density_ratio(p_zx) * nb.prior(p_zx), p_zx)


# Bounds


@given(any_logits())
def test_information_is_between_0_and_the_entropy_of_z(logits: Tensor) -> None:
    information = float(nb.mutual_information(logits, from_logits=True))
    assert 0.0 <= information <= float(nb.marginal_entropy(logits, from_logits=True)) + 1e-12
    assert information <= math.log(logits.shape[1]) + 1e-12


@given(any_logits())
def test_divergence_is_between_0_and_log_2(logits: Tensor) -> None:
    js = nb.js_divergence(logits, from_logits=True)
    assert js.shape == (logits.shape[1],)
    assert float(js.min()) >= 0.0
    assert float(js.max()) <= math.log(2)


@given(any_logits(), st.randoms(use_true_random=False))
def test_order_of_samples_and_names_of_states_do_not_matter(logits: Tensor, random: object) -> None:
    samples, states = list(range(logits.shape[0])), list(range(logits.shape[1]))
    random.shuffle(samples)  # type: ignore[attr-defined]
    random.shuffle(states)  # type: ignore[attr-defined]
    shuffled = logits[samples][:, states]
    close(nb.mutual_information(shuffled, from_logits=True), nb.mutual_information(logits, from_logits=True))
    close(nb.js_divergence(shuffled, from_logits=True), nb.js_divergence(logits, from_logits=True)[states])


@given(any_logits())
def test_merging_two_states_loses_information(logits: Tensor) -> None:
    """The data processing inequality: a coarser z has no more information."""
    p_zx = nb.posterior(torch.cat([logits, logits[:, :1]], dim=1))
    merged = torch.cat([p_zx[:, :1] + p_zx[:, 1:2], p_zx[:, 2:]], dim=1)
    assert float(nb.mutual_information(merged)) <= float(nb.mutual_information(p_zx)) + 1e-9


# The limits of number formats


def dead_state(n: int, k: int) -> Tensor:
    logits = torch.randn(n, k)
    logits[:, 1] = -1e4
    return logits


def all_mass(n: int, k: int) -> Tensor:
    logits = torch.randn(n, k)
    logits[:, 0] = 1e4
    return logits


def certain(n: int, k: int) -> Tensor:
    return 1e4 * torch.nn.functional.one_hot(torch.arange(n) % k, k).float()


def rare(n: int, k: int) -> Tensor:
    logits = torch.randn(n, k)
    logits[:, 1] = math.log(1e-30)
    return logits


@pytest.mark.parametrize("make", [torch.randn, dead_state, all_mass, certain, rare])
@pytest.mark.parametrize("n_states", [2, 1000])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_values_are_finite_and_in_bounds(make: object, n_states: int, dtype: torch.dtype) -> None:
    logits = make(40, n_states).to(dtype)  # type: ignore[operator]
    p_zx = nb.posterior(logits)
    for value, top in (
        (nb.prior(p_zx), 1.0),
        (nb.density_ratio(p_zx), 40.0),  # p(z|x) <= n p(z)
        (nb.marginal_entropy(p_zx), math.log(n_states)),
        (nb.conditional_entropy(p_zx), math.log(n_states)),
        (nb.mutual_information(p_zx), math.log(n_states)),
        (nb.js_divergence(p_zx), math.log(2)),
    ):
        assert bool(torch.isfinite(value).all())
        assert float(value.min()) >= 0.0
        assert float(value.max()) <= top * (1 + 1e-6)


@pytest.mark.parametrize("from_logits", [False, True], ids=["posteriors", "logits"])
@pytest.mark.parametrize("name", ["mutual_information", "js_divergence"])
def test_a_thousand_states_in_float32_are_as_exact_as_float32_is(name: str, from_logits: bool) -> None:
    logits = 3.0 * torch.randn(50, 1000, dtype=torch.float64)
    x = logits if from_logits else nb.posterior(logits)
    exact = getattr(nb, name)(x, from_logits=from_logits)
    rounded = getattr(nb, name)(x.float(), from_logits=from_logits)
    torch.testing.assert_close(rounded.double(), exact, rtol=1e-4, atol=1e-6)


def test_bfloat16_is_promoted_before_anything_is_summed() -> None:
    """A mean of 300 posteriors of 1/1000, computed in bfloat16, would be wrong in the second digit."""
    logits = torch.randn(300, 1000).bfloat16()
    p_z = nb.prior(logits, from_logits=True)
    assert p_z.dtype == torch.float32
    assert torch.equal(p_z, nb.prior(logits.float(), from_logits=True))


def test_a_dead_state_says_nothing_about_x() -> None:
    p_zx = nb.posterior(torch.tensor([[9.0, -9.0, -1e4], [-9.0, 9.0, -1e4]]))
    assert nb.density_ratio(p_zx)[:, 2].tolist() == [1.0, 1.0]
    assert nb.js_divergence(p_zx)[2].item() == 0.0


def test_a_dead_state_changes_no_information() -> None:
    logits = torch.randn(20, 3, dtype=torch.float64)
    more = torch.cat([logits, torch.full((20, 1), -1e4, dtype=torch.float64)], dim=1)
    close(nb.mutual_information(more, from_logits=True), nb.mutual_information(logits, from_logits=True))


def test_a_state_with_all_mass_is_0_away_from_nothing() -> None:
    p_zx = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert nb.js_divergence(p_zx).tolist() == [0.0, 0.0]
    assert nb.mutual_information(p_zx).item() == 0.0


@pytest.mark.parametrize("name", ["mutual_information", "js_divergence", "conditional_entropy", "marginal_entropy"])
@pytest.mark.parametrize("make", [dead_state, all_mass, certain, rare])
def test_gradients_are_finite_where_a_state_dies_or_takes_all(name: str, make: object) -> None:
    logits = make(12, 3).requires_grad_()  # type: ignore[operator]
    getattr(nb, name)(logits, from_logits=True).sum().backward()
    assert bool(torch.isfinite(logits.grad).all())
