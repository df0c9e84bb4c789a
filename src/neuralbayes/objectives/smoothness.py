"""R_c, the finite-difference penalty that keeps L(x) smooth (section 4.2 and appendix B of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from neuralbayes.bayes import normalized_weight, posterior
from neuralbayes.objectives.base import Outputs, as_list
from neuralbayes.system.devices import widened, within_autocast, without_autocast

Zeta = Literal["batch", "sample"]
Coefficients = Literal["normal", "binary"]


def smoothness(
    function: Callable[[Tensor], Tensor],
    x: Tensor,
    scale: float = 0.1,
    *,
    clean: Tensor | None = None,
    fraction: float = 1.0,
    zeta: Zeta = "batch",
    center: bool = False,
    coefficients: Coefficients = "normal",
    sample_weight: Tensor | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    r"""Squared finite differences of `function` along random directions in the span of the batch (Eqs. 11 and 12).

    .. math::
        R_c = \frac1B \sum_i \frac{\lVert F(x_i) - F(x_i + \zeta \hat\delta_i) \rVert^2}{\zeta^2},
        \qquad \hat\delta_i = \frac{X v_i}{\lVert X v_i \rVert}, \quad v_i \sim N(0, I), \quad
        \zeta \sim N(0, \text{scale}^2)

    Parameters
    ----------
    function : callable
        F, from (m, *features) to (m, ...).
    x : Tensor of shape (n_samples, *features)
    scale : float, default=0.1
        Standard deviation of zeta; the paper's 0.1 is meant for data of unit variance.
    clean : Tensor of shape (n_samples, ...), optional
        ``function(x)``, if already known. This saves half of the cost.
    fraction : float, default=1.0
        Fraction of the samples to perturb, drawn without replacement: an unbiased estimate at a lower cost.
    zeta : {"batch", "sample"}, default="batch"
        One step length for the batch, as in the paper and the authors' code, or one per sample.
    center : bool, default=False
        Draw directions in the span of X minus its mean, as the authors' code does. The paper does not centre X.
    coefficients : {"normal", "binary"}, default="normal"
        Distribution of the entries of v: standard normal, as in the paper, or 0 and 1 with equal probability, as in the
        authors' code.
    sample_weight : Tensor of shape (n_samples,), optional
    generator : torch.Generator, optional
        Random number generator; the global one by default.

    Returns
    -------
    Scalar tensor, with the gradient of both branches.

    Notes
    -----
    zeta is kept at least scale/1000 away from 0, because smaller differences would be rounding errors in float32.

    Examples
    --------
    The Jacobian of a linear map is constant: here every direction is stretched threefold.

    >>> round(float(smoothness(lambda x: 3.0 * x, torch.eye(4, dtype=torch.float64))), 6)
    9.0
    """
    if not x.is_floating_point() or x.ndim < 2 or x.numel() == 0:
        raise ValueError(
            "`x` must be a floating tensor of shape (n_samples, *features) with n_samples >= 1, "
            f"got {tuple(x.shape)} of {x.dtype}"
        )
    _check_options(scale, fraction, zeta, coefficients)
    n = len(x)
    m = math.ceil(fraction * n)
    function = within_autocast(function, x.device)
    with without_autocast(x.device):
        clean = function(x) if clean is None else clean
        chosen = slice(None) if m == n else torch.randperm(n, generator=generator, device=x.device)[:m]
        weight = x.new_full((n,), 1.0 / n) if sample_weight is None else normalized_weight(sample_weight, x)

        direction = span_directions(x, m, center, generator, coefficients)
        steps = torch.randn(m if zeta == "sample" else 1, generator=generator, device=x.device, dtype=x.dtype)
        steps = scale * torch.where(steps < 0, steps.clamp_max(-1e-3), steps.clamp_min(1e-3))
        perturbed = x[chosen] + steps.reshape(-1, *[1] * (x.ndim - 1)) * direction
        difference = (clean[chosen] - function(perturbed)).flatten(1)
        # Each sample is drawn with probability m / n, so dividing by it makes the sum unbiased.
        per_sample = difference.square().sum(dim=1) / steps.square()
        return (n / m) * (weight[chosen] * per_sample).sum()


def span_directions(
    x: Tensor,
    n_directions: int,
    center: bool,
    generator: torch.Generator | None,
    coefficients: Coefficients = "normal",
) -> Tensor:
    """Unit vectors in the span of the samples, Eq. 12: (n_directions, *features); 0 if all samples are 0."""
    rows = x.detach().flatten(1)
    if center:
        rows = rows - rows.mean(dim=0)
    shape = (n_directions, len(rows))
    if coefficients == "binary":
        v = torch.randint(0, 2, shape, generator=generator, device=x.device).to(x.dtype)
    else:
        v = torch.randn(shape, generator=generator, device=x.device, dtype=x.dtype)
    return nn.functional.normalize(v @ rows, dim=1).reshape(n_directions, *x.shape[1:])


class Smoothness(nn.Module):
    r"""beta * R_c on the output of a network, for the `smoothness` argument of :func:`neuralbayes.backward`.

    Parameters
    ----------
    beta : float, default=1.0
        Weight of R_c.
    of : {"pooled", "logits", "posterior"} or callable, default="pooled"
        Quantity to keep smooth. "pooled" is the last output averaged over its positions (the paper's appendix),
        "logits" the last output itself, and "posterior" its softmax over the states (the paper's main text). For a
        vector of logits, "pooled" and "logits" are the same. A callable is applied to the outputs of the network.
    scale, fraction, zeta, center, coefficients
        As in :func:`smoothness`.

    Examples
    --------
    >>> R_c = Smoothness(beta=2.0, of="logits")
    >>> round(float(R_c(nn.Identity(), torch.eye(4, dtype=torch.float64))), 6)
    2.0
    """

    def __init__(
        self,
        beta: float = 1.0,
        of: Literal["pooled", "logits", "posterior"] | Callable[[Outputs], Tensor] = "pooled",
        scale: float = 0.1,
        fraction: float = 1.0,
        zeta: Zeta = "batch",
        center: bool = False,
        coefficients: Coefficients = "normal",
    ) -> None:
        super().__init__()
        if not (math.isfinite(beta) and beta >= 0):
            raise ValueError(f"`beta` must be finite and non-negative, got {beta!r}")
        if not callable(of) and of not in ("pooled", "logits", "posterior"):
            raise ValueError(f'`of` must be "pooled", "logits", "posterior" or a function, got {of!r}')
        _check_options(scale, fraction, zeta, coefficients)
        self.beta = beta
        self.of = of
        self.scale = scale
        self.fraction = fraction
        self.zeta: Zeta = zeta
        self.center = center
        self.coefficients: Coefficients = coefficients

    def select(self, outputs: Outputs) -> Tensor:
        """The quantity to keep smooth, from the outputs of a network."""
        if callable(self.of):
            return self.of(outputs)
        last = as_list(outputs)[-1]
        if self.of == "pooled":
            return last.flatten(2).mean(dim=2) if last.ndim > 2 else last
        return posterior(last) if self.of == "posterior" else last

    def forward(
        self,
        network: Callable[[Tensor], Outputs],
        x: Tensor,
        clean: Outputs | None = None,
        sample_weight: Tensor | None = None,
    ) -> Tensor:
        """beta * R_c of `network` on `x`, reusing its outputs `clean` if given: a scalar."""
        network = within_autocast(network, x.device)
        with without_autocast(x.device):
            return self.beta * smoothness(
                lambda batch: self.select(network(batch)),
                x,
                self.scale,
                clean=None if clean is None else self.select(widened(clean)),
                fraction=self.fraction,
                zeta=self.zeta,
                center=self.center,
                coefficients=self.coefficients,
                sample_weight=sample_weight,
            )

    def extra_repr(self) -> str:
        return f"beta={self.beta}, of={self.of!r}, scale={self.scale}, fraction={self.fraction}"


def _check_options(scale: float, fraction: float, zeta: str, coefficients: str) -> None:
    if not (math.isfinite(scale) and scale > 0):
        raise ValueError(f"`scale` must be finite and positive, got {scale!r}")
    if not 0.0 < fraction <= 1.0:
        raise ValueError(f"`fraction` must be in (0, 1], got {fraction!r}")
    if zeta not in ("batch", "sample"):
        raise ValueError(f'`zeta` must be "batch" or "sample", got {zeta!r}')
    if coefficients not in ("normal", "binary"):
        raise ValueError(f'`coefficients` must be "normal" or "binary", got {coefficients!r}')
