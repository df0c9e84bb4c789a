"""`Objective`: the base class of all objectives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from neuralbayes.bayes import check_states, posterior, prior, sample_mean
from neuralbayes.objectives.running import RunningPrior
from neuralbayes.system.autocast import without_autocast


class Objective(nn.Module):
    r"""An objective written in p(z|x) and p(z).

    .. math:: J = \operatorname{mean}_i \varphi(L(x_i), E) + \psi(E), \qquad E = \operatorname{mean}_i L(x_i)

    A subclass implements :math:`\varphi` as `sample_term` and, optionally, :math:`\psi` as `prior_term`; p(x|z)/p(x) is
    ``p_zx / p_z``. Call an objective on logits to get a scalar with the gradient of that batch. Use
    :func:`neuralbayes.backward` to get the exact gradient of a batch of any size.

    The values of both tensors lie strictly inside (0, 1), so logarithms, quotients and their gradients stay finite even
    if one state is dead or takes all samples.

    Attributes
    ----------
    running_prior : RunningPrior
        The estimate of p(z) over past batches that ``backward(..., marginal="running")`` updates. It is part of
        `state_dict`, like the running statistics of batch normalisation.

    Examples
    --------
    Mutual information, written from the definition:

    >>> class NegativeInformation(Objective):
    ...     def sample_term(self, p_zx, p_z):
    ...         return -(p_zx * (p_zx / p_z).log()).sum(1)
    >>> NegativeInformation()(torch.tensor([[9.0, -9.0], [-9.0, 9.0]]))
    tensor(-0.6931)
    """

    def __init__(self) -> None:
        super().__init__()
        self.running_prior = RunningPrior()

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        r"""The term of each sample, :math:`\varphi(L(x_i), E)`.

        Parameters
        ----------
        p_zx : Tensor of shape (n_samples, n_states, *spatial)
        p_z : Tensor of shape (n_states, *spatial)

        Returns
        -------
        Tensor of shape (n_samples, *spatial). The term of a sample must not depend on other samples.
        """
        raise NotImplementedError(f"{type(self).__name__} must define `sample_term(p_zx, p_z)`")

    def prior_term(self, p_z: Tensor) -> Tensor:
        r"""The term of the prior alone, :math:`\psi(E)`; 0 by default.

        Parameters
        ----------
        p_z : Tensor of shape (n_states, *spatial)

        Returns
        -------
        Tensor of shape (*spatial).
        """
        return torch.zeros_like(p_z[0])

    def forward(self, logits: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """The objective on one batch, with p(z) of that batch, averaged over spatial positions.

        Parameters
        ----------
        logits : Tensor of shape (n_samples, n_states, *spatial)
        sample_weight : Tensor of shape (n_samples,), optional

        Returns
        -------
        Scalar tensor.
        """
        p_zx = interior_posterior(logits)
        with without_autocast(p_zx.device):
            p_z = prior(p_zx, sample_weight=sample_weight)
            return sample_mean(self.per_sample(p_zx, p_z), sample_weight) + self.of_prior(p_z)

    def per_sample(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        """`sample_term`, checked and averaged over positions: (n_samples,).

        `p_zx` must lie strictly inside (0, 1).
        """
        check_finite(p_z)
        value = self.sample_term(p_zx, interior(p_z))
        self._check_shape("sample_term", value, p_zx.shape[:1] + p_zx.shape[2:])
        return value.reshape(len(p_zx), -1).mean(dim=1)

    def of_prior(self, p_z: Tensor) -> Tensor:
        """`prior_term`, checked and averaged over positions: a scalar."""
        value = self.prior_term(interior(p_z))
        self._check_shape("prior_term", value, p_z.shape[1:])
        return value.mean()

    def _check_shape(self, method: str, value: Tensor, expected: torch.Size) -> None:
        if value.shape != expected:
            raise ValueError(
                f"`{type(self).__name__}.{method}` must return a tensor of shape {tuple(expected)}, "
                f"got {tuple(value.shape)}"
            )


def interior_posterior(logits: Tensor) -> Tensor:
    """p(z|x) strictly inside (0, 1): softmax over the states, shifted by less than the rounding error.

    The backward pass keeps one tensor of the size of `logits` and uses the gradient of softmax. The floor applies to
    the values but not to the gradient, so a state below it can recover.
    """
    check_states(logits, "logits")
    p_zx: Tensor = _InteriorSoftmax.apply(logits)  # type: ignore[no-untyped-call]
    return p_zx


def interior(p: Tensor) -> Tensor:
    """Clamp probabilities strictly inside (0, 1), without changing the gradient."""
    value = p.detach()
    return p + (value.clamp(*_bounds(p.dtype)) - value)


class _InteriorSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        p = posterior(logits)
        p.clamp_(*_bounds(p.dtype))
        ctx.save_for_backward(p)
        ctx.dtype = logits.dtype
        return p

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (p,) = ctx.saved_tensors
        # p * (grad - sum_k p_k grad_k) in one pass, over the last dimension if p is laid out that way in memory
        dim = -1 if p.movedim(1, -1).is_contiguous() else 1
        result: Tensor = torch.ops.aten._softmax_backward_data(
            grad.movedim(1, dim).contiguous(), p.movedim(1, dim), dim, p.dtype
        )
        return result.movedim(dim, 1).to(ctx.dtype)


def _bounds(dtype: torch.dtype) -> tuple[float, float]:
    """The square root of the smallest normal number, whose inverse can be squared, and the largest number below 1."""
    limits = torch.finfo(dtype)
    return limits.tiny**0.5, 1.0 - limits.eps / 2


def check_finite(p_z: Tensor) -> None:
    """Raise if a prior shows that the logits were NaN or infinite (checking the logits would cost a pass)."""
    if not bool(torch.isfinite(p_z.detach().sum())):
        raise ValueError("`logits` must be finite, got NaN or infinity; check the input and the learning rate")
