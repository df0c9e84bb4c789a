"""Split a batch into micro-batches, over the processes that hold it."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import torch
from torch import Tensor, nn

from neuralbayes.distributed.sums import Processes


@dataclass
class Microbatch:
    x: Tensor
    weight: Tensor  # (n,), sums to 1 over all micro-batches of all processes
    seed: int
    present: bool  # whether it has samples, or only matches the micro-batches of other processes


def microbatches(
    network: nn.Module,
    batch: Tensor,
    microbatch_size: int | None,
    sample_weight: Tensor | None,
    processes: Processes,
) -> list[Microbatch]:
    """Split the batch into micro-batches with weights and seeds, as many on every process."""
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
        # A process with fewer samples takes part in every sum with samples of weight 0, each in its own piece.
        missing = n_chunks - n
        batch = torch.cat([batch, batch.new_zeros(missing, *batch.shape[1:])])
        weight = torch.cat([weight, weight.new_zeros(missing)])
    pieces = zip(batch.tensor_split(n_chunks), (weight / total).tensor_split(n_chunks), seeds, strict=True)
    return [Microbatch(x, w, seed, present=i < n) for i, (x, w, seed) in enumerate(pieces)]


def _weight_dtype(network: nn.Module, batch: Tensor) -> torch.dtype:
    """float64 if the network or its input is, so that the gradient is exact in float64; otherwise float32."""
    double = batch.dtype == torch.float64 or any(p.dtype == torch.float64 for p in network.parameters())
    return torch.float64 if double else torch.float32
