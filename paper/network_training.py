"""Train any network with an objective and R_c, for the experiments that define their own network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import torch
from neuralbayes.fitting import fit
from neuralbayes.training.config import TrainingConfig
from torch import Tensor, nn

from neuralbayes.objectives import Objective, Smoothness
from neuralbayes.training import Callback
from neuralbayes.training.inference import in_blocks
from paper.timing import TIMED, seconds_per_sample

PIECE = 2000
"""Rows per forward pass through a trained network."""

IMAGES = 4
"""Dimensions of a batch of images."""


@dataclass(frozen=True)
class NetworkConfig(TrainingConfig):
    """Settings of a training with Adam.

    Attributes
    ----------
    beta : float
        Weight of R_c.
    of : {"logits", "posterior"}
        Argument of R_c: the last output of the network, or its softmax.
    microbatch_size : int
        Samples per pass through the network; p(z) is that of the whole batch.
    batch_size, epochs, learning_rate, weight_decay, schedule, seed
        As in any training.
    """

    method: ClassVar[str] = "network"

    beta: float = 1.0
    of: Literal["logits", "posterior"] = "logits"
    microbatch_size: int = 500


def train_network(
    network: nn.Module,
    objective: Objective,
    x: Tensor,
    config: NetworkConfig,
    *,
    out: Path | None = None,
    callbacks: Sequence[Callback] = (),
) -> nn.Module:
    """Train in place, with the caller's random state, and return the network in evaluation mode.

    Parameters
    ----------
    network : nn.Module
        Returns logits or several hidden states.
    objective : Objective
    x : Tensor of shape (n_samples, *features)
    config : NetworkConfig
    out : Path, optional
        Folder of the training. An interrupted training resumes from it.
    callbacks : sequence of Callback
    """
    if x.ndim == IMAGES:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    fit(
        objective,
        network,
        x,
        max_epochs=config.epochs,
        batch_size=config.batch_size,
        microbatch_size=config.microbatch_size,
        smoothness=Smoothness(config.beta, of=config.of) if config.beta > 0 else None,
        optimizer=config.make_optimizer,
        schedule=config.make_schedule(),
        callbacks=[*callbacks, *config.make_stopping()],
        out=out,
        log_every=20,
        seed=config.seed,
    )
    return network


def network_seconds(network: nn.Module, objective: Objective, shape: tuple[int, ...], config: NetworkConfig) -> float:
    """Expected seconds per sample and epoch, by timing samples of noise.

    A few images are enough. With rows, the update of the weights may take longer than a few samples, so a whole batch
    is timed.
    """
    n_samples = config.batch_size if len(shape) == 1 else TIMED
    timed = NetworkConfig(n_samples, epochs=1, beta=config.beta, of=config.of)
    noise = torch.randn(3 * n_samples, *shape)
    return seconds_per_sample(
        lambda clock: train_network(network, objective, noise, timed, callbacks=[clock]), n_samples
    )


def outputs(network: nn.Module, x: Tensor) -> Tensor:
    """Outputs of a network with a single output for all rows, computed in pieces."""
    return torch.from_numpy(in_blocks(lambda rows: network(x[rows]), len(x), block=PIECE))
