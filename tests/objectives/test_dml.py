"""DML: Proposition 2, Theorem 2 (optimality) and Theorem 3."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from torch import Tensor

import neuralbayes as nb
from neuralbayes import DML

LOG2 = math.log(2.0)


def random_logits(*shape: int) -> Tensor:
    return 2.0 * torch.randn(*shape, dtype=torch.float64)


def equation_13(L: Tensor) -> Tensor:
    """The binary objective as written in the paper, without epsilon and R_c."""
    f_1 = L / L.mean()
    f_0 = (1 - L) / (1 - L.mean())
    return 0.5 * (f_1 * torch.log(1 + f_0 / f_1)).mean() + 0.5 * (f_0 * torch.log(1 + f_1 / f_0)).mean()


def test_two_states_are_the_papers_binary_objective() -> None:
    """Eq. 13 with L = L_1; value and gradient."""
    logits = random_logits(20, 2).requires_grad_()
    ours, papers = DML()(logits), equation_13(logits.softmax(1)[:, 1])
    assert ours.item() == pytest.approx(papers.item(), abs=1e-12)
    (ours_grad,) = torch.autograd.grad(ours, logits)
    (papers_grad,) = torch.autograd.grad(papers, logits)
    torch.testing.assert_close(ours_grad, papers_grad, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(9, 2), (9, 5), (9, 4, 2, 3)], ids=["binary", "multi", "spatial"])
def test_loss_is_log_2_less_the_mean_divergence(shape: tuple[int, ...]) -> None:
    """Proposition 2 and Theorem 3: minimising the loss maximises 1/K sum_k JS(q_k || rest), Eq. 64."""
    logits = random_logits(*shape)
    js = nb.js_divergence(logits, from_logits=True)
    assert float(DML()(logits)) == pytest.approx(LOG2 - float(js.mean()), abs=1e-12)


@given(npst.arrays("float64", st.tuples(st.integers(1, 6), st.integers(2, 5)), elements=st.floats(-40, 40)))
def test_loss_is_between_0_and_log_2(values: object) -> None:
    loss = float(DML()(torch.as_tensor(values)))
    assert -1e-12 <= loss <= LOG2 + 1e-12


def test_a_dead_state_counts_as_one_that_is_no_divergence_away() -> None:
    """JS of an empty state is 0, so an unused state costs log 2 / K, and it pays to use K states."""
    two = random_logits(9, 2)
    three = torch.cat([two, torch.full((9, 1), -1e4, dtype=torch.float64)], dim=1)
    assert float(DML()(three)) == pytest.approx((2 * float(DML()(two)) + LOG2) / 3, abs=1e-12)


# Theorem 2, on the line: S_1 = [-2, -1] and S_2 = [1, 2], with a third of the mass in S_1

S_1 = torch.linspace(-2, -1, 200, dtype=torch.float64)
S_2 = torch.linspace(1, 2, 400, dtype=torch.float64)
LINE = torch.cat([S_1, S_2])


def hard(labels: Tensor) -> Tensor:
    """Logits of L(x) in {0, 1}."""
    sign = labels.double() * 2 - 1
    return 1e4 * torch.stack([sign, -sign], dim=1)


def soft_cut(at: float, slope: float) -> float:
    """Loss of the continuous L(x) = sigmoid(slope (x - at))."""
    logit = slope * (LINE - at)
    return float(DML()(torch.stack([logit, torch.zeros_like(logit)], dim=1)))


def test_theorem_2_labels_by_manifold_attain_the_optimum() -> None:
    """F(x) = 0 for all x, in either of the two cases of the theorem."""
    assert float(DML()(hard(LINE > 0))) == pytest.approx(0.0, abs=1e-12)
    assert float(DML()(hard(LINE < 0))) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("slope", [4.0, 20.0, 60.0])
@pytest.mark.parametrize("inside", [-1.75, -1.5, -1.25, 1.25, 1.5, 1.75])
def test_theorem_2_a_continuous_cut_through_a_manifold_is_worse_than_one_between(slope: float, inside: float) -> None:
    """Continuity makes L take values inside (0, 1) on the manifold that it cuts, where F(x) < 0.

    This compares labels of equal steepness. All are steep enough to change within the gap, which has width 2.
    """
    assert soft_cut(inside, slope) > soft_cut(0.0, slope)
    assert soft_cut(inside, slope) > 1e-3


def test_theorem_2_continuous_labels_reach_the_optimum_only_between_the_manifolds() -> None:
    """As L gets steeper, the loss of a cut in the gap falls exponentially, and through a manifold only as 1/slope."""
    assert soft_cut(0.0, 60.0) < 1e-20
    assert soft_cut(1.5, 60.0) > 0.3 * soft_cut(1.5, 20.0) > 1e-3


def test_theorem_2_needs_continuity() -> None:
    """Section 4.1: a discontinuous L may cut anywhere at no cost, which is why R_c is added."""
    assert float(DML()(hard(LINE > 1.5))) == pytest.approx(0.0, abs=1e-12)
    assert float(DML()(hard(torch.arange(600) % 2 == 0))) == pytest.approx(0.0, abs=1e-12)


def test_prior_collapse_is_the_worst_that_can_be_done() -> None:
    """Section 4.2, "Prior Collapse": E_x[L(x)] -> 0 or 1 is the maximum of the loss, log 2."""
    assert float(DML()(hard(LINE > 5))) == pytest.approx(LOG2, abs=1e-12)
    assert soft_cut(30.0, 1.0) == pytest.approx(LOG2, abs=0.2)
    assert soft_cut(0.0, 1.0) < soft_cut(3.0, 1.0) < LOG2


# Masses


def partition(*sizes: int) -> Tensor:
    """Logits of sharp states with given numbers of samples."""
    return (
        40.0
        * torch.eye(len(sizes), dtype=torch.float64)[torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))]
    )


EVEN, SLIVERS = partition(100, 100, 100), partition(298, 1, 1)


def test_dml_ignores_how_much_mass_a_state_has() -> None:
    assert float(DML()(SLIVERS)) == pytest.approx(float(DML()(EVEN)), abs=1e-12)


@pytest.mark.parametrize("mended", [DML(alpha=2.0), DML(weights="prior")], ids=["alpha", "prior"])
def test_slivers_are_worse_where_masses_count(mended: DML) -> None:
    assert float(mended(SLIVERS)) > float(mended(EVEN)) + 0.5


def test_weighted_by_the_prior_it_is_the_information_about_each_state() -> None:
    logits = random_logits(20, 2)
    assert float(DML(weights="prior")(logits)) == pytest.approx(
        -2 * float(nb.mutual_information(logits, from_logits=True)), abs=1e-12
    )


@pytest.mark.parametrize(("option", "value"), [("alpha", -0.5), ("weights", "sizes")])
def test_an_option_that_makes_no_sense_is_refused(option: str, value: object) -> None:
    with pytest.raises(ValueError, match=f"`{option}` must be .* got {value!r}"):
        DML(**{option: value})
