"""Each tensor that an objective creates has the device and the type of its inputs."""

from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

from neuralbayes import MIM, RunningPrior, smoothness
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial

FACTORIES = (torch.randn, torch.randperm, torch.full, torch.zeros, torch.as_tensor)


class Factories(TorchFunctionMode):
    """Record the requested device and type of new tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.devices: list[Any] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if function in FACTORIES:
            self.devices.append(kwargs.get("device"))
        return function(*args, **kwargs)


@pytest.mark.parametrize("version", [1, 2])
def test_a_uniform_target_is_made_where_the_prior_is(version: int) -> None:
    """Tensors of the meta device have no values, and cannot be added to tensors of another device."""
    p_z = torch.empty(4, 3, 3, device="meta", dtype=torch.float64)
    value = MIM(version=version).prior_term(p_z)
    assert (value.device.type, value.dtype, value.shape) == ("meta", torch.float64, (3, 3))


def test_a_running_prior_is_counted_where_it_is_kept() -> None:
    with Factories() as factories:
        running = RunningPrior()
        running.update(0, torch.tensor([0.5, 0.5]))
    assert factories.devices == [torch.device("cpu")]
    assert running.get_buffer("n_updates_0").dtype == torch.int64


@pytest.mark.parametrize("zeta", ["batch", "sample"])
def test_directions_steps_and_samples_are_drawn_where_the_batch_is(zeta: str) -> None:
    with Factories() as factories:
        smoothness(lambda x: x, torch.ones(6, 2), fraction=0.5, zeta=zeta)
    assert factories.devices == [torch.device("cpu")] * 3


@pytest.mark.parametrize("radius", [0.5, torch.full((6,), 0.5, dtype=torch.float32)], ids=["number", "tensor"])
def test_perturbations_are_drawn_where_the_batch_is_and_in_its_type(radius: float | torch.Tensor) -> None:
    weight = torch.randn(2, 3, dtype=torch.float64)
    with Factories() as factories:
        value = virtual_adversarial(lambda x: x @ weight, torch.ones(6, 2, dtype=torch.float64), radius)
    assert factories.devices == [torch.device("cpu")] * 2
    assert value.dtype == torch.float64
