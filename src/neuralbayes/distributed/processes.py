"""Keep several processes in step: the same weights, numbers and decisions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.distributed.launch import launched_share, n_cores
from neuralbayes.distributed.sharding import any_sharded, is_sharded
from neuralbayes.system.devices import named_device

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from lightning_fabric.strategies.strategy import Strategy

T = TypeVar("T")
Network = TypeVar("Network", bound=nn.Module)

LOST = ("onnection closed by peer", "onnection reset by peer", "roken pipe", "onnection refused", "NCCL", "imed out")
"""Messages of gloo and NCCL about a lost process."""

INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integer types by the size of a floating-point number in bytes."""

PIECE = 2**18
"""Elements of a gradient read at a time."""


def default_fabric(*, device: str = "auto", precision: Any = "32-true", loggers: Any = ()) -> Fabric:
    """A launched Fabric with all processes of the launcher, or with one on the best device available.

    `torchrun`, `fabric run` and Slurm's `srun` set the number of processes in the environment.

    Parameters
    ----------
    device : str, default="auto"
        "cpu", "cuda", "cuda:1" or "mps". "auto" is the device of :func:`computing_on`, or the best one available.

    Examples
    --------
    >>> default_fabric().world_size
    1
    """
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment

    accelerator, _, number = named_device(device).partition(":")
    layout = _layout()
    if layout is None:
        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            raise ValueError(
                f"`fabric` must be given in a group of {dist.get_world_size()} processes that neither torchrun nor "
                "Slurm has started: a launched lightning_fabric.Fabric that spans them"
            )
        # Explicit, since Fabric would take a Slurm batch script for one of many processes.
        devices = [int(number)] if number else 1
        plugins = LightningEnvironment()
        fabric = Fabric(
            accelerator=accelerator, devices=devices, precision=precision, plugins=plugins, loggers=list(loggers)
        )
    else:
        nodes, per_node = layout
        fabric = Fabric(
            accelerator=accelerator,
            strategy="ddp",
            devices=per_node,
            num_nodes=nodes,
            precision=precision,
            loggers=list(loggers),
        )
        # No more threads than cores: threads that wait for each other are slower than one.
        torch.set_num_threads(min(torch.get_num_threads(), max(1, n_cores() // per_node)))
    if os.environ.get("LT_CLI_USED") != "1":  # `fabric run` has launched it on creation
        fabric.launch()
    return fabric


def _layout() -> tuple[int, int] | None:
    """Number of nodes and of processes per node; None for a single process."""
    size = launched_share().world
    if size == 1:
        return None
    if "LOCAL_WORLD_SIZE" in os.environ:
        per_node = int(os.environ["LOCAL_WORLD_SIZE"])
    else:
        per_node = size // int(os.environ.get("SLURM_STEP_NUM_NODES", 1))
    if size % per_node:
        raise ValueError(f"every node must have as many processes as the others, got {size} in all and {per_node} here")
    return size // per_node, per_node


def _sharding(n_processes: int) -> Strategy:
    """Fabric's strategy for FSDP2, which shards every layer with weights over all processes."""
    from lightning_fabric.strategies.model_parallel import ModelParallelStrategy

    def shard(network: nn.Module, mesh: Any) -> nn.Module:
        from torch.distributed.fsdp import fully_shard

        for layer in [module for module in network.modules() if [*module.parameters(recurse=False)]]:
            fully_shard(layer, mesh=mesh["data_parallel"])
        fully_shard(network, mesh=mesh["data_parallel"])
        return network

    return ModelParallelStrategy(shard, data_parallel_size=n_processes, tensor_parallel_size=1)


def placed(fabric: Fabric, network: Network) -> Network:
    """Move `network` to the device of `fabric`, and shard it if the strategy requires it, before the optimiser is
    created."""
    from lightning_fabric.strategies.model_parallel import ModelParallelStrategy

    if isinstance(fabric.strategy, ModelParallelStrategy) and not any_sharded(network):
        for parameter in network.parameters():  # shards are cut along the first dimension of a contiguous tensor
            parameter.data = parameter.data.contiguous()
        return cast(Network, fabric.strategy.setup_module(network.to(fabric.device)))
    fabric.to_device(network)
    return network


@contextmanager
def lost_peers_explained(fabric: Fabric) -> Iterator[None]:
    """Explain errors that are caused by the end of another process."""
    try:
        yield
    except RuntimeError as error:
        if fabric.world_size == 1 or not any(sign in str(error) for sign in LOST):
            raise
        raise ConnectionError(
            f"another of the {fabric.world_size} processes ended or cannot be reached, so process "
            f"{fabric.global_rank} cannot continue. Look for the error of the other process. Training can continue "
            "from the last checkpoint of the run, with any number of processes"
        ) from error


def check_fabric(fabric: Fabric) -> None:
    """Refuse precisions that need a gradient scaler or converted weights: the step does its own backward pass."""
    precision = fabric.strategy.precision.precision
    if precision not in ("32-true", "bf16-mixed"):
        raise ValueError(f"`fabric` must have precision '32-true' or 'bf16-mixed', got {precision!r}")


def rank_zero_result(fabric: Fabric, function: Callable[[], T]) -> T:
    """Call `function` on rank 0, and return its result, or raise its exception, on all processes."""
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
    """Copy the weights and buffers of rank 0 to every process, except sharded ones."""
    if fabric.world_size > 1 and not any_sharded(network):
        weights = {name: tensor.cpu() for name, tensor in network.state_dict().items()}
        network.load_state_dict(fabric.broadcast(weights))


def agreed_metrics(
    fabric: Fabric, metrics: Mapping[str, float], n_samples: int, parameters: Iterable[nn.Parameter] = ()
) -> dict[str, float]:
    """Means of metrics weighted by the samples of each process, after checking that all have the same gradients.

    A NaN on any process with samples gives NaN everywhere.

    Raises
    ------
    ValueError
        On every process, if the gradients of `parameters` are not bitwise equal on all.
    """
    if fabric.world_size == 1:
        return dict(metrics)
    values = torch.tensor([*metrics.values(), 1.0], dtype=torch.float64, device=fabric.device)
    weighted = values * n_samples if n_samples else torch.zeros_like(values)
    checksum = _checksum(parameters, fabric.device)
    pieces = torch.stack([checksum >> 48, checksum >> 32, checksum >> 16, checksum]).bitwise_and(0xFFFF).double()
    sums = torch.cat([pieces, pieces.square(), weighted])  # one message for both
    dist.all_reduce(sums)
    first, second = sums[:4], sums[4:8]
    # Numbers are all equal if their mean square is the square of their mean; sums of 16-bit numbers are exact.
    if not torch.equal(fabric.world_size * second, first.square()):
        raise ValueError(
            f"`step` must leave the gradient of the batch of all {fabric.world_size} processes on each of them, got "
            "gradients that differ between the processes, whose weights would drift apart. Use `neuralbayes.backward`, "
            "or `neuralbayes.distributed.global_batch` for a loss of another kind"
        )
    *sums_of_metrics, total = sums[8:].tolist()
    return {name: value / total for name, value in zip(metrics, sums_of_metrics, strict=True)}


def _checksum(parameters: Iterable[nn.Parameter], device: torch.device) -> Tensor:
    """A 64-bit checksum of the gradients, without sharded ones.

    Reading the gradients once costs less than the update.
    """
    zero = torch.zeros((), dtype=torch.int64, device=device)
    gradients = [p.grad for p in parameters if p.grad is None or not is_sharded(p.grad)]
    # A missing gradient differs from a gradient of 0: the optimiser skips the parameter.
    return _mixed(torch.stack([zero, *(zero if g is None else 1 + _bits(g).to(device) for g in gradients)]))


def _bits(gradient: Tensor) -> Tensor:
    """A checksum of the bits of a tensor, in pieces that stay in the processor's cache."""
    strided = gradient.detach() if gradient.layout is torch.strided else gradient.detach().to_dense()
    real = torch.view_as_real(strided) if strided.is_complex() else strided
    integers = real.view(INTEGERS[real.element_size()]).reshape(-1)
    return _mixed(torch.stack([_mixed(piece) for piece in torch.split(integers, PIECE)]))


def _mixed(integers: Tensor) -> Tensor:
    """The sum of integers times different odd numbers, modulo 2^64, which changes if one of them does."""
    return (integers.long() * (2 * torch.arange(len(integers), device=integers.device) + 1)).sum()


def n_processes() -> int:
    """Number of processes; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def sum_over_ranks(fabric: Fabric, integers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The exact sum of an array over the processes."""
    if fabric.world_size == 1:
        return integers
    tensor = torch.from_numpy(integers.astype(np.int64)).to(fabric.device)
    dist.all_reduce(tensor)
    return tensor.cpu().numpy().astype(np.uint64)


def largest_over_ranks(fabric: Fabric, value: int) -> int:
    """The maximum of an integer over the processes."""
    if fabric.world_size == 1:
        return value
    largest = torch.tensor(value, device=fabric.device)
    dist.all_reduce(largest, op=dist.ReduceOp.MAX)
    return int(largest)


def gather(fabric: Fabric, value: T) -> list[T]:
    """The values of all processes, in the order of ranks."""
    if fabric.world_size == 1:
        return [value]
    gathered: list[Any] = [None] * fabric.world_size
    dist.all_gather_object(gathered, value)
    return gathered
