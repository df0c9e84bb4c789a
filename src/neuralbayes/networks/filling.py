"""Load weights from a file into a module, allocating memory only after they are known to fit."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn


def check_finite(tensors: Mapping[str, Tensor], *, own: str | None = None) -> None:
    """Raise a ValueError unless all are finite; those of a user's network, named `own`..., may be infinite (masks)."""
    for name, tensor in tensors.items():
        bad = tensor.isnan() if own is not None and name.startswith(own) else ~tensor.isfinite()
        if count := int(bad.sum()):
            raise ValueError(f"{name!r} must be finite, got {count} of {tensor.numel()} values that are not")


def fill(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Set the weights of a module on the device "meta", or raise a ValueError that names what does not fit.

    A file of a few bytes can describe a network of any size. On "meta", a network has shapes but takes no memory.

    Examples
    --------
    >>> with torch.device("meta"):
    ...     module = nn.Linear(10**9, 10**9)
    >>> fill(module, {"weight": torch.ones(2, 2), "bias": torch.ones(2)})
    Traceback (most recent call last):
    ...
    ValueError: 'weight' must be torch.float32 of shape (1000000000, 1000000000), got torch.float32 of shape (2, 2)
    """
    expected = module.state_dict()
    for name in {**expected, **weights}:
        if name not in weights or name not in expected:
            raise ValueError(f"{name!r} is {'missing' if name in expected else 'not a weight of this network'}")
        want, got = (f"{t.dtype} of shape {tuple(t.shape)}" for t in (expected[name], weights[name]))
        if want != got:
            raise ValueError(f"{name!r} must be {want}, got {got}")
    # Copy into the memory format of the module: tensors of a file would keep the whole file in memory.
    own = {name: torch.empty_like(expected[name], device="cpu").copy_(tensor) for name, tensor in weights.items()}
    module.load_state_dict(own, assign=True)
