"""Propositions 1 and 2 and Theorem 3 on distributions with known mutual information and divergence."""

import math

import paper_loops as paper
import pytest
import torch

import neuralbayes as nb


def binary_entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def close(a: torch.Tensor, b: object) -> None:
    torch.testing.assert_close(a, torch.as_tensor(b, dtype=torch.float64), rtol=0, atol=1e-12)


# Proposition 1: mutual information


def test_independent_z_carries_no_information() -> None:
    """Proposition 1 if L(x) is the same for every x."""
    p_zx = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64).expand(11, 3)
    close(nb.mutual_information(p_zx), 0.0)


@pytest.mark.parametrize("counts", [[1, 1], [3, 5, 2], [1, 30, 2, 7]], ids=str)
def test_a_deterministic_partition_carries_the_entropy_of_its_masses(counts: list[int]) -> None:
    """Proposition 1 if H(z|x) = 0: I(x; z) = H(z)."""
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    p_zx = torch.nn.functional.one_hot(labels).double()
    masses = [c / sum(counts) for c in counts]
    close(nb.mutual_information(p_zx), -sum(m * math.log(m) for m in masses))


@pytest.mark.parametrize("eps", [0.01, 0.11, 0.5])
def test_binary_symmetric_channel_carries_log_2_less_the_noise(eps: float) -> None:
    """Proposition 1 on the textbook channel: capacity log 2 - h(eps) at a uniform input."""
    p_zx = torch.tensor([[1 - eps, eps], [eps, 1 - eps]], dtype=torch.float64)
    close(nb.mutual_information(p_zx), math.log(2) - binary_entropy(eps))


@pytest.mark.parametrize("eps", [0.1, 0.7])
def test_binary_erasure_channel_carries_what_is_not_erased(eps: float) -> None:
    """Proposition 1 on three states: (1 - eps) log 2."""
    p_zx = torch.tensor([[1 - eps, 0.0, eps], [0.0, 1 - eps, eps]], dtype=torch.float64)
    close(nb.mutual_information(p_zx), (1 - eps) * math.log(2))


def test_positions_are_variables_of_their_own_and_averaged() -> None:
    """Appendix B: z determines x at one position, and is independent of it at the other."""
    told, untold = torch.eye(2, dtype=torch.float64), torch.full((2, 2), 0.5, dtype=torch.float64)
    close(nb.mutual_information(torch.stack([told, untold], dim=2)), math.log(2) / 2)
    close(nb.js_divergence(torch.stack([told, untold], dim=2)), [math.log(2) / 2] * 2)


def test_information_is_at_most_that_of_the_finest_partition() -> None:
    """Proposition 1: no L has more information than one state for each x, which has log n."""
    finest = nb.mutual_information(torch.eye(6, dtype=torch.float64))
    close(finest, math.log(6))
    for _ in range(20):
        assert nb.mutual_information(4.0 * torch.randn(6, 6, dtype=torch.float64), from_logits=True) < finest


# Proposition 2 and Theorem 3: Jensen-Shannon divergence


@pytest.mark.parametrize("counts", [[1, 1], [3, 5, 2], [1, 30, 2, 7]], ids=str)
def test_disjoint_conditionals_are_log_2_apart(counts: list[int]) -> None:
    """Theorem 3: JS(q_k || rest) = log 2 if no two states share a sample."""
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    close(nb.js_divergence(torch.nn.functional.one_hot(labels).double()), [math.log(2)] * len(counts))


def test_identical_conditionals_are_0_apart() -> None:
    """Theorem 3: JS(q_k || rest) = 0 if z is independent of x."""
    p_zx = torch.tensor([[0.2, 0.3, 0.5]], dtype=torch.float64).expand(11, 3)
    close(nb.js_divergence(p_zx), [0.0, 0.0, 0.0])


def test_two_overlapping_distributions_are_as_far_apart_as_their_definition_says() -> None:
    """Proposition 2 in reverse: choose q_1, q_0 and pi, then derive p(x) and L(x) = pi q_1(x) / p(x) by Bayes' rule."""
    pi, q1, q0 = 0.3, [0.5, 0.3, 0.2, 0.0, 0.0], [0.0, 0.1, 0.2, 0.3, 0.4]
    p_x = [pi * a + (1 - pi) * b for a, b in zip(q1, q0, strict=True)]
    L = torch.tensor([pi * a / p for a, p in zip(q1, p_x, strict=True)], dtype=torch.float64)
    js = nb.js_divergence(torch.stack([L, 1 - L], dim=1), sample_weight=torch.tensor(p_x, dtype=torch.float64))
    close(js, [paper.js_from_definition(q1, q0)] * 2)


def test_each_of_three_distributions_against_the_mixture_of_the_others() -> None:
    """Theorem 3 in reverse: qbar_k = (p - pi_k q_k) / (1 - pi_k), Eq. 68."""
    pi = [0.2, 0.3, 0.5]
    q = [[0.7, 0.2, 0.1, 0.0], [0.0, 0.5, 0.4, 0.1], [0.1, 0.0, 0.3, 0.6]]
    p_x = [sum(pi[k] * q[k][x] for k in range(3)) for x in range(4)]
    L = torch.tensor([[pi[k] * q[k][x] / p_x[x] for k in range(3)] for x in range(4)], dtype=torch.float64)
    rest = [[(p_x[x] - pi[k] * q[k][x]) / (1 - pi[k]) for x in range(4)] for k in range(3)]
    expected = [paper.js_from_definition(q[k], rest[k]) for k in range(3)]
    close(nb.js_divergence(L, sample_weight=torch.tensor(p_x, dtype=torch.float64)), expected)


def test_two_states_of_equal_mass_have_a_divergence_equal_to_their_information() -> None:
    """JS(q_0 || q_1) = I(x; z) for a fair z, an identity that connects Proposition 1 with Proposition 2."""
    p_zx = torch.rand(9, 2, dtype=torch.float64)
    p_zx = torch.cat([p_zx, p_zx.flip(1)])
    p_zx = p_zx / p_zx.sum(1, keepdim=True)
    close(nb.js_divergence(p_zx), [float(nb.mutual_information(p_zx))] * 2)
