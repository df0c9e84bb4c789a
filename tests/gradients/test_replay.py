"""Calling a network again in the same state: buffers and batch statistics."""

import pytest
import torch
from torch import Tensor, nn

from neuralbayes.gradients.batch_statistics import given_statistics, recorded_statistics
from neuralbayes.gradients.passes import frozen_buffers

# Buffers


def test_frozen_buffers_do_not_break_a_graph_that_waits_for_its_backward_pass() -> None:
    """In evaluation mode, the running statistics are part of the graph."""
    network = nn.BatchNorm1d(3).eval()
    loss = network(torch.randn(4, 3)).square().sum()
    with frozen_buffers(network):
        network.train()(torch.randn(4, 3))
    loss.backward()
    assert network.weight.grad is not None


# Batch statistics


def test_a_batch_normalisation_without_running_statistics_is_recorded_in_evaluation_too() -> None:
    network = nn.Sequential(nn.BatchNorm1d(3, track_running_stats=False).eval())
    x: Tensor = torch.randn(6, 3)
    with recorded_statistics(network) as statistics:
        expected = network(x)
    with given_statistics(statistics):
        torch.testing.assert_close(network(x[:1]), expected[:1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["autocast", "whole network"])
def test_statistics_of_half_precision_are_float32(dtype: torch.dtype) -> None:
    """Autocast keeps the weights in float32 if the input is bfloat16; a whole network may be bfloat16, too."""
    network, x = nn.Sequential(nn.BatchNorm1d(3)).to(dtype), (torch.randn(50, 3) + 3.0).bfloat16().requires_grad_()
    with recorded_statistics(network) as statistics:
        expected = network(x)
    (((mean, variance),),) = statistics.values()
    torch.testing.assert_close(mean.double(), x.double().mean(0), rtol=1e-6, atol=0.0)
    torch.testing.assert_close(variance.double(), x.double().var(0, correction=0), rtol=1e-5, atol=0.0)
    with given_statistics(statistics):
        ours = network(x[:5].detach())
    torch.testing.assert_close(ours, expected[:5], rtol=2e-2, atol=2e-2)
    (gradient,) = torch.autograd.grad(ours[:, 0].float().sum(), x)
    assert gradient.dtype == torch.bfloat16
    assert float(gradient[5:, 0].abs().min()) > 0.0
