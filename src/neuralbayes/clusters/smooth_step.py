"""Training steps with virtual adversarial smoothness: p(z|x) must not change under the worst small step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from neuralbayes.bayes import conditional_entropy, entropy, prior
from neuralbayes.clusters.anchors import Held
from neuralbayes.distributed.global_batch import GlobalBatch, global_batch
from neuralbayes.gradients.replay import frozen_buffers
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
        A step with the metrics "loss", "change" (R_VAT) and "mi". With several processes, p(z), the statistics of batch
        normalisation and the gradient are computed over the batches of all processes.
    """

    def train_step(network: nn.Module, batch: tuple[Tensor, ...]) -> dict[str, Tensor]:
        with global_batch(network, batch) as whole:
            x, radius, *versions = whole.samples
            logits, of_anchors = (whole(x), None) if held is None else held.beside(whole, x)
            near = _one_of(versions[0], whole) if versions else x
            change = _change(whole, network, near, radius, logits, n_iterations, step)
            p_zx = interior_posterior(logits)
            p_z = whole.mean(prior(p_zx))
            of_samples, of_prior = objective.per_sample(p_zx, p_z).mean(), objective.of_prior(p_z)
            of_this_process = whole.share * (change + weight * of_samples)
            of_all = weight * of_prior if of_anchors is None else weight * of_prior + of_anchors
            torch.autograd.backward(of_this_process + of_all / whole.n_processes)
        loss = change + weight * (of_samples + of_prior)
        h_z, h_zx = entropy(p_z.detach(), dim=0), whole.mean(conditional_entropy(p_zx.detach()))
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
        with global_batch(network, batch) as whole:
            x, radius, target = whole.samples
            logits, of_anchors = (whole(x), None) if held is None else held.beside(whole, x)
            change = _change(whole, network, x, radius, logits, n_iterations, step)
            loss = change + nn.functional.cross_entropy(logits, target)
            of_this_process = whole.share * loss
            if of_anchors is not None:
                of_this_process = of_this_process + of_anchors / whole.n_processes
            torch.autograd.backward(of_this_process)
        return {"loss": loss, "change": change}

    return train_step


def _one_of(versions: Tensor, whole: GlobalBatch[Any]) -> Tensor:
    """Draw one version of each sample at random: (n, n_versions, *features) -> (n, *features)."""
    uniform = torch.special.ndtr(whole.noise(versions.new_empty(len(versions))))
    chosen = (uniform * versions.shape[1]).long().clamp_max(versions.shape[1] - 1)
    return versions[torch.arange(len(versions), device=versions.device), chosen]


def _change(
    whole: GlobalBatch[Any],
    network: nn.Module,
    x: Tensor,
    radius: Tensor,
    logits: Tensor,
    n_iterations: int,
    step: float,
) -> Tensor:
    with frozen_buffers(network):  # running statistics come from the unchanged samples only
        return virtual_adversarial(
            whole, x, radius, clean=logits, n_iterations=n_iterations, step=step, start=whole.noise(x)
        )
