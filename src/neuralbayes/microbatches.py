"""A batch in pieces, over the processes that hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import torch
import torch.distributed as dist
from torch import Tensor, nn

from neuralbayes.sharding import is_sharded

BUCKET_BYTES = 2**25
"""Most that one message holds: what is copied into it is in memory twice."""


@dataclass
class Microbatch:
    x: Tensor
    weight: Tensor  # (n,), sums to 1 over all micro-batches of all processes
    seed: int
    present: bool  # whether it has samples, or only fills up for those of other processes


class Processes:
    """Sums over the processes of a group; with one process, the identity."""

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group
        active = dist.is_available() and dist.is_initialized()
        if group is not None and not active:
            raise ValueError("`process_group` was given, but torch.distributed is not initialised")
        self.size = dist.get_world_size(group) if active else 1

    def sum(self, tensor: Tensor) -> Tensor:
        """The sum of a tensor of the same shape on every process."""
        if self.size > 1:
            tensor = tensor.contiguous()
            dist.all_reduce(tensor, group=self.group)
        return tensor

    def sum_all(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """The sum of each of many tensors, in few messages: over a network, each message takes its time."""
        if self.size == 1:
            return list(tensors)
        sums: list[Tensor] = []
        for bucket in _buckets(tensors):
            flat = self.sum(torch.cat([tensor.reshape(-1) for tensor in bucket]))
            pieces = torch.split(flat, [tensor.numel() for tensor in bucket])
            sums += [piece.reshape(tensor.shape) for piece, tensor in zip(pieces, bucket, strict=True)]
        return sums

    def summed_gradients(self, parameters: Sequence[nn.Parameter]) -> list[Tensor | None]:
        """The gradients of the parameters, summed over the processes."""
        if self.size == 1:
            return [p.grad for p in parameters]
        made = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        totals = iter(self.sum_all([gradient for gradient in made if not is_sharded(gradient)]))
        # FSDP2 has averaged those of sharded parameters over the processes when it scattered them.
        return [gradient * self.size if is_sharded(gradient) else next(totals) for gradient in made]

    def largest(self, number: int, device: torch.device) -> int:
        """The largest of the numbers that the processes bring."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, device=device)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self.group)
        return int(tensor)


def microbatches(
    network: nn.Module,
    batch: Tensor,
    microbatch_size: int | None,
    sample_weight: Tensor | None,
    processes: Processes,
) -> list[Microbatch]:
    """The batch in pieces, each with its weights and its seed, the same number of pieces on every process."""
    if not isinstance(network, nn.Module):
        raise TypeError(
            "`network` must be a torch.nn.Module, whose buffers and random numbers can be the same in every pass, "
            f"got {type(network).__name__}"
        )
    if not isinstance(batch, Tensor) or batch.ndim < 1:
        raise TypeError(f"`batch` must be a tensor of shape (n_samples, *features), got {type(batch).__name__}")
    largest = processes.largest(len(batch), batch.device)
    if largest == 0:
        raise ValueError(f"`batch` must have at least one sample, got shape {tuple(batch.shape)}")
    size = largest if microbatch_size is None else microbatch_size
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"`microbatch_size` must be an integer of at least 1, got {microbatch_size!r}")
    weight = torch.ones(len(batch), device=batch.device, dtype=_weight_dtype(network, batch))
    if sample_weight is not None:
        sample_weight = torch.as_tensor(sample_weight)
        if sample_weight.shape != weight.shape or not bool((sample_weight >= 0).all()):
            raise ValueError(
                f"`sample_weight` must hold {len(batch)} non-negative numbers, got shape {tuple(sample_weight.shape)}"
            )
        weight = sample_weight.to(weight)
    total = processes.sum(weight.sum())
    if not (bool(torch.isfinite(total)) and float(total) > 0):
        raise ValueError("`sample_weight` must be finite and have a positive sum")
    n_chunks = -(-largest // int(size))
    seeds = torch.randint(2**62, (n_chunks,)).tolist()
    n = len(batch)
    if n < n_chunks:
        # A process short of samples takes part in every sum with samples of no weight, each in a piece of its own.
        missing = n_chunks - n
        batch = torch.cat([batch, batch.new_zeros(missing, *batch.shape[1:])])
        weight = torch.cat([weight, weight.new_zeros(missing)])
    pieces = zip(batch.tensor_split(n_chunks), (weight / total).tensor_split(n_chunks), seeds, strict=True)
    return [Microbatch(x, w, seed, present=i < n) for i, (x, w, seed) in enumerate(pieces)]


def _buckets(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Tensors in their order, in groups of one kind of up to `BUCKET_BYTES`."""
    buckets: list[list[Tensor]] = []
    room = 0
    for tensor in tensors:
        if not buckets or tensor.dtype != buckets[-1][0].dtype or tensor.nbytes > room:
            buckets.append([])
            room = BUCKET_BYTES
        buckets[-1].append(tensor)
        room -= tensor.nbytes
    return buckets


def _weight_dtype(network: nn.Module, batch: Tensor) -> torch.dtype:
    """Double where the network or its input is, so that the gradient is exact in double; else float32."""
    double = batch.dtype == torch.float64 or any(p.dtype == torch.float64 for p in network.parameters())
    return torch.float64 if double else torch.float32
