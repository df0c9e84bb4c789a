"""Calling a network again in the same state: buffers, random numbers, batch statistics."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from neuralbayes.gradients.batch_statistics import given_statistics, recorded_statistics
from neuralbayes.gradients.passes import frozen_buffers, seeded

CPU = torch.device("cpu")


# Buffers


def test_frozen_buffers_do_not_break_a_graph_that_waits_for_its_backward_pass() -> None:
    """In evaluation mode, the running statistics are part of the graph."""
    network = nn.BatchNorm1d(3).eval()
    loss = network(torch.randn(4, 3)).square().sum()
    with frozen_buffers(network):
        network.train()(torch.randn(4, 3))
    loss.backward()
    assert network.weight.grad is not None


# Random numbers


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: torch.rand(1), True),
        (lambda: torch.randn(1), True),
        (lambda: torch.randint(2, ()), True),
        (lambda: nn.functional.dropout(torch.ones(1), 0.5), True),
        (lambda: nn.functional.dropout(torch.ones(1), 0.0), False),
        (lambda: torch.rand(1, generator=torch.Generator()), False),
        (lambda: torch.ones(1), False),
    ],
)
def test_seeded_says_whether_random_numbers_were_drawn(draw: Callable[[], Tensor], expected: bool) -> None:
    torch.randn(3)  # an odd number of normals, so the generator keeps one
    with seeded(7, CPU) as drawn:
        assert not drawn()
        draw()
        assert drawn() is expected


# Batch statistics


def test_recorded_statistics_are_those_of_the_batch() -> None:
    network, x = nn.Sequential(nn.BatchNorm2d(2)), torch.randn(4, 2, 5, 5)
    with recorded_statistics(network) as statistics:
        network(x)
    (((mean, variance),),) = statistics.values()
    torch.testing.assert_close(mean.flatten(), x.mean((0, 2, 3)))
    torch.testing.assert_close(variance.flatten(), x.var((0, 2, 3), correction=0))


@pytest.mark.parametrize("affine", [True, False])
def test_given_its_own_statistics_a_network_computes_the_same(affine: bool) -> None:
    network = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, eps=1e-3, affine=affine), nn.Flatten()).double()
    if affine:
        nn.init.normal_(network[1].weight)
        nn.init.normal_(network[1].bias)
    x = torch.randn(4, 2, 5, 5, dtype=torch.float64)
    with recorded_statistics(network) as statistics:
        expected = network(x)
    with given_statistics(statistics):
        torch.testing.assert_close(network(x), expected, rtol=0, atol=1e-12)


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
