"""Calling a network again and finding it the same: buffers, random numbers, batch statistics."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

Statistics = dict[_BatchNorm, list[tuple[Tensor, Tensor]]]
"""Mean and variance in each batch normalisation, in the order of its calls."""


@dataclass
class _Buffer:
    owner: nn.Module
    name: str
    tensor: Tensor
    value: Tensor


class BufferState:
    """The buffers of a network as they are now, such as the running statistics of batch normalisation."""

    def __init__(self, network: nn.Module) -> None:
        self._buffers = [
            _Buffer(module, name, tensor, tensor.detach().clone())
            for module in network.modules()
            for name, tensor in module.named_buffers(recurse=False)
        ]

    def restore(self) -> None:
        """Put every buffer back, also one that was assigned anew."""
        for buffer in self._buffers:
            # Through `.data`: a graph that still waits for its backward pass must not see a new version.
            buffer.tensor.data.copy_(buffer.value)
            setattr(buffer.owner, buffer.name, buffer.tensor)


@contextmanager
def frozen_buffers(network: nn.Module, at: BufferState | None = None) -> Iterator[None]:
    """Undo what forward passes inside do to the buffers; let them start from those of `at` if given."""
    before = BufferState(network)
    if at is not None:
        at.restore()
    try:
        yield
    finally:
        before.restore()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[None]:
    """Draw dropout masks and the like from `seed`, leaving the global generators as they were."""
    cuda = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would ask every backend there could be
        if cuda:
            torch.cuda.manual_seed(seed)
        yield


@contextmanager
def recorded_statistics(network: nn.Module, wanted: bool = True) -> Iterator[Statistics]:
    """Collect mean and variance, with their gradient, of what each batch normalisation in training sees inside.

    Where they are not `wanted`, what is yielded stays empty.
    """
    statistics: Statistics = {}

    def record(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if isinstance(module, _BatchNorm):
            x = inputs[0]
            dims = [d for d in range(x.ndim) if d != 1]
            variance, mean = torch.var_mean(x, dims, correction=0, keepdim=True)
            statistics.setdefault(module, []).append((mean, variance))

    hooks = [m.register_forward_pre_hook(record) for m in _batch_norms(network)] if wanted else []
    try:
        yield statistics
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def given_statistics(statistics: Statistics) -> Iterator[None]:
    """Make each batch normalisation use recorded statistics in place of those of its own batch."""

    def normalize(module: _BatchNorm, calls: Iterator[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
        mean, variance = next(calls)
        y = (x - mean) * torch.rsqrt(variance + module.eps)
        if module.affine:
            shape = (1, -1, *[1] * (x.ndim - 2))
            y = y * module.weight.reshape(shape) + module.bias.reshape(shape)
        return y

    try:
        for module, calls in statistics.items():
            # An attribute of the instance hides the method of its class until it is deleted.
            module.forward = partial(normalize, module, iter(calls))  # type: ignore[method-assign]
        yield
    finally:
        for module in statistics:
            del module.forward


def _batch_norms(network: nn.Module) -> list[_BatchNorm]:
    """The batch normalisations that take the statistics of their batch."""
    return [m for m in network.modules() if isinstance(m, _BatchNorm) and (m.training or m.running_mean is None)]
