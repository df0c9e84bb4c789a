"""Several processes that act as one: the same weights, the same numbers, the same decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import nn

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")


def single_process_fabric() -> Fabric:
    """The default: one process on the best device there is."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        raise ValueError(
            f"`fabric` must be given in a group of {dist.get_world_size()} processes: a launched "
            "lightning_fabric.Fabric that spans them"
        )
    from lightning_fabric import Fabric

    return Fabric(accelerator="auto", devices=1)


def check_fabric(fabric: Fabric) -> None:
    """Refuse precisions that need a gradient scaler or converted weights: the step does its own backward pass."""
    precision = fabric.strategy.precision.precision
    if precision not in ("32-true", "bf16-mixed"):
        raise ValueError(f"`fabric` must have precision '32-true' or 'bf16-mixed', got {precision!r}")


def rank_zero_result(fabric: Fabric, function: Callable[[], T]) -> T:
    """Call `function` on rank 0 and give its result, or its exception, to all: none is left waiting."""
    outcome: Any = None
    if fabric.is_global_zero:
        try:
            outcome = function()
        except Exception as error:
            outcome = error
    outcome = fabric.broadcast(outcome)
    if isinstance(outcome, Exception):
        raise outcome
    return cast(T, outcome)


def share_weights(fabric: Fabric, network: nn.Module) -> None:
    """Give every process the weights and buffers of rank 0."""
    if fabric.world_size > 1:
        weights = {name: tensor.cpu() for name, tensor in network.state_dict().items()}
        network.load_state_dict(fabric.broadcast(weights))


def mean_over_ranks(fabric: Fabric, metrics: Mapping[str, float], n_samples: int) -> dict[str, float]:
    """Means weighted by the samples of each process; a value that all agree on stays.

    A NaN anywhere is a NaN everywhere, except that a process without samples has no say.
    """
    if fabric.world_size == 1:
        return dict(metrics)
    values = torch.tensor([*metrics.values(), 1.0], dtype=torch.float64, device=fabric.device)
    weighted = values * n_samples if n_samples else torch.zeros_like(values)
    dist.all_reduce(weighted)
    return dict(zip(metrics, (weighted[:-1] / weighted[-1]).tolist(), strict=True))


def largest_over_ranks(fabric: Fabric, value: int) -> int:
    """The largest of the integers that the processes bring."""
    if fabric.world_size == 1:
        return value
    largest = torch.tensor(value, device=fabric.device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return int(largest)


def gather(fabric: Fabric, value: T) -> list[T]:
    """What each process brings, in the order of their ranks."""
    if fabric.world_size == 1:
        return [value]
    gathered: list[Any] = [None] * fabric.world_size
    dist.all_gather_object(gathered, value)
    return gathered
