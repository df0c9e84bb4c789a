"""Training and embedding on a device other than the CPU: all tensors are there, with the same numbers."""

import os
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from image_cases import bars
from other_device import other_device
from process_cases import child, made_once
from torch import Tensor, nn
from torch.utils._pytree import tree_map

import neuralbayes as nb
from neuralbayes import DML, MIM, RunningPrior, Smoothness, WeightedSum, training
from neuralbayes.clusters.training import smooth_step
from neuralbayes.data.sources import ArraySource
from neuralbayes.features.encoder import state_use
from neuralbayes.training import Batches, train

IMAGES, _ = bars(20)
TINY = {"encoder": "tiny", "batch_size": 10, "epochs": 1}
Result = dict[str, Tensor]


class TwoOutputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(4, 6, bias=False), nn.BatchNorm1d(6), nn.ReLU())
        self.second = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> list[Tensor]:
        hidden = self.first(x)
        return [hidden, self.second(hidden)]


def fabric_on(device: torch.device) -> Any:
    """A stand-in for a launched Fabric with one process."""

    def to_device(value: Any) -> Any:
        if isinstance(value, nn.Module):
            return value.to(device)
        return tree_map(lambda x: x.to(device) if isinstance(x, Tensor) else x, value)

    fabric = mock.Mock(world_size=1, global_rank=0, is_global_zero=True, device=device)
    fabric.strategy.precision.precision = "32-true"
    fabric.to_device = to_device
    fabric.autocast = nullcontext
    fabric.broadcast = lambda value: value
    return fabric


def gradients(network: nn.Module) -> Result:
    return {name: p.grad for name, p in network.named_parameters() if p.grad is not None} | dict(
        network.named_buffers()
    )


def gradient_of_backward(device: torch.device, **settings: Any) -> Result:
    network = TwoOutputs().to(device)
    x, weight = torch.randn(9, 4).to(device), torch.rand(9).to(device)
    objective = WeightedSum([MIM(target_prior=[0.5, 0.1, 0.1, 0.1, 0.1, 0.1]), DML()], weights=[0.5, 2.0])
    monitored: list[Tensor] = []
    smoothness = Smoothness(0.5, fraction=settings.pop("fraction", 1.0))
    loss = nb.backward(
        objective,
        network,
        x,
        smoothness=smoothness,
        sample_weight=weight,
        monitor=monitored.extend,
        **{"microbatch_size": 4} | settings,
    )
    return gradients(network) | {"loss": loss, "monitored": monitored[0]}


def virtual_adversarial_step(device: torch.device) -> Result:
    network = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)).to(device)
    batch = torch.randn(9, 4).to(device), torch.rand(9).to(device)
    metrics = smooth_step(network, batch, objective=DML())
    return gradients(network) | metrics


def several_objectives(device: torch.device) -> Result:
    x = torch.randn(24, 4)
    network = TwoOutputs()
    objective = WeightedSum([MIM(), DML()], weights=[1.0, 0.5])
    running = RunningPrior()

    def step(module: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        return {"loss": nb.backward(objective, module, batch, microbatch_size=4, marginal=running)}

    train(
        network,
        step,
        Batches(24, 8),
        fetch=lambda indices: x[indices],
        optimizer=torch.optim.Adam(network.parameters()),
        max_epochs=2,
        clip_norm=0.1,
        callbacks=[training.StopOnNaN()],
        stateful={"running": running},
        fabric=fabric_on(device),
    )
    return dict(network.state_dict())


def features(device: torch.device) -> Result:
    config = nb.PretrainConfig(**TINY, microbatch_size=5, smooth_fraction=0.5, beta=0.5)
    encoder = nb.pretrain(IMAGES, config, fabric=fabric_on(device))
    use = state_use(encoder, ArraySource(IMAGES))["relu4"]
    assert {p.device.type for p in encoder.parameters()} == {device.type}
    return dict(encoder.state_dict()) | {"features": torch.from_numpy(encoder.features(IMAGES)), "p_z": use.p_z}


WORK: dict[str, Callable[[torch.device], Result]] = {
    "backward, exact": lambda device: gradient_of_backward(device, marginal="exact"),
    "backward, exact, recomputed": lambda device: gradient_of_backward(device, recompute=True),
    "backward, minibatch": lambda device: gradient_of_backward(device, marginal="minibatch"),
    "backward, running": lambda device: gradient_of_backward(device, marginal="running"),
    "backward, a part of R_c": lambda device: gradient_of_backward(device, fraction=0.5, microbatch_size=None),
    "virtual adversarial": virtual_adversarial_step,
    "several objectives": several_objectives,
    "pretrain and embed": features,
}


def done(name: str, device: torch.device) -> Result:
    torch.manual_seed(0)
    return {key: tensor.detach().cpu() for key, tensor in WORK[name](device).items()}


def mistakes(device: torch.device) -> dict[str, Callable[[], Any]]:
    """Mistakes that the tests should find."""
    x = torch.ones(4, 2, device=device)
    return {
        "noise": lambda: x + torch.randn(4, 2),
        "in place": lambda: x.add_(torch.ones(2)),
        "an index from there": lambda: torch.eye(2)[torch.zeros(3, dtype=torch.long, device=device)],
        "a network that was not moved": lambda: nn.Linear(2, 3)(x),
        "no copy": lambda: x.numpy(),
    }


def elsewhere(path: Path) -> None:
    """All work on the other device, in a new process, and its messages about mistakes."""
    torch.set_num_threads(1)
    device = other_device()
    results: dict[str, Any] = {"mistakes": {}}
    for name, function in [*mistakes(device).items(), *((name, partial(done, name, device)) for name in WORK)]:
        part = results if name in WORK else results["mistakes"]
        try:
            part[name] = function()
        except Exception as error:
            part[name] = f"{type(error).__name__}: {error}"
    torch.save(results, path)
    os._exit(0)  # the threads of torch for a Python device do not end in order


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    def start(folder: Path) -> None:
        process = child(elsewhere, folder / "found.pt")
        process.join(300)
        assert process.exitcode == 0

    results: dict[str, Any] = torch.load(
        made_once(tmp_path_factory, "elsewhere", start) / "found.pt", weights_only=True
    )
    return results


@pytest.mark.parametrize("name", WORK)
def test_it_works_elsewhere_with_the_numbers_of_the_cpu(name: str, found: dict[str, Any]) -> None:
    ours = found[name]
    assert isinstance(ours, dict), ours
    expected = done(name, torch.device("cpu"))
    assert ours.keys() == expected.keys()
    for key, tensor in expected.items():
        torch.testing.assert_close(ours[key], tensor, rtol=1e-3, atol=1e-3)  # Adam enlarges rounding errors


def test_tensors_on_two_devices_are_found(found: dict[str, Any]) -> None:
    """The tests above can fail."""
    for name in mistakes(torch.device("cpu")):
        expected = "numpy" if name == "no copy" else "Expected all tensors to be on the same device"
        assert expected in found["mistakes"][name], name
