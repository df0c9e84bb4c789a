"""Virtual adversarial smoothness: p(z|x) should not change along the small step that changes it most.

Miyato, Maeda, Koyama and Ishii 2018, "Virtual Adversarial Training", arXiv:1704.03976.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from neuralbayes.system.devices import widened, within_autocast, without_autocast


def virtual_adversarial(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    radius: float | Tensor,
    *,
    clean: Tensor | None = None,
    n_iterations: int = 1,
    step: float = 0.1,
    start: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Mean change of p(z|x) under the worst perturbation of each sample.

    .. math::
        R = \frac1B \sum_i KL\big(p(z|x_i) \,\|\, p(z|x_i + r_i)\big), \qquad
        r_i \approx \operatorname{argmax}_{\lVert r \rVert \le \text{radius}_i} KL\big(p(z|x_i) \,\|\, p(z|x_i + r)\big)

    Parameters
    ----------
    function : callable
        From (n, *features) to logits of shape (n, n_states).
    x : Tensor of shape (n, *features)
    radius : float or Tensor of shape (n,)
        Length of the perturbations, non-negative.
    clean : Tensor of shape (n, n_states), optional
        ``function(x)``, if already known.
    n_iterations : int, default=1
        Number of power iterations to find the perturbation. Each takes a forward and a backward pass.
    step : float, default=0.1
        Step length of the power iteration, in units of `radius`.
    start : Tensor of the shape of `x`, optional
        Initial directions, of any length; random by default, from `generator`.

    Returns
    -------
    Non-negative scalar tensor. Only the perturbed output has a gradient; p(z|x) is its fixed target.

    Examples
    --------
    Two states whose logits differ by x: a step of 1 away from x = 0 takes p from 1/2 to 0.73 or 0.27.

    >>> two_states = lambda x: torch.cat([x, torch.zeros_like(x)], dim=1)
    >>> virtual_adversarial(two_states, torch.zeros(1, 1), radius=1.0)
    tensor(0.1201)
    """
    lengths = torch.as_tensor(radius, dtype=x.dtype, device=x.device).expand(len(x))
    if not bool((lengths >= 0).all()):
        raise ValueError(f"`radius` must be non-negative, got {float(lengths.min())}")
    if n_iterations < 1:
        raise ValueError(f"`n_iterations` must be at least 1, got {n_iterations!r}")
    if not step > 0:
        raise ValueError(f"`step` must be positive, got {step!r}")
    lengths = lengths.reshape(-1, *[1] * (x.ndim - 1))
    x = x.detach()
    function = within_autocast(function, x.device)
    with without_autocast(x.device):
        clean = (function(x) if clean is None else clean).detach()
        if start is None:
            start = torch.randn(x.shape, generator=generator, device=x.device, dtype=x.dtype)
        # Power iteration: the divergence has its minimum, 0, at x, so it grows fastest along the first eigenvector of
        # its Hessian. The gradient a small step away from x is proportional to the Hessian times that step.
        direction = _unit(start)
        for _ in range(n_iterations):
            with torch.enable_grad():
                small = (step * lengths * direction).requires_grad_()
                rise = divergence(clean, function(x + small)).sum()
            direction = _unit(torch.autograd.grad(rise, small)[0])
        return divergence(clean, function(x + lengths * direction)).mean()


def divergence(logits: Tensor, others: Tensor) -> Tensor:
    """KL divergence of the softmax of `others` from that of `logits`: (n, n_states), (n, n_states) -> (n,)."""
    log_p, log_q = widened(logits).log_softmax(dim=1), widened(others).log_softmax(dim=1)
    return (log_p.exp() * (log_p - log_q)).sum(dim=1)


def _unit(x: Tensor) -> Tensor:
    """Divide each sample by its length; 0 stays 0."""
    flat = x.flatten(1)
    # If the softmax is sharp, the square of a gradient may underflow to 0.
    flat = flat / flat.abs().amax(dim=1, keepdim=True).clamp_min(torch.finfo(x.dtype).tiny)
    return nn.functional.normalize(flat, dim=1).reshape(x.shape)
