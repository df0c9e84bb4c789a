"""Train any network with an objective and R_c, for the experiments that define their own network."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from neuralbayes.objectives import Objective, Smoothness
from neuralbayes.training.fit import fit

PIECE = 2000
"""Rows per forward pass through a trained network."""


def train_network(
    network: nn.Module,
    objective: Objective,
    x: Tensor,
    *,
    epochs: int,
    batch_size: int,
    microbatch_size: int,
    beta: float,
    seed: int,
    of: Literal["logits", "posterior"] = "logits",
    out: Path | None = None,
) -> nn.Module:
    """Train in place with Adam at its usual rate, p(z) of the whole batch and torch's present random state."""
    if x.ndim == 4:
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    fit(
        objective,
        network,
        x,
        max_epochs=epochs,
        batch_size=batch_size,
        microbatch_size=microbatch_size,
        smoothness=Smoothness(beta, of=of) if beta > 0 else None,
        out=out,
        log_every=20,
        seed=seed,
    )
    return network


@torch.no_grad()
def outputs(network: nn.Module, x: Tensor) -> Tensor:
    """Outputs of a network for all rows, computed in pieces."""
    return torch.cat([network(piece) for piece in torch.split(x, PIECE)])
