"""Devices: the one that a user names, or the best one available; and half precision on it, for networks alone.

Computations on the outputs of a network run in full precision: products in bfloat16 lose a prior of 1/1000 and small
differences between posteriors.
"""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

T = TypeVar("T")
Network = TypeVar("Network", bound=nn.Module)

PROBE = """
import time, torch
torch.set_num_threads({threads})
a = torch.randn(250, 1200)
layer = torch.nn.Linear(1200, 1200)
def seconds(half):
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        layer(a).float().square().sum().backward()
    return time.perf_counter() - start
with torch.autocast("cpu", torch.bfloat16):
    rounded = layer(a).float()
close = torch.allclose(rounded, layer(a), atol=0.1)
times = [(seconds(True), seconds(False)) for _ in range(9)]
print(int(close and 1.1 * min(t for t, _ in times) < min(t for _, t in times)))
"""


def named_device(device: str) -> str:
    """Check `device`: "auto", "cpu", "mps", or "cuda" with or without a number, of those that PyTorch finds here."""
    if not isinstance(device, str) or not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise ValueError(f"`device` must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps', got {device!r}")
    kind, _, number = device.partition(":")
    n_devices = torch.cuda.device_count() if kind == "cuda" else int(torch.backends.mps.is_available())
    if kind in ("cuda", "mps") and int(number or 0) >= n_devices:
        raise ValueError(
            f"`device` must be one that PyTorch finds here, got {device!r} with {n_devices} of this kind; "
            "'auto' chooses the best one available"
        )
    return device


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


def without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    """Disable autocast for a device, if it is active.

    Examples
    --------
    >>> x = torch.eye(2)
    >>> with torch.autocast("cpu", torch.bfloat16), without_autocast(x.device):
    ...     (x @ x).dtype
    torch.float32
    """
    return torch.autocast(device.type, enabled=False) if _is_active(device) else nullcontext()


def within_autocast(function: Callable[[Tensor], T], device: torch.device) -> Callable[[Tensor], T]:
    """Wrap `function` to run in the autocast that is active now, if any, and to return float32 for half precision."""
    if not _is_active(device):
        return function
    dtype, cached = torch.get_autocast_dtype(device.type), torch.is_autocast_cache_enabled()

    def call(x: Tensor) -> T:
        with torch.autocast(device.type, dtype, cache_enabled=cached):
            outputs = function(x)
        return widened(outputs)

    return call


def widened(outputs: T) -> T:
    """A tensor, or containers of tensors, with float32 in place of half precision."""
    halves = (torch.bfloat16, torch.float16)
    result: T = tree_map_only(Tensor, lambda output: output.float() if output.dtype in halves else output, outputs)
    return result


def _is_active(device: torch.device) -> bool:
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


class InBfloat16(nn.Module):
    """A network whose matrix products run in bfloat16 and whose outputs are float32."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Any:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            outputs = self.network(x)
        return widened(outputs)


@cache
def bfloat16_is_faster() -> bool:
    """Whether this CPU has bfloat16, a tenth faster: in a subprocess, since some that claim it crash (SIGILL)."""
    code = PROBE.format(threads=torch.get_num_threads())
    try:
        # With -P, which keeps Python from importing modules of the current folder.
        words = [sys.executable, "-P", "-c", code]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and done.stdout.split()[-1:] == ["1"]
