"""Mutual information maximisation, section 3 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from neuralbayes.bayes import complement, guard
from neuralbayes.objectives.base import Objective


class MIM(Objective):
    r"""Maximise I(x; z): certain posteriors and a uniform prior, or a given one.

    Version 1 (Eq. 5) and version 2 (Eqs. 6 and 7), without the smoothness term:

    .. math::
        J_1 &= \mathbb{E}_x\Big[-\sum_k L_k \log L_k\Big] + (1+\alpha) \sum_k E_k \log E_k \\
        J_2 &= \mathbb{E}_x\Big[-\sum_k L_k \log L_k\Big]
              - (1+\alpha) \sum_k \Big[\tfrac1K \log E_k + \tfrac{K-1}{K} \log (1 - E_k)\Big]

    :math:`J_1` with :math:`\alpha = 0` is exactly :math:`-I(x; z)`.

    Parameters
    ----------
    alpha : float, default=2.0
        Extra weight of the prior term; must be > -1.
    version : {1, 2}, default=2
        2 replaces the entropy of the prior by a cross-entropy whose gradient stays large when one state takes all
        samples.
    target_prior : sequence of n_states floats, optional
        Target for p(z), for imbalanced data; uniform by default. It replaces 1/K in version 2; version 1 becomes
        :math:`\sum_k E_k \log (E_k / (K \pi_k))`. Both are minimal at the target.

    Notes
    -----
    The paper stops the gradient at the logarithm, which makes no difference (Theorem 1). It adds an epsilon of 1e-7
    inside the logarithm, which is not needed here, because :class:`Objective` keeps probabilities inside (0, 1). R_c is
    the `smoothness` argument of :func:`neuralbayes.backward`.

    Examples
    --------
    >>> MIM(alpha=0.0, version=1)(torch.tensor([[9.0, -9.0], [-9.0, 9.0]]))
    tensor(-0.6931)
    """

    target_prior: Tensor | None

    def __init__(
        self,
        alpha: float = 2.0,
        version: Literal[1, 2] = 2,
        target_prior: Sequence[float] | Tensor | None = None,
    ) -> None:
        super().__init__()
        if not alpha > -1.0:
            raise ValueError(f"`alpha` must be > -1, got {alpha!r}")
        if version not in (1, 2):
            raise ValueError(f"`version` must be 1 or 2, got {version!r}")
        self.alpha = alpha
        self.version = version
        self.register_buffer("target_prior", None if target_prior is None else _checked_target(target_prior))

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        """Posterior entropy, the first term of Eqs. 5 and 7."""
        h_zx: Tensor = _Entropy.apply(p_zx)  # type: ignore[no-untyped-call]
        return h_zx

    def prior_term(self, p_z: Tensor) -> Tensor:
        """Prior term: the second term of Eq. 5 (version 1) or Eq. 6 (version 2)."""
        target = self._target(p_z)
        if self.version == 1:
            divergence = (p_z * (guard(p_z) / (len(p_z) * target)).log()).sum(0)
        else:
            divergence = uniform_prior(p_z, target)
        return (1.0 + self.alpha) * divergence

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}, version={self.version}"

    def _target(self, p_z: Tensor) -> Tensor:
        """The target in the shape (n_states, 1, ...) that broadcasts over positions."""
        if self.target_prior is None:
            return _uniform(p_z)
        if len(self.target_prior) != len(p_z):
            raise ValueError(
                f"`target_prior` must have one entry for each of the {len(p_z)} states, got {len(self.target_prior)}"
            )
        return self.target_prior.to(p_z).reshape(-1, *[1] * (p_z.ndim - 1))


def uniform_prior(p_z: Tensor, target: Tensor | None = None) -> Tensor:
    r"""R_p, Eq. 6: :math:`-\sum_k [\pi_k \log E_k + (1 - \pi_k) \log(1 - E_k)]`, minimal if E is the target, 1/K."""
    target = _uniform(p_z) if target is None else target
    return -(target * guard(p_z).log() + (1.0 - target) * guard(complement(p_z, dim=0)).log()).sum(0)


def _uniform(p_z: Tensor) -> Tensor:
    """1/K in the shape (n_states, 1, ...)."""
    shape = (len(p_z), *[1] * (p_z.ndim - 1))
    return torch.full(shape, 1.0 / len(p_z), dtype=p_z.dtype, device=p_z.device)


class _Entropy(torch.autograd.Function):
    """Entropy over dimension 1 of probabilities inside (0, 1). The backward pass needs only their logarithm."""

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        log_p = p.log()
        ctx.save_for_backward(log_p)
        return (p * log_p).sum(dim=1).neg_()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (log_p,) = ctx.saved_tensors
        result: Tensor = (log_p + 1.0).mul_(-grad.unsqueeze(1))
        return result


def _checked_target(target_prior: Sequence[float] | Tensor) -> Tensor:
    target = torch.as_tensor(target_prior, dtype=torch.float64)
    if target.ndim != 1 or not bool((target > 0).all()) or not abs(float(target.sum()) - 1.0) < 1e-6:
        raise ValueError(
            f"`target_prior` must be positive numbers, one per state, that sum to 1, got {target.tolist()}"
        )
    return target / target.sum()
