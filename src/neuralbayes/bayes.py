r"""Lemma 1: a softmax output as p(z|x), and the quantities that follow in closed form.

With :math:`L(x)` the softmax output of a network and :math:`E = \mathbb{E}_x[L(x)]`,

.. math:: p(z{=}k|x) = L_k(x), \qquad p(z{=}k) = E_k, \qquad p(x|z{=}k) / p(x) = L_k(x) / E_k .

All functions take tensors with samples on dimension 0, states on dimension 1 and any spatial dimensions after them;
each position has its own latent variable. Logarithms are natural, so information is in nats. Half precision is promoted
to float32, because sums in bfloat16 lose a prior of 1/1000.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from neuralbayes.system.devices import without_autocast

LOG_2 = math.log(2.0)


def posterior(logits: Tensor) -> Tensor:
    r"""Softmax over the states: p(z|x), Lemma 1.

    Parameters
    ----------
    logits : Tensor of shape (n_samples, n_states, *spatial)

    Returns
    -------
    Tensor of the same shape, at least float32, that sums to 1 over dimension 1.

    Examples
    --------
    >>> posterior(torch.tensor([[0.0, 0.0], [100.0, -100.0]]))
    tensor([[0.5000, 0.5000],
            [1.0000, 0.0000]])
    """
    check_states(logits, "logits")
    # If the states are contiguous in memory (channels_last), the last dimension is four times as fast.
    dim = -1 if logits.movedim(1, -1).is_contiguous() else 1
    return torch.softmax(logits.movedim(1, dim), dim, dtype=_accurate_dtype(logits)).movedim(dim, 1)


def prior(p_zx: Tensor, *, sample_weight: Tensor | None = None, from_logits: bool = False) -> Tensor:
    r"""Mean of the posteriors: p(z) = E_x[p(z|x)], Lemma 1.

    Parameters
    ----------
    p_zx : Tensor of shape (n_samples, n_states, *spatial)
        Posteriors, or logits with `from_logits`.
    sample_weight : Tensor of shape (n_samples,), optional
        Non-negative weights of the samples; equal by default.
    from_logits : bool, default=False

    Returns
    -------
    Tensor of shape (n_states, *spatial).

    Examples
    --------
    >>> prior(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0.7500, 0.2500])
    """
    return sample_mean(_as_posterior(p_zx, from_logits), sample_weight)


def density_ratio(p_zx: Tensor, *, p_z: Tensor | None = None, from_logits: bool = False) -> Tensor:
    r"""How typical each sample is of each state: p(x|z) / p(x) = p(z|x) / p(z), Lemma 1.

    A state without mass has no conditional distribution. Its ratio is 1, like that of a state that carries no
    information about x.

    Parameters
    ----------
    p_zx : Tensor of shape (n_samples, n_states, *spatial)
        Posteriors, or logits with `from_logits`.
    p_z : Tensor of shape (n_states, *spatial), optional
        The prior; by default that of these samples. Pass the training prior to evaluate new samples.
    from_logits : bool, default=False

    Returns
    -------
    Tensor of the shape of `p_zx`. Its mean over the samples is 1 if `p_z` is their prior.

    Examples
    --------
    >>> density_ratio(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([[1.3333, 0.0000],
            [0.6667, 2.0000]])
    """
    p_zx = _as_posterior(p_zx, from_logits)
    p_z = p_zx.mean(dim=0) if p_z is None else p_z
    dead = p_z <= 0
    return torch.where(dead, torch.ones_like(p_zx), p_zx / torch.where(dead, 1.0, p_z))


def entropy(p: Tensor, dim: int) -> Tensor:
    r"""Shannon entropy along `dim` in nats, with 0 log 0 = 0.

    The gradient at 0 is finite: it is that of the floor in :func:`guard`.

    Examples
    --------
    >>> entropy(torch.tensor([0.5, 0.5, 0.0]), dim=0)
    tensor(0.6931)
    """
    return -(p * guard(p).log()).sum(dim)


def marginal_entropy(p_zx: Tensor, *, sample_weight: Tensor | None = None, from_logits: bool = False) -> Tensor:
    """H(z), averaged over spatial positions: a scalar in [0, log n_states]; parameters as in :func:`prior`.

    Examples
    --------
    >>> marginal_entropy(torch.eye(4))
    tensor(1.3863)
    """
    return entropy(prior(p_zx, sample_weight=sample_weight, from_logits=from_logits), dim=0).mean()


def conditional_entropy(p_zx: Tensor, *, sample_weight: Tensor | None = None, from_logits: bool = False) -> Tensor:
    """H(z|x), averaged over samples and spatial positions: a scalar; parameters as in :func:`prior`.

    Examples
    --------
    >>> conditional_entropy(torch.full((8, 2), 0.5))
    tensor(0.6931)
    """
    p_zx = _as_posterior(p_zx, from_logits)
    return sample_mean(entropy(p_zx, dim=1), sample_weight).mean()


def mutual_information(p_zx: Tensor, *, sample_weight: Tensor | None = None, from_logits: bool = False) -> Tensor:
    r"""I(x; z) in nats, averaged over spatial positions (Proposition 1).

    .. math:: I(x; z) = \mathbb{E}_x \sum_k L_k(x) \log \frac{L_k(x)}{\mathbb{E}_x[L_k(x)]} = H(z) - H(z|x)

    Parameters
    ----------
    p_zx : Tensor of shape (n_samples, n_states, *spatial)
        Posteriors, or logits with `from_logits`.
    sample_weight : Tensor of shape (n_samples,), optional
    from_logits : bool, default=False

    Returns
    -------
    Scalar tensor in [0, log n_states].

    Examples
    --------
    Four samples in four states of their own carry log 4 nats:

    >>> mutual_information(torch.eye(4))
    tensor(1.3863)
    """
    p_zx = _as_posterior(p_zx, from_logits)
    h_z = marginal_entropy(p_zx, sample_weight=sample_weight)
    return (h_z - conditional_entropy(p_zx, sample_weight=sample_weight)).clamp_min(0.0)


def js_divergence(p_zx: Tensor, *, sample_weight: Tensor | None = None, from_logits: bool = False) -> Tensor:
    r"""JS(q_k || rest) of each state against all others, averaged over spatial positions (Theorem 3).

    Here :math:`q_k = p(x|z{=}k)` and the rest is :math:`\bar q_k = p(x|z{\neq}k)`. Their Jensen-Shannon divergence is
    log 2 if the two share no sample, and 0 if z carries no information about x. It is also 0 for a state with no mass
    or with all of it. Parameters are as in :func:`mutual_information`.

    Returns
    -------
    Tensor of shape (n_states,) in [0, log 2].

    Examples
    --------
    >>> js_divergence(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    tensor([0.6931, 0.6931])
    """
    p_zx = _as_posterior(p_zx, from_logits)
    p_z = prior(p_zx, sample_weight=sample_weight)
    overlap = sample_mean(js_overlap(p_zx, p_z), sample_weight)  # (K, *spatial)
    js = (LOG_2 - overlap).clamp(0.0, LOG_2)
    empty = (p_z <= 0) | (complement(p_z, dim=0) <= 0)
    return torch.where(empty, torch.zeros_like(js), js).reshape(len(js), -1).mean(dim=1)


def js_overlap(p_zx: Tensor, p_z: Tensor) -> Tensor:
    r"""Overlap of each sample, where JS(q_k || rest) = log 2 - mean overlap (Proposition 2, Theorem 3).

    .. math:: \tfrac12 \left[ f_k \log(1 + g_k / f_k) + g_k \log(1 + f_k / g_k) \right],
        \qquad f_k = L_k / E_k, \quad g_k = (1 - L_k) / (1 - E_k)

    Parameters
    ----------
    p_zx : Tensor of shape (n_samples, n_states, *spatial)
    p_z : Tensor of shape (n_states, *spatial)

    Returns
    -------
    Tensor of the shape of `p_zx`, non-negative.
    """
    f = guard(guard(p_zx) / guard(p_z))
    g = guard(guard(complement(p_zx, dim=1)) / guard(complement(p_z, dim=0)))
    log_sum = (f + g).log()
    return 0.5 * (f * (log_sum - f.log()) + g * (log_sum - g.log()))


def complement(p: Tensor, dim: int) -> Tensor:
    """1 - p along a dimension on which p sums to 1, accurate even if p is close to 1.

    At most one entry can be close to 1. Its complement is computed as the sum of the others, since ``1 - p`` in float32
    is 0 for p > 1 - 3e-8.

    Examples
    --------
    >>> complement(torch.tensor([1.0, 1e-12]), dim=0)
    tensor([1.0000e-12, 1.0000e+00])
    """
    large = p > 0.75
    others = p.masked_fill(large, 0.0).sum(dim, keepdim=True)
    return torch.where(large, others, 1.0 - p)


def guard(p: Tensor) -> Tensor:
    """`p` with a floor on its values but not on its gradient, so that logarithms and quotients stay finite.

    The floor is the square root of the smallest normal number (1e-19 in float32, 1e-154 in float64). It is too small to
    change a sum, and its inverse can still be squared. The gradient ignores the floor, so a state below it can recover.
    """
    floor = torch.finfo(p.dtype).tiny ** 0.5
    return p + (p.detach().clamp_min(floor) - p.detach())


def sample_mean(values: Tensor, sample_weight: Tensor | None) -> Tensor:
    """Mean over the samples, dimension 0, weighted if weights are given."""
    if sample_weight is None:
        return values.mean(dim=0)
    return weighted_sum(normalized_weight(sample_weight, values), values)


def weighted_sum(weight: Tensor, values: Tensor) -> Tensor:
    """Sum over the samples: (n,), (n, *rest) -> (*rest), in the dtype of `values` inside autocast too."""
    total: Tensor = _WeightedSum.apply(weight.to(values.dtype), values)  # type: ignore[no-untyped-call]
    return total


class _WeightedSum(torch.autograd.Function):
    """A matrix product that autocast does not change, in the forward and in the backward pass."""

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, values: Tensor) -> Tensor:
        with without_autocast(values.device):
            if values.ndim > 2 and values.movedim(1, -1).is_contiguous():  # channels_last: flatten without a copy
                states_last = values.movedim(1, -1)
                return (weight @ states_last.reshape(len(values), -1)).reshape(states_last.shape[1:]).movedim(-1, 0)
            return (weight @ values.reshape(len(values), -1)).reshape(values.shape[1:])

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        weight, values = inputs
        ctx.save_for_backward(weight, values if weight.requires_grad else None)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor]:
        weight, values = ctx.saved_tensors
        of_weight = None if values is None else (values * grad).flatten(1).sum(1)
        return of_weight, weight.reshape(-1, *[1] * grad.ndim) * grad


def normalized_weight(sample_weight: Tensor, like: Tensor) -> Tensor:
    """Weights that sum to 1, one per sample of `like`, with its dtype and device."""
    if sample_weight.shape != like.shape[:1]:
        raise ValueError(
            f"`sample_weight` must have shape ({len(like)},), one weight per sample, got {tuple(sample_weight.shape)}"
        )
    weight = sample_weight.to(like)
    total = weight.sum()
    if not (bool((weight >= 0).all()) and bool(torch.isfinite(total)) and float(total) > 0):
        raise ValueError("`sample_weight` must be finite and non-negative with a positive sum")
    return weight / total


def _accurate_dtype(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _as_posterior(p_zx: Tensor, from_logits: bool) -> Tensor:
    if from_logits:
        return posterior(p_zx)
    check_states(p_zx, "p_zx")
    return p_zx.to(_accurate_dtype(p_zx))


def check_states(x: Tensor, name: str) -> None:
    """Raise unless `x` is a floating tensor (n_samples >= 1, n_states >= 2, *spatial)."""
    if not isinstance(x, Tensor):
        raise TypeError(f"`{name}` must be a torch.Tensor, got {type(x).__name__}")
    if not x.is_floating_point():
        raise TypeError(f"`{name}` must be of a floating dtype, got {x.dtype}")
    if x.ndim < 2 or x.shape[1] < 2 or x.numel() == 0:
        raise ValueError(
            f"`{name}` must have shape (n_samples, n_states, *spatial) with n_samples >= 1 and n_states >= 2, "
            f"got {tuple(x.shape)}"
        )
