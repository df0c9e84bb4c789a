"""Batch statistics: record those of a batch, share them among processes, or replace them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from neuralbayes.system.devices import widened

_EPSILON = 1e-12

Statistics = dict[_BatchNorm, list[tuple[Tensor, Tensor]]]
"""Mean and variance of each batch normalisation layer, in the order of calls."""


@contextmanager
def recorded_statistics(network: nn.Module, wanted: bool = True) -> Iterator[Statistics]:
    """Record mean and variance, with gradients, of each batch normalisation layer in training mode, if `wanted`."""
    statistics: Statistics = {}

    def record(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if isinstance(module, _BatchNorm):
            mean, variance, _ = _Moments.apply(inputs[0], lambda own: own, True)  # type: ignore[no-untyped-call]
            statistics.setdefault(module, []).append((mean, variance))

    hooks = [m.register_forward_pre_hook(record) for m in _batch_norms(network)] if wanted else []
    try:
        yield statistics
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def shared_statistics(
    network: nn.Module, total: Callable[[Tensor], Tensor] | None, present: bool = True
) -> Iterator[Statistics]:
    """Normalise batches by the statistics of all processes, and yield them, unless `total` over processes is None."""
    statistics: Statistics = {}

    def normalize(module: _BatchNorm, x: Tensor) -> Tensor:
        module._check_input_dim(x)  # type: ignore[no-untyped-call]
        mean, variance, count = _Moments.apply(x, total, present)  # type: ignore[no-untyped-call]
        if float(count) < 2:
            raise ValueError(f"batch normalisation needs more than one value per channel, got shape {tuple(x.shape)}")
        statistics.setdefault(module, []).append((mean, variance))
        if module.training:
            _update_running(module, mean.detach(), variance.detach() * (count / (count - 1)))
        return _normalized(module, x, mean, variance)

    modules = [] if total is None else _batch_norms(network)
    try:
        for module in modules:
            module.forward = partial(normalize, module)  # type: ignore[method-assign]
        yield statistics
    finally:
        for module in modules:
            del module.forward


@contextmanager
def given_statistics(statistics: Statistics) -> Iterator[None]:
    """Make each batch normalisation layer use recorded statistics instead of those of its batch."""

    def normalize(module: _BatchNorm, calls: Iterator[tuple[Tensor, Tensor]], x: Tensor) -> Tensor:
        mean, variance = next(calls)
        return _normalized(module, x, mean, variance)

    try:
        for module, calls in statistics.items():
            # An attribute of the instance hides the method of its class until it is deleted.
            module.forward = partial(normalize, module, iter(calls))  # type: ignore[method-assign]
        yield
    finally:
        for module in statistics:
            del module.forward


class _Moments(torch.autograd.Function):
    """Mean, variance and size of each channel of (n, C, *spatial), in `total` over processes with `present` samples."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, total: Callable[[Tensor], Tensor], present: bool) -> tuple[Tensor, ...]:
        # Mean and 1 / deviation come with the normalised values: several times as fast as `torch.var_mean` over
        # channels that lie next to each other in memory.
        _, own_mean, inverse = torch.native_batch_norm(widened(x), None, None, None, None, True, 0.0, _EPSILON)
        first, second = own_mean.double(), (inverse.double().pow(-2) - _EPSILON).clamp_min(0.0)
        own = x.numel() // x.shape[1] if present else 0
        # In float64, the squares do not lose precision to the mean.
        sums = total(torch.cat([own * first, own * (second + first.square()), first.new_full((1,), own)]))
        count = sums[-1]
        first, second = (sums[:-1] / count).chunk(2)
        mean, variance = first.to(own_mean), (second - first.square()).clamp_min(0.0).to(own_mean)
        ctx.save_for_backward(x, mean, count)
        ctx.total, ctx.present = total, present
        ctx.mark_non_differentiable(count)
        return mean, variance, count

    @staticmethod
    def backward(ctx: Any, grad_mean: Tensor, grad_variance: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, count = ctx.saved_tensors
        # The gradient of the statistics on any process flows back to every sample.
        grad_mean, grad_variance = ctx.total(torch.cat([grad_mean, grad_variance])).chunk(2)
        if not ctx.present:
            return torch.zeros_like(x), None, None
        slope = 2.0 * grad_variance
        offset = grad_mean - slope * mean
        result: Tensor = torch.addcmul(_along_channels(offset, x), widened(x), _along_channels(slope, x))
        return result.div_(count.to(result.dtype)).to(x.dtype), None, None


class _Normalized(torch.autograd.Function):
    """Batch normalisation with given statistics and their gradient, which torch's evaluation mode omits."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> Tensor:
        x, mean, variance, weight, bias, eps = inputs
        if weight is not None:  # of half precision where the whole network is, as autocast does not have it
            mean, variance = mean.to(weight.dtype), variance.to(weight.dtype)
        ctx.save_for_backward(x, mean, variance, weight)
        ctx.eps = eps
        return nn.functional.batch_norm(x, mean, variance, weight, bias, training=False, eps=eps)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, mean, variance, weight = ctx.saved_tensors
        inverse = torch.rsqrt(variance + ctx.eps)
        gain = torch.ones_like(mean) if weight is None else weight
        grad_x, grad_weight, grad_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, gain, mean, variance, mean, inverse, False, ctx.eps, [True, True, True]
        )
        grad_mean, grad_variance = -gain * inverse * grad_bias, -0.5 * gain * inverse.square() * grad_weight
        trained = weight is not None
        return grad_x, grad_mean, grad_variance, grad_weight if trained else None, grad_bias if trained else None, None


def _normalized(module: _BatchNorm, x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    result: Tensor = _Normalized.apply(  # type: ignore[no-untyped-call]
        x, mean, variance, module.weight, module.bias, module.eps
    )
    return result


def _along_channels(values: Tensor, like: Tensor) -> Tensor:
    return values.reshape(1, -1, *[1] * (like.ndim - 2))


def _update_running(module: _BatchNorm, mean: Tensor, variance: Tensor) -> None:
    """Update the running statistics as batch normalisation does."""
    if module.running_mean is None or module.running_var is None:
        return
    if module.num_batches_tracked is not None:
        module.num_batches_tracked.add_(1)
    momentum = module.momentum
    if momentum is None:  # the mean of all batches
        momentum = 1.0 / float(module.num_batches_tracked)  # type: ignore[arg-type]
    module.running_mean.lerp_(mean.to(module.running_mean), momentum)
    module.running_var.lerp_(variance.to(module.running_var), momentum)


def _batch_norms(network: nn.Module) -> list[_BatchNorm]:
    """The batch normalisation layers that use the statistics of their batch."""
    return [m for m in network.modules() if isinstance(m, _BatchNorm) and (m.training or m.running_mean is None)]
