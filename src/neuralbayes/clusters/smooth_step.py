"""Training steps with virtual adversarial smoothness: p(z|x) must not change under the worst small step."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from neuralbayes.bayes import conditional_entropy, entropy, prior
from neuralbayes.clusters.anchors import Held
from neuralbayes.gradients.passes import frozen_buffers
from neuralbayes.objectives import Objective
from neuralbayes.objectives.base import interior_posterior
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial

Step = Callable[[nn.Module, tuple[Tensor, ...]], dict[str, Tensor]]
"""A step for :func:`neuralbayes.training.train`; a batch has x, the radius of each sample, and further tensors."""


def smooth_step(
    objective: Objective, weight: float, *, n_iterations: int = 1, step: float = 0.1, held: Held | None = None
) -> Step:
    r"""Make a training step for :math:`R_{VAT} + \text{weight} \cdot J(\text{logits})` on a batch (x, radius).

    A batch may also have moved versions of each sample, (n, n_versions, *features). Then p(z|x) must not change under
    the worst step from one of them, drawn at random.

    Parameters
    ----------
    objective : Objective
        The objective J.
    weight : float
    n_iterations, step
        As in :func:`neuralbayes.objectives.virtual_adversarial.virtual_adversarial`.
    held : Held, optional
        Known rows and pairs, whose loss is added.

    Returns
    -------
    callable
        A step with the metrics "loss", "change" (R_VAT) and "mi".
    """

    def train_step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        x, radius, *versions = batch
        logits, of_anchors = (network(x), None) if held is None else held.beside(network, x)
        near = _one_of(versions[0]) if versions else x
        change = _change(network, near, radius, logits, n_iterations, step)
        p_zx = interior_posterior(logits)
        p_z = prior(p_zx)
        of_samples, of_prior = objective.per_sample(p_zx, p_z).mean(), objective.of_prior(p_z)
        of_all = weight * of_prior if of_anchors is None else weight * of_prior + of_anchors
        torch.autograd.backward((change + weight * of_samples) + of_all)
        loss = change + weight * (of_samples + of_prior)
        h_z, h_zx = entropy(p_z.detach(), dim=0), conditional_entropy(p_zx.detach())
        return {"loss": loss, "change": change, "mi": (h_z - h_zx).clamp_min(0.0)}

    return train_step


def imitation_step(*, n_iterations: int = 1, step: float = 0.1, held: Held | None = None) -> Step:
    r"""Make a training step for :math:`R_{VAT}` plus the cross-entropy to targets on a batch (x, radius, target).

    Parameters
    ----------
    n_iterations, step
        As in :func:`neuralbayes.objectives.virtual_adversarial.virtual_adversarial`.
    held : Held, optional
        Known rows and pairs, whose loss is added.

    Returns
    -------
    callable
        A step with the metrics "loss" and "change". Targets are distributions over the states, (n, n_states).
    """

    def train_step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        x, radius, target = batch
        logits, of_anchors = (network(x), None) if held is None else held.beside(network, x)
        change = _change(network, x, radius, logits, n_iterations, step)
        loss = change + nn.functional.cross_entropy(logits, target)
        torch.autograd.backward(loss if of_anchors is None else loss + of_anchors)
        return {"loss": loss, "change": change}

    return train_step


def _one_of(versions: Tensor) -> Tensor:
    """Draw one version of each sample at random: (n, n_versions, *features) -> (n, *features)."""
    uniform = torch.special.ndtr(torch.randn(len(versions), device=versions.device, dtype=versions.dtype))
    chosen = (uniform * versions.shape[1]).long().clamp_max(versions.shape[1] - 1)
    return versions[torch.arange(len(versions), device=versions.device), chosen]


def _change(network: nn.Module, x: Tensor, radius: Tensor, logits: Tensor, n_iterations: int, step: float) -> Tensor:
    with frozen_buffers(network):  # running statistics come from the unchanged samples only
        start = torch.randn(x.shape, device=x.device, dtype=x.dtype)
        return virtual_adversarial(network, x, radius, clean=logits, n_iterations=n_iterations, step=step, start=start)
