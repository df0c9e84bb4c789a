"""The library's step computes the same as the paper's equations taken literally."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import nn

from neuralbayes.networks.encoders import convolutional_encoder
from neuralbayes.networks.hidden import HiddenStates

PATH = Path(__file__).parents[2] / "benchmarks" / "step.py"


@pytest.fixture(scope="module")
def step() -> ModuleType:
    spec = importlib.util.spec_from_file_location("step_benchmark", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def gradients(network: nn.Module) -> torch.Tensor:
    found = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
    network.zero_grad()
    return found


@pytest.mark.parametrize(
    ("dtype", "memory_format", "tolerance"),
    [
        (torch.float32, torch.contiguous_format, 1e-4),
        (torch.float64, torch.contiguous_format, 1e-5),  # epsilon of the literal step
        (torch.float64, torch.channels_last, 1e-5),
    ],
)
def test_value_and_gradient_equal_those_of_the_literal_step(
    step: ModuleType, dtype: torch.dtype, memory_format: torch.memory_format, tolerance: float
) -> None:
    states = HiddenStates(convolutional_encoder((16, 32, 32, 48)), step.STATES).to(dtype)
    x = torch.randn(12, 3, 32, 32, dtype=dtype)
    torch.manual_seed(1)
    torch.randint(2**62, (1,))  # the seed that `backward` draws first
    expected = step.literal_step(states, x)
    expected_gradients = gradients(states)
    states.to(memory_format=memory_format)
    torch.manual_seed(1)
    loss = step.our_step(states, x.contiguous(memory_format=memory_format), 1.0)
    torch.testing.assert_close(loss, expected, rtol=tolerance, atol=0.0)
    difference = (gradients(states) - expected_gradients).norm() / expected_gradients.norm()
    assert difference < tolerance
