"""`backward(..., recompute=True)`: less memory, the same gradient."""

import pytest
import torch
from gradient_cases import (
    CountByAssignment,
    CountInPlace,
    SharedBatchNorm,
    batch_norm_network,
    grads,
    mlp,
    plain_dropout_network,
    points,
    spectral_norm_network,
)
from process_cases import STATUS, in_child, peak_of
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.networks.encoders import convolutional_encoder
from neuralbayes.networks.hidden import HiddenStates

REMEMBERING = [batch_norm_network, spectral_norm_network, SharedBatchNorm, CountInPlace, CountByAssignment]
STATES = ["relu1", "relu2", "relu3", "relu4"]


def both(network: nn.Module, x: Tensor, objective: nb.Objective, **options: object) -> None:
    """Assert that value, gradient and buffers do not depend on `recompute`."""
    state = {k: v.clone() for k, v in network.state_dict().items()}
    found = []
    for recompute in (False, True):
        network.load_state_dict(state)
        network.zero_grad()
        torch.manual_seed(3)
        loss = nb.backward(objective, network, x, recompute=recompute, **options)  # type: ignore[arg-type]
        buffers = [b.flatten().double() for b in network.buffers()]
        found.append(torch.cat([loss.reshape(1), grads(network), *buffers]))
    assert float(found[0][1:].abs().max()) > 0
    torch.testing.assert_close(found[1], found[0], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("marginal", ["exact", "minibatch"])
@pytest.mark.parametrize("fraction", [None, 1.0, 0.5])
@pytest.mark.parametrize("make", [mlp, plain_dropout_network, *REMEMBERING])
def test_value_gradient_and_buffers_are_the_same(make: type[nn.Module], fraction: float | None, marginal: str) -> None:
    if make is plain_dropout_network and fraction == 0.5:
        pytest.skip("refused")
    smoothness = None if fraction is None else nb.Smoothness(2.0, "logits", fraction=fraction)
    both(make(), points(20), nb.DML(), microbatch_size=7, marginal=marginal, smoothness=smoothness)


def peak(recompute: bool) -> int:
    """Kilobytes for a gradient with R_c of all hidden states."""
    torch.set_num_threads(1)
    states = HiddenStates(convolutional_encoder((48, 32, 32, 32)), STATES)
    x = torch.randn(48, 3, 32, 32)

    def step(x: Tensor) -> None:
        nb.backward(nb.MIM(), states, x, smoothness=nb.Smoothness(), recompute=recompute)

    step(x[:2])
    return peak_of(lambda: step(x))


@pytest.mark.skipif(not STATUS.exists(), reason="the peak of a process is read from Linux's /proc")
def test_the_memory_is_less_than_three_quarters() -> None:
    kept, recomputed = in_child(peak, False), in_child(peak, True)
    assert kept > 30_000  # enough to compare
    assert recomputed < 3 / 4 * kept
