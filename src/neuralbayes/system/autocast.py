"""Limit autocast to networks: computations on their outputs run in full precision.

Products in bfloat16 lose a prior of 1/1000 and small differences between posteriors.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import tree_map

T = TypeVar("T")


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
    """Wrap `function` to run in the current autocast and return float32 instead of half precision.

    Without active autocast, this is the function itself.

    Parameters
    ----------
    function : callable
        Returns a tensor, or containers of tensors.
    device : torch.device
        Device of the computation.

    Examples
    --------
    >>> x, seen = torch.eye(2), []
    >>> def square(x):
    ...     seen.append((x @ x).dtype)
    ...     return x @ x
    >>> with torch.autocast("cpu", torch.bfloat16):
    ...     function = within_autocast(square, x.device)
    >>> function(x).dtype, seen
    (torch.float32, [torch.bfloat16])
    """
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
    result: T = tree_map(_widened, outputs)
    return result


def _widened(output: Any) -> Any:
    half = isinstance(output, Tensor) and output.dtype in (torch.bfloat16, torch.float16)
    return output.float() if half else output


def _is_active(device: torch.device) -> bool:
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)
