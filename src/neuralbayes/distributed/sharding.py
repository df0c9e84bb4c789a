"""Convert tensors that FSDP2 shards over processes to whole ones and back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


def is_sharded(tensor: Tensor) -> bool:
    """Whether a tensor is a shard of a larger one."""
    module = sys.modules.get("torch.distributed.tensor")  # takes a second to import, which is wasted without shards
    return module is not None and isinstance(tensor, module.DTensor)


def any_sharded(network: nn.Module) -> bool:
    """Whether a network has sharded parameters."""
    return any(is_sharded(parameter) for parameter in network.parameters())


def gathered(tree: Any) -> Any:
    """Nested mappings and lists with every sharded tensor gathered on the CPU. All processes must call it."""
    if isinstance(tree, Tensor):
        return tree.full_tensor().cpu() if is_sharded(tree) else tree  # type: ignore[attr-defined]
    if isinstance(tree, Mapping):
        return {key: gathered(value) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(gathered(value) for value in tree)
    return tree


def scattered(whole: Tensor, like: Tensor) -> Tensor:
    """Shard `whole`, which every process has, like `like`; unchanged if `like` is not sharded or has another shape."""
    if not is_sharded(like) or whole.shape != like.shape:
        return whole
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(whole.to(like.device), like.device_mesh, like.placements, src_data_rank=None)  # type: ignore[attr-defined]


def load_network(network: nn.Module, state: Mapping[str, Any]) -> None:
    """``network.load_state_dict`` with whole tensors, for sharded and other networks."""
    own = network.state_dict()
    network.load_state_dict({k: scattered(v, own[k]) if k in own else v for k, v in state.items()})


def load_optimizer(optimizer: torch.optim.Optimizer, state: Mapping[str, Any]) -> None:
    """``optimizer.load_state_dict`` with whole tensors, which are sharded like their parameters."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]

    def like(parameter: Tensor, value: Any) -> Any:
        return scattered(value, parameter) if isinstance(value, Tensor) else value

    numbered = {
        number: {name: like(parameters[int(number)], value) for name, value in kept.items()}
        for number, kept in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": numbered})
