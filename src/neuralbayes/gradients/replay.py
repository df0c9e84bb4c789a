"""Repeat a forward pass exactly: restore buffers and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn


class BufferState:
    """A snapshot of the buffers of networks, such as the running statistics of batch normalisation."""

    def __init__(self, *networks: nn.Module) -> None:
        self._owners = [(module, dict(module._buffers)) for network in networks for module in network.modules()]
        self._values = [
            (tensor, tensor.detach().clone())
            for _, buffers in self._owners
            for tensor in buffers.values()
            if tensor is not None
        ]

    def restore(self) -> None:
        """Restore every buffer, including reassigned ones, and remove new ones."""
        for tensor, value in self._values:
            # Through `.data`: a graph before its backward pass must not see a new version.
            tensor.data.copy_(value)
        for module, buffers in self._owners:
            for name in module._buffers.keys() - buffers.keys():
                delattr(module, name)
            for name, buffer in buffers.items():
                setattr(module, name, buffer)


@contextmanager
def frozen_buffers(network: nn.Module, at: BufferState | None = None) -> Iterator[None]:
    """Undo the changes of forward passes inside the block to the buffers; start from those of `at`, if given."""
    before = BufferState(network)
    if at is not None:
        at.restore()
    try:
        yield
    finally:
        before.restore()


@contextmanager
def seeded(seed: int, device: torch.device) -> Iterator[Callable[[], bool]]:
    """Draw random numbers, such as dropout masks, from `seed`, and restore the global generators.

    Yields
    ------
    callable
        Returns whether any random numbers have been drawn inside the block, on the CPU or on `device`.
    """
    cuda = [device] if device.type == "cuda" else []

    def drawn() -> bool:
        states = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, cuda)]
        fresh = [torch.Generator(d).manual_seed(seed).get_state() for d in (torch.device("cpu"), *cuda)]
        return not all(map(torch.equal, states, fresh))

    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would query every backend
        if cuda:
            torch.cuda.manual_seed(seed)
        yield drawn
