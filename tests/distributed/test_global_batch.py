"""Steps on the batch of three processes: gradients, also of a process without samples, and the loop's checks."""

import copy
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from process_cases import made_once, results_of_group, results_of_ranks
from torch import Tensor, nn

from neuralbayes import DML, MIM, backward
from neuralbayes.baselines.headed import classify
from neuralbayes.baselines.infomax import InfoMax, InfoMaxConfig
from neuralbayes.baselines.infomax import _step as infomax_step
from neuralbayes.baselines.rotation import _step as rotation_step
from neuralbayes.clusters.smooth_step import smooth_step
from neuralbayes.data.normalize import Normalization
from neuralbayes.distributed.dealing import share
from neuralbayes.distributed.global_batch import global_batch
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import Batches, train

if not dist.is_available() or not dist.is_gloo_available():
    pytest.skip("this torch has no gloo", allow_module_level=True)

WORLD = 3
SIZES = (7, 2)  # batch sizes; in the second batch, one of three processes has no sample


def normed_mlp() -> nn.Module:
    layers = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)
    return nn.Sequential(*layers)


def convolution() -> nn.Module:
    layers = nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4)
    return nn.Sequential(*layers)


def infomax_network(estimator: Any) -> nn.Module:
    shape = (24, 24, 1)
    normalization = Normalization("channel", np.zeros((1, 1, 1)), np.ones((1, 1, 1)))
    config = InfoMaxConfig(estimator=estimator, global_weight=0.5, code_size=3, units=4)
    return InfoMax(ImageEncoder("tiny", shape, normalization), config)


Case = tuple[Callable[[], nn.Module], Callable[[nn.Module, Any], dict[str, Tensor]], Callable[[int], Any]]
ROWS = lambda n: (torch.randn(n, 4), torch.rand(n))  # noqa: E731
CASES: dict[str, Case] = {
    "information by MIM": (normed_mlp, smooth_step(MIM(3.0, version=1), 0.1), ROWS),
    "information by DML": (normed_mlp, smooth_step(DML(), 0.5, n_iterations=2, step=2.0), ROWS),
    "labels": (
        convolution,
        lambda network, b: classify(network, *b),
        lambda n: (torch.randn(n, 1, 4, 4), torch.arange(n) % 4),
    ),
    "rotation": (convolution, rotation_step, lambda n: torch.randn(n, 1, 4, 4)),
    "jsd": (lambda: infomax_network("jsd"), infomax_step, lambda n: torch.randn(n, 1, 24, 24)),
    "infonce": (lambda: infomax_network("infonce"), infomax_step, lambda n: torch.randn(n, 1, 24, 24)),
}


def result(name: str, n: int, rank: int = 0, world: int = 1) -> dict[str, Tensor]:
    """Gradients, buffers and metrics of a step on a share of `n` samples; metrics are multiplied by the share."""
    make, step, data = CASES[name]
    torch.manual_seed(0)
    network, batch = make().double(), data(n)
    batch = batch if isinstance(batch, tuple) else (batch,)
    own = [share(t.double() if t.is_floating_point() else t, rank, world) for t in batch]
    torch.manual_seed(1)
    metrics = step(network, own[0] if len(own) == 1 else tuple(own))
    found = {f"gradient of {key}": p.grad for key, p in network.named_parameters() if p.grad is not None}
    found |= dict(network.named_buffers())
    weight = len(own[0]) / n
    return found | {
        f"metric {key}": weight * value.detach() if weight else 0.0 * value.detach() for key, value in metrics.items()
    }


def local(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    loss = network(batch).square().mean()
    loss.backward()
    return {"loss": loss}


def global_step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
    return {"loss": backward(MIM(), network, batch)}


def one_bit_off(network: Any, batch: Tensor) -> dict[str, Tensor]:
    metrics = global_step(network, batch)
    if dist.get_rank() == 1:
        gradient = network[0].weight.grad
        gradient[1, 0] = torch.nextafter(gradient[1, 0], torch.tensor(1.0))
    return metrics


def exchanged(network: Any, batch: Tensor) -> dict[str, Tensor]:
    metrics = global_step(network, batch)
    if dist.get_rank() == 1:
        network[0].bias.grad = network[0].bias.grad.flip(0)
    return metrics


def without_gradient(network: Any, batch: Tensor) -> dict[str, Tensor]:
    metrics = global_step(network, batch)
    network[0].bias.grad = None if dist.get_rank() == 1 else torch.zeros(2)
    return metrics


STEPS = {
    "local": local,
    "one bit off": one_bit_off,
    "exchanged": exchanged,
    "without gradient": without_gradient,
    "global": global_step,
}


def trained(step: Callable[..., Any], fabric: Fabric, batches: Batches) -> str:
    """The error that a training of three steps ends with on this process, and its step."""
    torch.manual_seed(0)
    x = torch.randn(9, 2)
    network = nn.Sequential(nn.Linear(2, 2))
    before = copy.deepcopy(network)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    try:
        train(network, step, batches, fetch=lambda i: x[i], optimizer=optimizer, max_steps=3, fabric=fabric)
    except ValueError as error:
        same = all(torch.equal(a, b) for a, b in zip(network.parameters(), before.parameters(), strict=True))
        return f"{error} / {error.__notes__ if hasattr(error, '__notes__') else ''} / weights as before: {same}"
    return ""


def order(fabric: Fabric) -> list[list[int]]:
    """The samples that this process sees if every process has batches in its own order."""
    seen: list[list[int]] = []

    def fetch(indices: Tensor) -> Tensor:
        seen.append(indices.tolist())
        return torch.ones(len(indices), 2)

    network = nn.Sequential(nn.Linear(2, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    batches = Batches(9, 9, seed=fabric.global_rank)
    train(network, global_step, batches, fetch=fetch, optimizer=optimizer, max_steps=2, fabric=fabric)
    return seen


def in_one_of_three(rank: int) -> dict[str, Any]:
    results: dict[str, Any] = {f"{name}, {n}": result(name, n, rank, WORLD) for name in CASES for n in SIZES}
    fabric = mock.Mock(
        spec=Fabric, world_size=WORLD, global_rank=rank, is_global_zero=rank == 0, device=torch.device("cpu")
    )
    fabric.strategy.precision.precision = "32-true"
    fabric.to_device = lambda x: x
    fabric.autocast = lambda: torch.autocast("cpu", enabled=False)
    fabric.broadcast = broadcast
    for name, step in STEPS.items():
        results[name] = trained(step, fabric, Batches(9, 9))
    results["other samples"] = trained(global_step, fabric, Batches(9 + rank, 9))
    results["order"] = order(fabric)
    return results


def broadcast(value: Any) -> Any:
    box = [value]
    dist.broadcast_object_list(box)
    return box[0]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return results_of_ranks(
        made_once(tmp_path_factory, "three", lambda folder: results_of_group(folder, in_one_of_three, WORLD)), WORLD
    )


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", CASES)
def test_a_step_has_the_gradient_and_the_statistics_of_the_whole_batch(
    name: str, n: int, ranks: list[dict[str, Any]]
) -> None:
    """Noise for the prior of Deep InfoMax, and all other noise, is drawn for the whole batch."""
    expected = result(name, n)
    assert any(tensor.abs().max() > 1e-3 for key, tensor in expected.items() if "gradient" in key)
    for found in (rank[f"{name}, {n}"] for rank in ranks):
        assert found.keys() == expected.keys()
        for key, tensor in expected.items():
            if "metric" not in key:
                torch.testing.assert_close(
                    found[key], tensor, rtol=1e-9, atol=1e-10, msg=lambda text, key=key: f"{key}: {text}"
                )
    for key in (key for key in expected if "metric" in key):  # the loop averages over all samples
        assert float(sum(rank[f"{name}, {n}"][key] for rank in ranks)) == pytest.approx(float(expected[key]), rel=1e-9)


@pytest.mark.parametrize("name", ["local", "one bit off", "exchanged", "without gradient"])
def test_gradients_that_differ_between_processes_end_training_on_all(name: str, ranks: list[dict[str, Any]]) -> None:
    """The error comes before the first update and says what to do."""
    for rank in ranks:
        assert "`step` must leave the gradient of the batch of all 3 processes" in rank[name]
        assert "neuralbayes.backward" in rank[name]
        assert "global_batch" in rank[name]
        assert "in training step 1" in rank[name]
        assert "weights as before: True" in rank[name]


def test_the_gradient_of_the_global_batch_is_what_training_wants(ranks: list[dict[str, Any]]) -> None:
    assert [rank["global"] for rank in ranks] == [""] * WORLD


def test_shares_are_shares_of_one_batch_whatever_seeds_the_processes_have(ranks: list[dict[str, Any]]) -> None:
    for step in range(2):
        assert sorted(index for rank in ranks for index in rank["order"][step]) == list(range(9))


def test_other_samples_on_each_process_are_refused(ranks: list[dict[str, Any]]) -> None:
    for rank in ranks:
        assert "`batches` must be the same on every process" in rank["other samples"]
        assert "n_samples=11" in rank["other samples"]


def test_one_process_is_the_whole_batch() -> None:
    network, x = nn.Linear(2, 3), torch.randn(5, 2)
    with global_batch(network, x) as batch:
        assert (batch.n_samples, batch.n_processes, batch.share) == (5, 1, 1.0)
        assert batch.samples is x
        assert batch.gathered(x) is x
        torch.manual_seed(3)
        noise = batch.noise(x)
    torch.manual_seed(3)
    assert torch.equal(noise, torch.randn(5, 2))


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        ((torch.ones(3, 2), torch.ones(2)), r"tensors with one length.*\(3, 2\), \(2,\)"),
        (torch.ones(0, 2), "at least one sample"),
    ],
)
def test_samples_that_are_no_batch_are_named(samples: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message), global_batch(nn.Linear(2, 3), samples):
        pass
