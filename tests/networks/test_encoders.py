"""The paper's encoder: its convolutions are the same function in every memory format."""

import pytest
import torch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.networks.encoders import convolutional_encoder
from neuralbayes.networks.hidden import HiddenStates

WIDE = (8, 8, 480, 256)  # its last kernel, of more than 4 MB, does not stay in the cache


def encoder(channels_last: bool, batch_norm: bool = True) -> nn.Sequential:
    torch.manual_seed(1)
    network = convolutional_encoder(WIDE, 2, batch_norm).double()
    return network.to(memory_format=torch.channels_last) if channels_last else network  # type: ignore[call-overload]


def images(channels_last: bool, size: int) -> Tensor:
    x = torch.randn(5, 2, size, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return x.contiguous(memory_format=torch.channels_last) if channels_last else x


@pytest.mark.parametrize("size", [22, 32], ids=["to 1x1", "to 3x3"])
@pytest.mark.parametrize("batch_norm", [False, True])
def test_outputs_and_derivatives_of_both_orders_are_those_of_the_other_format(size: int, batch_norm: bool) -> None:
    found = []
    for channels_last in (False, True):
        network, x = encoder(channels_last, batch_norm), images(channels_last, size).requires_grad_()
        output = network(x)
        (of_x,) = torch.autograd.grad(output.square().mean(), x, create_graph=True)
        of_x.square().sum().backward()
        found.append([output, of_x, *(p.grad for p in network.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("fraction", [1.0, 0.4])
@pytest.mark.parametrize("recompute", [False, True])
def test_a_step_with_smoothness_has_the_gradient_of_the_other_format(fraction: float, recompute: bool) -> None:
    found = []
    for channels_last in (False, True):
        states = HiddenStates(encoder(channels_last), ["relu1", "relu4"])
        torch.manual_seed(3)
        R_c = nb.Smoothness(2.0, fraction=fraction)
        loss = nb.backward(
            nb.MIM(), states, images(channels_last, 32), microbatch_size=3, smoothness=R_c, recompute=recompute
        )
        found.append([loss, *(p.grad for p in states.parameters())])
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-10)
