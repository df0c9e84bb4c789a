"""What the baselines share: settings, and one loop on `neuralbayes.training`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from neuralbayes.data.normalize import Per
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import StopOnNaN, cosine, train
from neuralbayes.training.batches import batches_for
from neuralbayes.training.inference import evaluation_mode
from neuralbayes.training.run_folder import open_run


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training with Adam."""

    method: ClassVar[str]

    batch_size: int
    epochs: int = 100
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine"] = "constant"
    seed: int = 0


@dataclass(frozen=True)
class EncoderConfig(TrainingConfig):
    """Settings of a training of an image encoder, with the meanings of :class:`neuralbayes.PretrainConfig`."""

    encoder: str = "paper"
    normalize: Per = "dimension"


@torch.no_grad()
def state_shape(encoder: ImageEncoder, state: str) -> tuple[int, int, int]:
    """Channels, height and width of a hidden state."""
    height, width, channels = encoder.shape
    with evaluation_mode(encoder):
        output: Tensor = encoder.layers(state)(torch.zeros(1, channels, height, width))
    return output.shape[1], output.shape[2], output.shape[3]


def train_in_folder(
    network: nn.Module,
    step: Callable[[nn.Module, Any], Mapping[str, Tensor]],
    fetch: Callable[[Tensor], Any],
    n_samples: int,
    config: TrainingConfig,
    out: str | Path | None,
) -> None:
    """Train, or continue an interrupted training in the folder `out`. Another config is refused."""
    if out is not None:
        open_run(Path(out), config.method, asdict(config))
    train(
        network,
        step,
        batches_for(n_samples, config.batch_size, seed=config.seed),
        fetch=fetch,
        optimizer=torch.optim.Adam(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay),
        schedule=cosine(warmup=0.02) if config.schedule == "cosine" else None,
        max_epochs=config.epochs,
        callbacks=(StopOnNaN(),),
        run_dir=out,
        log_every=20,
    )
    network.eval()
