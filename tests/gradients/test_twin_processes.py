"""Two processes with the same samples give the same result as one: every mean is the same, and every sum is shared.

The second process is simulated: each sum is doubled. `test_process_group.py` uses real processes.
"""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.distributed as dist
from gradient_cases import OBJECTIVES, batch_norm_network, grads, mlp, points
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

import neuralbayes as nb
from neuralbayes import RunningPrior, Smoothness
from neuralbayes.distributed.sums import Processes
from neuralbayes.gradients import exact as gradients
from neuralbayes.gradients.microbatches import microbatches

GROUP = object()


@pytest.fixture
def messages(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The process groups of all messages and of all queries of the size."""
    sent: list[Any] = []

    def all_reduce(tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None) -> None:
        assert tensor.is_contiguous()
        assert op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX)
        sent.append(group)
        if op == dist.ReduceOp.SUM:
            tensor.mul_(2)

    def get_world_size(group: Any = None) -> int:
        sent.append(group)
        return 2

    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", get_world_size)
    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    return sent


def gradient(network: nn.Module, name: str, **options: Any) -> tuple[float, list[Tensor]]:
    torch.manual_seed(3)
    options["marginal"] = RunningPrior() if options["marginal"] == "running" else options["marginal"]
    return float(nb.backward(OBJECTIVES[name](), network, points(20), **options)), grads(network)


@pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
@pytest.mark.parametrize("microbatch_size", [None, 6])
@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("R_c", [None, 1.0, 0.5], ids=["no-R_c", "R_c", "a-part-of-R_c"])
def test_the_gradient_and_the_value_are_those_of_one(
    marginal: str, microbatch_size: int | None, name: str, R_c: float | None, request: Any
) -> None:
    smoothness = None if R_c is None else Smoothness(beta=0.3, fraction=R_c)
    options = {"marginal": marginal, "microbatch_size": microbatch_size, "smoothness": smoothness}
    alone = gradient(mlp(), name, **options)
    sent = request.getfixturevalue("messages")
    twin = gradient(mlp(), name, process_group=GROUP, **options)
    assert twin[0] == pytest.approx(alone[0], rel=1e-12)
    for ours, expected in zip(twin[1], alone[1], strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-13)
    assert set(map(id, sent)) == {id(GROUP)}


@pytest.mark.parametrize("name", ["mim-v2", "dml"])
@pytest.mark.parametrize("R_c", [None, 1.0, 0.5], ids=["no-R_c", "R_c", "a-part-of-R_c"])
def test_batch_normalisation_sees_both(name: str, R_c: float | None, request: Any) -> None:
    smoothness = None if R_c is None else Smoothness(beta=0.3, fraction=R_c)
    options = {"marginal": "exact", "microbatch_size": 7, "smoothness": smoothness}
    alone = gradient(batch_norm_network(), name, **options)
    request.getfixturevalue("messages")
    twin = gradient(batch_norm_network(), name, **options)
    assert twin[0] == pytest.approx(alone[0], rel=1e-12)
    for ours, expected in zip(twin[1], alone[1], strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-13)


def test_gradients_that_were_there_are_not_summed_over_the_processes(messages: list[Any]) -> None:
    network = mlp()
    _, fresh = gradient(network, "dml", marginal="exact", microbatch_size=6)
    network.zero_grad()
    for p in network.parameters():
        p.grad = torch.ones_like(p)
    _, added = gradient(network, "dml", marginal="exact", microbatch_size=6)
    for ours, expected in zip(added, fresh, strict=True):
        torch.testing.assert_close(ours, expected + 1, rtol=0, atol=1e-13)


def test_a_parameter_that_takes_no_part_has_a_gradient_of_0_on_each(messages: list[Any]) -> None:
    network = mlp()
    network.register_parameter("unused", nn.Parameter(torch.ones(3, dtype=torch.float64)))
    nb.backward(OBJECTIVES["dml"](), network, points(20), microbatch_size=6)
    assert network.unused.grad.tolist() == [0.0, 0.0, 0.0]


class Calls(nn.Module):
    """Count the calls of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.network, self.n = mlp(), 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        result: Tensor = self.network(x)
        return result


@pytest.mark.parametrize("n_processes", [1, 2])
def test_a_piece_without_weight_is_perturbed_only_where_others_may_wait_for_its_statistics(
    n_processes: int, request: pytest.FixtureRequest
) -> None:
    """Two pieces of seven samples, the first without weight: two clean passes, and one or two perturbed passes."""
    if n_processes == 2:
        request.getfixturevalue("messages")
    network, weight = Calls(), torch.cat([torch.zeros(7), torch.ones(7)])
    nb.backward(
        OBJECTIVES["dml"](),
        network,
        points(14),
        microbatch_size=7,
        marginal="minibatch",
        smoothness=Smoothness(),
        sample_weight=weight,
    )
    assert network.n == 2 + n_processes


@pytest.mark.parametrize(
    ("n_processes", "fraction", "own"), [(1, 1.0, False), (1, 0.5, True), (2, 1.0, False), (2, 0.5, False)]
)
def test_statistics_of_one_process_are_recorded_for_a_part_of_its_batch_where_there_is_one_process(
    n_processes: int, fraction: float, own: bool, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if n_processes == 2:
        request.getfixturevalue("messages")
    recorded, record = [], gradients.recorded_statistics

    def spy(network: nn.Module, enabled: bool) -> Any:
        recorded.append(enabled)
        return record(network, enabled)

    monkeypatch.setattr(gradients, "recorded_statistics", spy)
    options = {"marginal": "exact", "microbatch_size": None, "smoothness": Smoothness(fraction=fraction)}
    gradient(batch_norm_network(), "dml", **options)
    assert recorded == [own]


def test_the_perturbed_pass_shares_its_statistics_too(messages: list[Any]) -> None:
    """Each pass through two batch normalisations sends as many messages: only clean, or clean and perturbed."""
    sent = []
    for smoothness in (None, Smoothness()):
        messages.clear()
        gradient(batch_norm_network(), "mim-v2", marginal="minibatch", microbatch_size=None, smoothness=smoothness)
        sent.append(len(messages))
    messages.clear()
    gradient(mlp(), "mim-v2", marginal="minibatch", microbatch_size=None)
    assert sent[1] - sent[0] == sent[0] - len(messages) > 0


def test_a_piece_that_fills_up_takes_no_part_in_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two samples here and three there, one at a time: the third piece only takes part in the sums."""

    def all_reduce(tensor: Tensor, op: Any = dist.ReduceOp.SUM, group: Any = None) -> None:
        tensor.fill_(3) if op == dist.ReduceOp.MAX else tensor.mul_(2)

    present, share = [], gradients.shared_statistics

    def spy(network: nn.Module, total: Any, counts: bool) -> Any:
        present.append(counts)
        return share(network, total, counts)

    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda group=None: 2)
    monkeypatch.setattr(dist, "all_reduce", all_reduce)
    monkeypatch.setattr(gradients, "shared_statistics", spy)
    nb.backward(OBJECTIVES["mim-v2"](), mlp(), points(2), microbatch_size=1, marginal="minibatch")
    assert present == [True, True, False]


def test_gradients_of_shards_are_scaled_and_the_others_summed(monkeypatch: pytest.MonkeyPatch) -> None:
    """FSDP2 has averaged the gradients of shards, here all with one dimension, over the five processes."""

    class Five(Processes):
        size = 5

        def __init__(self) -> None:
            pass

        def sum_all(self, tensors: Sequence[Tensor]) -> list[Tensor]:
            return [tensor + 100 for tensor in tensors]

    monkeypatch.setattr("neuralbayes.distributed.sums.is_sharded", lambda tensor: tensor.ndim == 1)
    parameters = [nn.Parameter(torch.zeros(shape)) for shape in ((2, 2), (2,), (1, 2), (3,))]
    for p in parameters[:-1]:
        p.grad = torch.ones_like(p)
    made = Five().summed_gradients(parameters)
    assert [g.unique().tolist() for g in made] == [[101.0], [5.0], [101.0], [0.0]]
    assert [g.shape for g in made] == [p.shape for p in parameters]


def test_weights_and_numbers_of_samples_lie_on_the_device_of_the_batch(messages: list[Any]) -> None:
    devices = []

    class Devices(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if function in (torch.tensor, torch.ones):
                devices.append((kwargs or {}).get("device"))
            return function(*args, **(kwargs or {}))

    batch = points(4)
    with Devices():
        microbatches(mlp(), batch, 2, None, Processes(None))
    assert devices == [batch.device] * 2
