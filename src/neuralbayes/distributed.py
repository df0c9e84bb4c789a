"""Several processes that compute as one: launching, sums, the same numbers and decisions everywhere, and seeds."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from neuralbayes.system.devices import named_device

if TYPE_CHECKING:
    from lightning_fabric import Fabric

T = TypeVar("T")

LAUNCHERS = (("RANK", "WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
"""Variables of torchrun and of Slurm's srun. Not SLURM_NTASKS, which is also set for a single process in a batch
script."""

LOST = ("onnection closed by peer", "onnection reset by peer", "roken pipe", "onnection refused", "NCCL", "imed out")
"""Messages of gloo and NCCL about a lost process."""

BUCKET_BYTES = 2**25
"""Maximum size of a message, whose content is in memory twice."""


class Processes:
    """Sums over the processes of a group; with one process, the identity."""

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group
        active = dist.is_available() and dist.is_initialized()
        if group is not None and not active:
            raise ValueError("`process_group` was given, but torch.distributed is not initialised")
        self.size = dist.get_world_size(group) if active else 1

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor over the processes."""
        if self.size > 1:
            tensor = tensor.contiguous()
            dist.all_reduce(tensor, group=self.group)
        return tensor

    def sum_all(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sums of many tensors over the processes, in few messages."""
        if self.size == 1:
            return list(tensors)
        sums: list[Tensor] = []
        for bucket in buckets(tensors, BUCKET_BYTES):
            flat = self.sum(torch.cat([tensor.reshape(-1) for tensor in bucket]))
            pieces = torch.split(flat, [tensor.numel() for tensor in bucket])
            sums += [piece.reshape(tensor.shape) for piece, tensor in zip(pieces, bucket, strict=True)]
        return sums

    def summed_gradients(self, parameters: Sequence[nn.Parameter]) -> list[Tensor | None]:
        """The gradients of the parameters, summed over the processes."""
        if self.size == 1:
            return [p.grad for p in parameters]
        return [*self.sum_all([torch.zeros_like(p) if p.grad is None else p.grad for p in parameters])]

    def largest(self, number: int, device: torch.device) -> int:
        """The maximum of a number over the processes."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, device=device)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self.group)
        return int(tensor)


def buckets(tensors: Sequence[Tensor], n_bytes: int) -> list[list[Tensor]]:
    """Group tensors of the same type, in order, up to `n_bytes`; a larger tensor is a group of its own.

    Examples
    --------
    >>> [len(bucket) for bucket in buckets([torch.zeros(2), torch.zeros(2), torch.zeros(1), torch.zeros(9)], 16)]
    [2, 1, 1]
    """
    groups: list[list[Tensor]] = []
    room = 0
    for tensor in tensors:
        if not groups or tensor.dtype != groups[-1][0].dtype or tensor.nbytes > room:
            groups.append([])
            room = n_bytes
        groups[-1].append(tensor)
        room -= tensor.nbytes
    return groups


def n_processes() -> int:
    """Number of processes; 1 without a process group."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def n_launched(environment: Mapping[str, str] = os.environ) -> int:
    """Number of processes according to the launcher; 1 without one."""
    for rank, world in LAUNCHERS:
        if environment.get(rank) and environment.get(world):
            return int(environment[world])
    return 1


def default_fabric(*, device: str = "auto") -> Fabric:
    """A launched Fabric with all processes of torchrun, `fabric run` or Slurm's srun, or with one on `device`."""
    from lightning_fabric import Fabric
    from lightning_fabric.plugins.environments.lightning import LightningEnvironment

    accelerator, _, number = named_device(device).partition(":")
    size = n_launched()
    if size == 1:
        if n_processes() > 1:
            raise ValueError(
                f"`fabric` must be given in a group of {n_processes()} processes that neither torchrun nor Slurm has "
                "started: a launched lightning_fabric.Fabric that spans them"
            )
        # Explicit, since Fabric would take a Slurm batch script for one of many processes.
        devices = [int(number)] if number else 1
        fabric = Fabric(accelerator=accelerator, devices=devices, plugins=LightningEnvironment())
    else:
        import joblib  # type: ignore[import-untyped]

        per_node = _processes_per_node(size)
        fabric = Fabric(accelerator=accelerator, strategy="ddp", devices=per_node, num_nodes=size // per_node)
        # No more threads than cores: threads that wait for each other are slower than one.
        torch.set_num_threads(min(torch.get_num_threads(), max(1, joblib.cpu_count() // per_node)))
    if os.environ.get("LT_CLI_USED") != "1":  # `fabric run` has launched it on creation
        fabric.launch()
    return fabric


def _processes_per_node(size: int) -> int:
    if "LOCAL_WORLD_SIZE" in os.environ:
        per_node = int(os.environ["LOCAL_WORLD_SIZE"])
    else:
        per_node = size // int(os.environ.get("SLURM_STEP_NUM_NODES", 1))
    if size % per_node:
        raise ValueError(f"every node must have as many processes as the others, got {size} in all and {per_node} here")
    return per_node


def check_fabric(fabric: Fabric) -> None:
    """Refuse precisions that need a gradient scaler or converted weights: the step does its own backward pass."""
    precision = fabric.strategy.precision.precision
    if precision not in ("32-true", "bf16-mixed"):
        raise ValueError(f"`fabric` must have precision '32-true' or 'bf16-mixed', got {precision!r}")


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
    """Copy the weights and buffers of rank 0 to every process."""
    if fabric.world_size > 1:
        weights = {name: tensor.cpu() for name, tensor in network.state_dict().items()}
        network.load_state_dict(fabric.broadcast(weights))


def agreed_metrics(fabric: Fabric, metrics: Mapping[str, float], n_samples: int) -> dict[str, float]:
    """Means of metrics weighted by the samples of each process; a NaN on any process with samples gives NaN."""
    if fabric.world_size == 1:
        return dict(metrics)
    values = torch.tensor([*metrics.values(), 1.0], dtype=torch.float64, device=fabric.device)
    sums = values * n_samples if n_samples else torch.zeros_like(values)
    dist.all_reduce(sums)
    *sums_of_metrics, total = sums.tolist()
    return {name: value / total for name, value in zip(metrics, sums_of_metrics, strict=True)}


def gather(fabric: Fabric, value: T) -> list[T]:
    """The values of all processes, in the order of ranks."""
    if fabric.world_size == 1:
        return [value]
    gathered: list[Any] = [None] * fabric.world_size
    dist.all_gather_object(gathered, value)
    return gathered


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """Seed the global generators with `seed` inside the block, and restore them afterwards."""
    earlier = np.random.get_state(), random.getstate()  # noqa: NPY002
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002  augmentation draws from it; a checkpoint holds its state
        try:
            yield
        finally:
            np.random.set_state(earlier[0])  # noqa: NPY002
            random.setstate(earlier[1])  # set when resuming


def noise_of_rank(fabric: Fabric, seed: int) -> AbstractContextManager[None]:
    """Seed the generators of this process differently from those of the others; a single one keeps its own."""
    if fabric.world_size == 1:
        return nullcontext()
    return seeded_globally(int(np.random.SeedSequence([seed, fabric.global_rank]).generate_state(1)[0]))
