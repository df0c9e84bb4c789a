"""Tensors that two processes hold shards of: gathered, sharded again, loaded."""

from typing import Any

import pytest
import torch
import torch.distributed as dist
from process_cases import made_once, results_of_group, results_of_ranks
from torch import Tensor, nn

from neuralbayes.distributed.sharding import any_sharded, gathered, is_sharded, load_network, load_optimizer, scattered

needs_gloo = pytest.mark.skipif(
    not dist.is_available() or not dist.is_gloo_available(), reason="this torch has no gloo"
)


def whole() -> Tensor:
    """Three rows: two for the first process, one for the second."""
    return torch.arange(6.0).reshape(3, 2)


def network() -> nn.Linear:
    torch.manual_seed(1)
    return nn.Linear(2, 3)


def optimizer_of(layer: nn.Module) -> torch.optim.Optimizer:
    """The state after one step on a gradient that every process has."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.5)
    layer(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    return optimizer


def in_one_of_two(rank: int) -> dict[str, Any]:
    from torch.distributed.fsdp import fully_shard

    layer = network()
    plain = any_sharded(layer)
    fully_shard(layer)
    shard = scattered(whole(), layer.weight)
    tree = {"list": [shard, 3], "tuple": (shard, "x"), "plain": torch.ones(2), "inner": {"shard": shard}}
    found: dict[str, Any] = {
        "sharded": [is_sharded(layer.weight), is_sharded(layer.weight.to_local()), plain, any_sharded(layer)],
        "local": shard.to_local(),
        "other shape": is_sharded(scattered(torch.ones(2), layer.weight)),
        "gathered": gathered(tree),
    }
    load_network(layer, {"weight": whole(), "bias": torch.tensor([7.0, 8.0, 9.0])})
    found["loaded"] = [layer.weight.to_local(), layer.bias.to_local(), gathered(layer.state_dict())]

    kept = optimizer_of(network()).state_dict()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.125)
    load_optimizer(optimizer, kept)
    state = optimizer.state[layer.weight]
    found["optimizer"] = [is_sharded(state["exp_avg"]), is_sharded(state["step"]), state["exp_avg"].to_local()]
    found["optimizer again"] = gathered(optimizer.state_dict())
    return found


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The results of the two processes."""
    return results_of_ranks(
        made_once(tmp_path_factory, "sharding", lambda folder: results_of_group(folder, in_one_of_two, 2))
    )


@needs_gloo
def test_sharded_tensors_and_networks_are_told_from_others(ranks: list[dict[str, Any]]) -> None:
    for found in ranks:
        assert found["sharded"] == [True, False, False, True]


@needs_gloo
def test_each_process_gets_its_rows_of_a_whole_tensor(ranks: list[dict[str, Any]]) -> None:
    assert [found["local"].tolist() for found in ranks] == [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]]


@needs_gloo
def test_a_tensor_of_another_shape_is_not_sharded(ranks: list[dict[str, Any]]) -> None:
    assert [found["other shape"] for found in ranks] == [False, False]


@needs_gloo
def test_containers_are_gathered_whole_on_every_process(ranks: list[dict[str, Any]]) -> None:
    for found in ranks:
        tree = found["gathered"]
        assert list(tree) == ["list", "tuple", "plain", "inner"]
        assert isinstance(tree["list"], list)
        assert isinstance(tree["tuple"], tuple)
        assert (tree["list"][1], tree["tuple"][1]) == (3, "x")
        assert tree["plain"].tolist() == [1.0, 1.0]
        for tensor in (tree["list"][0], tree["tuple"][0], tree["inner"]["shard"]):
            assert torch.equal(tensor, whole())


@needs_gloo
def test_whole_weights_are_loaded_into_a_sharded_network(ranks: list[dict[str, Any]]) -> None:
    for found, rows in zip(ranks, (slice(0, 2), slice(2, 3)), strict=True):
        weight, bias, again = found["loaded"]
        assert torch.equal(weight, whole()[rows])
        assert bias.tolist() == [7.0, 8.0, 9.0][rows]
        assert torch.equal(again["weight"], whole())


@needs_gloo
def test_the_state_of_an_optimiser_is_sharded_as_its_parameters_are(ranks: list[dict[str, Any]]) -> None:
    """This concerns the moments; the number of steps is not sharded."""
    expected = optimizer_of(network())
    moment = expected.state_dict()["state"][0]["exp_avg"]
    for found, rows in zip(ranks, (slice(0, 2), slice(2, 3)), strict=True):
        assert found["optimizer"][:2] == [True, False]
        torch.testing.assert_close(found["optimizer"][2], moment[rows])
        again = found["optimizer again"]
        assert again["param_groups"][0]["lr"] == 0.5
        assert torch.equal(again["state"][0]["exp_avg"], moment)
        assert float(again["state"][0]["step"]) == 1.0


# One process, nothing sharded


def test_nothing_is_sharded_on_one_process() -> None:
    layer, tensor = network(), whole()
    assert not is_sharded(tensor)
    assert not any_sharded(layer)
    assert gathered({"a": [tensor]})["a"][0] is tensor
    assert scattered(tensor, torch.zeros(3, 2)) is tensor


def test_a_network_and_its_optimiser_are_loaded_on_one_process() -> None:
    source, layer = network(), nn.Linear(2, 3)
    kept = optimizer_of(source)
    load_network(layer, source.state_dict())
    assert torch.equal(layer.weight, source.weight)
    optimizer = torch.optim.Adam(layer.parameters())
    load_optimizer(optimizer, kept.state_dict())
    assert torch.equal(optimizer.state[layer.weight]["exp_avg"], kept.state[source.weight]["exp_avg"])


def test_a_weight_that_the_network_does_not_have_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="another"):
        load_network(network(), {**network().state_dict(), "another": torch.ones(1)})
