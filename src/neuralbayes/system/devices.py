"""Choice of the device: the one that a user names, for everything within a call."""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch import nn

Network = TypeVar("Network", bound=nn.Module)

_AUTO: ContextVar[str] = ContextVar("device", default="auto")


@contextmanager
def computing_on(device: str) -> Iterator[None]:
    """Make "auto" mean `device` inside the block, in this thread.

    Examples
    --------
    >>> with computing_on("cpu"):
    ...     torch_device("auto")
    device(type='cpu')
    """
    token = _AUTO.set(named_device(device))
    try:
        yield
    finally:
        _AUTO.reset(token)


def named_device(device: str) -> str:
    """Check `device`, and resolve "auto" within :func:`computing_on`.

    Parameters
    ----------
    device : str
        "cpu", "cuda", "cuda:1" or "mps". "auto" is the best one available.

    Returns
    -------
    str
        "auto" outside of :func:`computing_on`.
    """
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise ValueError(f"`device` must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps', got {device!r}")
    kind, _, number = device.partition(":")
    n_devices = torch.cuda.device_count() if kind == "cuda" else int(torch.backends.mps.is_available())
    if kind in ("cuda", "mps") and int(number or 0) >= n_devices:
        raise ValueError(
            f"`device` must be one that PyTorch finds here, got {device!r} with {n_devices} of this kind; "
            "'auto' chooses the best one available"
        )
    return _AUTO.get() if device == "auto" else device


def torch_device(device: str = "auto") -> torch.device:
    """The device with that name, or the best one; of several GPUs, the one of this process."""
    name = named_device(device)
    if name == "auto":
        found = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        name = "cpu" if found is None else found.type
    if name != "cuda":
        return torch.device(name)
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)) % torch.cuda.device_count())


def working_copy(network: Network, device: torch.device) -> Network:
    """`network` for computing on a device: itself if it is already there, otherwise a copy.

    Apple GPUs have no double precision: a network with double precision stays where it is.
    """
    tensors = [*network.parameters(), *network.buffers()]
    double = any(tensor.dtype == torch.float64 for tensor in tensors)
    if all(tensor.device == device for tensor in tensors) or (device.type == "mps" and double):
        return network
    return copy.deepcopy(network).to(device)


def device_of(network: nn.Module) -> torch.device:
    """The device of a network."""
    found: Any = next((tensor.device for tensor in (*network.parameters(), *network.buffers())), torch.device("cpu"))
    return torch.device(found)
