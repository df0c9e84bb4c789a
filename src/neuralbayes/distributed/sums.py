"""Sums over the processes of a group: p(z), batch statistics and gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from neuralbayes.distributed.sharding import is_sharded

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
        for bucket in _buckets(tensors):
            flat = self.sum(torch.cat([tensor.reshape(-1) for tensor in bucket]))
            pieces = torch.split(flat, [tensor.numel() for tensor in bucket])
            sums += [piece.reshape(tensor.shape) for piece, tensor in zip(pieces, bucket, strict=True)]
        return sums

    def summed_gradients(self, parameters: Sequence[nn.Parameter]) -> list[Tensor | None]:
        """Sum the gradients of the parameters over the processes."""
        if self.size == 1:
            return [p.grad for p in parameters]
        made = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        totals = iter(self.sum_all([gradient for gradient in made if not is_sharded(gradient)]))
        # FSDP2 has already averaged the gradients of sharded parameters.
        return [gradient * self.size if is_sharded(gradient) else next(totals) for gradient in made]

    def largest(self, number: int, device: torch.device) -> int:
        """The maximum of a number over the processes."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, device=device)
        dist.all_reduce(tensor, op=dist.ReduceOp.MAX, group=self.group)
        return int(tensor)


def _buckets(tensors: Sequence[Tensor]) -> list[list[Tensor]]:
    """Group tensors of the same type, in order, up to `BUCKET_BYTES`."""
    buckets: list[list[Tensor]] = []
    room = 0
    for tensor in tensors:
        if not buckets or tensor.dtype != buckets[-1][0].dtype or tensor.nbytes > room:
            buckets.append([])
            room = BUCKET_BYTES
        buckets[-1].append(tensor)
        room -= tensor.nbytes
    return buckets
