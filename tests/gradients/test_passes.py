"""Passes over one micro-batch: outputs too large for one piece, slopes by hand, and the number of passes."""

import pytest
import torch
from gradient_cases import OBJECTIVES, grads, mlp, points, whole_batch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, Objective, Smoothness
from neuralbayes.gradients.passes import PART_BYTES


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


# How many passes


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
    calls: list[bool] = []  # whether gradients were recorded
    network.register_forward_hook(lambda _module, _inputs, output: calls.append(output.requires_grad))
    nb.backward(objective(), network, points(10), microbatch_size=size, marginal=marginal, recompute=recompute)  # type: ignore[arg-type]
    assert calls == expected


# The perturbed pass


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
