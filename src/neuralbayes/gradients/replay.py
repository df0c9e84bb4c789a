"""Calling a network again and finding it the same: buffers and random numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import nn


class BufferState:
    """The buffers of networks as they are now, such as the running statistics of batch normalisation."""

    def __init__(self, *networks: nn.Module) -> None:
        self._owners = [(module, dict(module._buffers)) for network in networks for module in network.modules()]
        self._values = [
            (tensor, tensor.detach().clone())
            for _, buffers in self._owners
            for tensor in buffers.values()
            if tensor is not None
        ]

    def restore(self) -> None:
        """Put every buffer back, also one that was assigned anew, and take away those that were not there."""
        for tensor, value in self._values:
            # Through `.data`: a graph that still waits for its backward pass must not see a new version.
            tensor.data.copy_(value)
        for module, buffers in self._owners:
            for name in module._buffers.keys() - buffers.keys():
                delattr(module, name)
            for name, buffer in buffers.items():
                setattr(module, name, buffer)


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
def seeded(seed: int, device: torch.device) -> Iterator[Callable[[], bool]]:
    """Draw dropout masks and the like from `seed`, leaving the global generators as they were.

    Yields
    ------
    callable
        Whether any random numbers have been drawn inside, on the CPU or on `device`.
    """
    cuda = [device] if device.type == "cuda" else []

    def drawn() -> bool:
        states = [torch.get_rng_state(), *map(torch.cuda.get_rng_state, cuda)]
        fresh = [torch.Generator(d).manual_seed(seed).get_state() for d in (torch.device("cpu"), *cuda)]
        return not all(map(torch.equal, states, fresh))

    with torch.random.fork_rng(devices=cuda):
        torch.default_generator.manual_seed(seed)  # torch.manual_seed would ask every backend there could be
        if cuda:
            torch.cuda.manual_seed(seed)
        yield drawn
