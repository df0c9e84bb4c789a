"""Passes over one micro-batch: outputs too large for one piece, slopes by hand, and the number of passes."""

import math

import pytest
import torch
from gradient_cases import OBJECTIVES, grads, mlp, points, whole_batch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, Objective, Smoothness
from neuralbayes.gradients.passes import PART_BYTES, Term, sample_slope, slope

LOG2 = math.log(2.0)


class Wide(nn.Module):
    """Logits of 3 states at 3,000 positions, 72 kB per sample in double; contiguous, or with the states last."""

    def __init__(self, channels_last: bool) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear = nn.Linear(5, 9_000).double()
        self.channels_last = channels_last

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.linear(x)
        if self.channels_last:
            return logits.reshape(len(x), 3_000, 3).movedim(-1, 1)
        return logits.reshape(len(x), 3, 3_000)


# Outputs in pieces


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("size", [None, 70])
def test_an_output_larger_than_a_piece_has_the_gradient_of_autograd(
    name: str, channels_last: bool, size: int | None
) -> None:
    """Ten megabytes: p(z), its slope, the value and the gradient are sums over three pieces, the last one shorter."""
    network, x = Wide(channels_last), points(140)
    assert 2 * PART_BYTES < network(x).nbytes < 3 * PART_BYTES
    weight = torch.linspace(0.0, 1.0, 140, dtype=torch.float64)
    value, gradient = whole_batch(OBJECTIVES[name](), network, x, weight)
    loss = nb.backward(OBJECTIVES[name](), network, x, sample_weight=weight, microbatch_size=size)
    torch.testing.assert_close(grads(network), gradient, rtol=1e-9, atol=1e-13)
    assert loss.item() == pytest.approx(value, abs=1e-12)


def term(objective: Objective, p_zx: list[list[float]], weight: list[float], part_bytes: int) -> Term:
    logits = torch.tensor(p_zx, dtype=torch.float64).log()
    return Term(0.5, objective, logits, torch.tensor(weight, dtype=torch.float64), part_bytes)


@pytest.mark.parametrize("part_bytes", [1, 16, 32, 2**22], ids=["less than one", "one", "two", "all"])
def test_pieces_of_any_size_give_the_same(part_bytes: int) -> None:
    """A sample is 16 bytes. p(z) is 1/2 (1/4, 3/4) + 1/4 (1/2, 1/2) + 1/4 (1, 0); entropies are weighted alike."""
    one = term(
        MIM(alpha=0.0, version=1), [[0.25, 0.75], [0.5, 0.5], [1.0 - 1e-12, 1e-12]], [0.5, 0.25, 0.25], part_bytes
    )
    p_z = one.prior(one.weight)
    assert p_z.tolist() == pytest.approx([0.5, 0.5], abs=1e-11)
    one.p_z, one.slope = p_z, torch.tensor([3.0, -1.0], dtype=torch.float64)
    value, gradient = one.gradient()
    entropy = 0.5 * (2 * LOG2 - 0.75 * math.log(3.0)) + 0.25 * LOG2
    assert value.item() == pytest.approx(0.5 * entropy, abs=1e-9)
    # In the first logit: factor * weight * p1 p2 [log(p2 / p1) + G1 - G2]; in the second logit, the negative.
    first = 0.5 * 0.5 * (3 / 16) * (math.log(3.0) + 4.0)
    second = 0.5 * 0.25 * (1 / 4) * 4.0
    assert gradient[:, 0].tolist() == pytest.approx([first, second, 0.0], abs=1e-9)
    assert gradient[:, 1].tolist() == pytest.approx([-first, -second, 0.0], abs=1e-9)


@pytest.mark.parametrize("part_bytes", [1, 32, 2**22])
def test_the_slope_of_the_samples_by_hand(part_bytes: int) -> None:
    """-I(x; z): d/dE_k of -sum_k L_k log(L_k / E_k) is L_k / E_k, weighted and summed over the samples."""
    rows = [[0.25, 0.75], [0.5, 0.5], [0.75, 0.25]]
    one = term(OBJECTIVES["negative-information"](), rows, [0.5, 0.25, 0.25], part_bytes)
    p_z = torch.tensor([0.2, 0.8], dtype=torch.float64)
    expected = [(0.125 + 0.125 + 0.1875) / 0.2, (0.375 + 0.125 + 0.0625) / 0.8]
    assert one.sample_slope(one.weight, p_z).tolist() == pytest.approx(expected, rel=1e-12)


# Slopes


def test_slope_is_value_and_gradient_without_a_graph() -> None:
    value, gradient = slope(lambda p: (p**3).sum(), torch.tensor([1.0, 2.0]))
    assert (value.item(), gradient.tolist()) == (9.0, [3.0, 12.0])
    assert not value.requires_grad
    assert not gradient.requires_grad


def test_slope_of_what_does_not_look_at_the_prior_is_0() -> None:
    value, gradient = slope(lambda p: torch.tensor(5.0), torch.tensor([1.0, 2.0]))
    assert (value.item(), gradient.tolist()) == (5.0, [0.0, 0.0])
    assert sample_slope(MIM(), torch.full((2, 2), 0.5), torch.tensor([0.5, 0.5]), torch.ones(2)).tolist() == [0.0, 0.0]


# How many passes


def counted(network: nn.Module) -> list[bool]:
    """Whether gradients were recorded in each pass."""
    calls: list[bool] = []
    network.register_forward_hook(lambda _module, _inputs, output: calls.append(output.requires_grad))
    return calls


@pytest.mark.parametrize(
    ("objective", "marginal", "size", "recompute", "expected"),
    [
        (MIM, "exact", None, True, [True]),  # one micro-batch is the whole batch
        (DML, "exact", None, True, [True]),
        (MIM, "minibatch", 5, True, [True] * 2),
        (DML, "running", 5, True, [True] * 2),
        (MIM, "exact", 5, True, [False] * 2 + [True] * 2),  # its sample terms do not depend on p(z)
        (DML, "exact", 5, False, [False] * 2 + [True] * 2),  # small posteriors are kept
        (DML, "exact", 5, True, [False] * 4 + [True] * 2),
    ],
)
def test_the_network_is_called_no_more_often_than_needed(
    objective: type[Objective], marginal: str, size: int | None, recompute: bool, expected: list[bool]
) -> None:
    network = mlp()
    calls = counted(network)
    nb.backward(objective(), network, points(10), microbatch_size=size, marginal=marginal, recompute=recompute)  # type: ignore[arg-type]
    assert calls == expected


# The perturbed pass


@pytest.mark.parametrize("of", ["logits", lambda outputs: outputs["b"]], ids=["last", "function"])
def test_smoothness_of_named_outputs(of: str) -> None:
    """F(x) = 2x is one of two named outputs: R_c is 4, and its gradient only passes through that output."""

    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 5, bias=False).double(), nn.Linear(5, 5, bias=False).double()
            with torch.no_grad():
                self.a.weight.copy_(3.0 * torch.eye(5))
                self.b.weight.copy_(2.0 * torch.eye(5))

        def forward(self, x: Tensor) -> dict[str, Tensor]:
            return {"a": self.a(x), "b": self.b(x)}

    network, x = Named(), points(20)
    without = nb.backward(MIM(), network, x, microbatch_size=7)
    plain = network.a.weight.grad.clone()
    network.zero_grad()
    loss = nb.backward(MIM(), network, x, microbatch_size=7, smoothness=Smoothness(0.5, of))  # type: ignore[arg-type]
    assert loss.item() - without.item() == pytest.approx(2.0, rel=1e-9)
    assert torch.equal(network.a.weight.grad, plain)


class Beside(nn.Module):
    """Returns its input, which is not trained, and a layer of it."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = mlp()

    def forward(self, x: Tensor) -> list[Tensor]:
        return [x, self.linear(x)]


def test_smoothness_of_an_output_that_nothing_trains_counts_in_the_value_only() -> None:
    """F(x) = x: R_c is 1."""
    network, x = Beside(), points(20)
    without = nb.backward(MIM(), network, x)
    gradient = grads(network)
    network.zero_grad()
    loss = nb.backward(MIM(), network, x, smoothness=Smoothness(2.0, of=lambda outputs: outputs[0]))
    assert loss.item() - without.item() == pytest.approx(2.0, rel=1e-9)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-14)


def test_slope_is_0_where_only_something_else_has_a_gradient() -> None:
    other = torch.ones(2, requires_grad=True)
    value, gradient = slope(lambda p_z: other.sum(), torch.tensor([0.25, 0.75]))
    assert (value.item(), gradient.tolist()) == (2.0, [0.0, 0.0])
    assert not value.requires_grad
