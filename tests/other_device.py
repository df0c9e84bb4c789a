"""A simulated device other than the CPU: it computes like the CPU, and checks on which device tensors are.

A tensor on it wraps a CPU tensor. As on a GPU, an operation on tensors of both devices is an error, unless it copies or
the tensor on the CPU is a single number or an index. `numpy()` is an error, too. Tensors made without ``device=`` are
on the CPU. A process must register the device before its first backward pass.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "elsewhere"
aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}


class _Module(_DummyBackendModule):
    """The module that torch expects as ``torch.elsewhere``; random numbers come from the generator of the CPU."""

    def get_rng_state(self, device: Any = None) -> Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)

    def get_amp_supported_dtype(self) -> list[torch.dtype]:
        return [torch.bfloat16]


@cache
def other_device() -> torch.device:
    """Create the device, and register it as a backend that is written in Python."""
    _setup_privateuseone_for_python_backend(NAME, _Module())
    library = torch.library.Library("aten", "IMPL")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    _KEPT.append(library)  # it unregisters itself when it ends
    torch.__future__.set_swap_module_params_on_conversion(True)  # a moved parameter still belongs to the optimiser
    return torch.device(NAME, 0)


_KEPT: list[Any] = []


def _empty(size: Any, dtype: Any = None, memory_format: Any = None, **_: Any) -> Tensor:
    return Elsewhere(torch.empty(size, dtype=dtype, memory_format=memory_format or torch.contiguous_format))


def _empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> Tensor:
    return Elsewhere(torch.empty_strided(size, stride, dtype=dtype))


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    _numbers(target).copy_(_numbers(source))
    return target


class Elsewhere(Tensor):
    """A tensor on the other device, with the CPU tensor that holds its numbers."""

    numbers: Tensor

    @staticmethod
    def __new__(cls, numbers: Tensor) -> "Elsewhere":
        made: Elsewhere = Tensor._make_wrapper_subclass(  # type: ignore[attr-defined]
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=other_device(),
        )
        made.numbers = numbers
        return made

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"Elsewhere({self.numbers!r})"

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        counted = tree_leaves((args[0], args[2:])) if func in INDEXED else tensors
        here = [t for t in counted if isinstance(t, Tensor) and not isinstance(t, cls) and t.ndim > 0]
        if here and func not in COPIES:
            places = [(tuple(t.shape), str(t.device)) for t in tensors]
            raise RuntimeError(f"Expected all tensors to be on the same device, but {func} got {places}")
        device = kwargs.get("device")
        stays = isinstance(args[0], cls) if func is aten.copy_.default else device is None or device.type == NAME
        on_cpu = kwargs if device is None else kwargs | {"device": torch.device("cpu")}
        result = func(*tree_map(_numbers, args), **tree_map(_numbers, on_cpu))
        if not stays:
            return args[0] if func is aten.copy_.default else result
        known = {id(t.numbers): t for t in tensors if isinstance(t, cls)}  # operations in place return their input

        def wrapped(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            return known[id(value)] if id(value) in known else cls(value)

        return return_and_correct_aliasing(func, args, kwargs, tree_map(wrapped, result))


def _numbers(value: Any) -> Any:
    return value.numbers if isinstance(value, Elsewhere) else value
