"""What the baselines share: settings, an encoder with a linear layer, and one loop on `neuralbayes.training`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import ImageSource, as_source
from neuralbayes.features.encoder import WIDTHS, ImageEncoder
from neuralbayes.features.pretraining import augmented
from neuralbayes.system.files import write_json
from neuralbayes.training import Callback, EarlyStopping, StopOnNaN, cosine, train
from neuralbayes.training.batches import batches_for
from neuralbayes.training.inference import evaluation_mode, in_blocks
from neuralbayes.training.run_folder import open_run

CHOICES: dict[str, tuple[str, ...]] = {
    "encoder": tuple(WIDTHS),
    "normalize": ("dimension", "channel", "whiten"),
    "schedule": ("constant", "cosine"),
    "state": ("relu1", "relu2", "relu3"),
}


def check_settings(config: Any, *, at_least: Mapping[str, int] | None = None) -> None:
    """Raise unless each setting of `config` is one of its choices, and each in `at_least` is that large."""
    for name, known in CHOICES.items():
        if getattr(config, name, known[0]) not in known:
            raise ValueError(f"`{name}` must be one of {', '.join(known)}, got {getattr(config, name)!r}")
    for name, least in (at_least or {}).items():
        if getattr(config, name) < least:
            raise ValueError(f"`{name}` must be at least {least}, got {getattr(config, name)!r}")


@dataclass(frozen=True)
class TrainingConfig:
    """Settings of a training with Adam; `patience` is in epochs without a new best value of `monitor`."""

    method: ClassVar[str]
    monitor: ClassVar[tuple[str, Literal["min", "max"]]] = ("loss", "min")

    batch_size: int
    epochs: int = 100
    patience: int | None = None
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine"] = "constant"
    seed: int = 0

    def __post_init__(self) -> None:
        check_settings(self, at_least={"batch_size": 1, "epochs": 1})
        if not self.learning_rate > 0:
            raise ValueError(f"`learning_rate` must be positive, got {self.learning_rate!r}")


@dataclass(frozen=True)
class EncoderConfig(TrainingConfig):
    """Settings of a training of an image encoder, with the meanings of :class:`neuralbayes.PretrainConfig`."""

    encoder: str = "paper"
    normalize: Per = "dimension"
    augment: bool = False


class HeadedEncoder(ImageEncoder):
    """The paper's encoder with a linear layer on its last hidden state.

    ``ImageEncoder.load`` reads its folder, without the linear layer.
    """

    def __init__(self, size: str, shape: tuple[int, int, int], normalization: Normalization, n_outputs: int) -> None:
        super().__init__(size, shape, normalization)
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(state_shape(self, "relu4")), n_outputs))

    @property
    def classifier(self) -> nn.Sequential:
        """Network and head, which map prepared images to logits and share their weights with this encoder."""
        return nn.Sequential(self.network, self.head)

    def predict_proba(self, images: ImageSource | NDArray[np.uint8]) -> NDArray[np.float32]:
        """Return the softmax output for each image: (n, n_outputs)."""
        source, classifier = as_source(images), self.classifier
        device = next(classifier.parameters()).device
        with evaluation_mode(self):
            return in_blocks(
                lambda rows: classifier(self.prepare(source.read(rows)).to(device)).softmax(dim=1),
                len(source),
                block=500,
                even=True,
            )

    def predict(self, images: ImageSource | NDArray[np.uint8]) -> NDArray[np.int64]:
        """Return the most probable output for each image: (n,)."""
        labels: NDArray[np.int64] = self.predict_proba(images).argmax(axis=1)
        return labels


@torch.no_grad()
def state_shape(encoder: ImageEncoder, state: str) -> tuple[int, int, int]:
    """Channels, height and width of a hidden state."""
    height, width, channels = encoder.shape
    with evaluation_mode(encoder):
        output: Tensor = encoder.layers(state)(torch.zeros(1, channels, height, width))
    return output.shape[1], output.shape[2], output.shape[3]


def classify(network: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """A step on samples with labels: the cross-entropy, with its gradient, and the accuracy."""
    x, labels = batch
    logits = network(x)
    loss = nn.functional.cross_entropy(logits, labels)
    torch.autograd.backward(loss)
    return {"loss": loss, "accuracy": (logits.argmax(1) == labels).float().mean()}


def train_on_images(
    network: nn.Module,
    step: Callable[[nn.Module, Any], Mapping[str, Tensor]],
    encoder: ImageEncoder,
    source: ImageSource,
    config: EncoderConfig,
    out: str | Path | None,
    *,
    per_image: Tensor | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> dict[str, Any]:
    """Train on prepared images, or on pairs of them and the entries of `per_image`; see :func:`train_in_folder`."""

    def fetch(indices: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        batch = source.read(indices.numpy())
        x = encoder.prepare(augmented(batch) if config.augment else batch)
        return x if per_image is None else (x, per_image[indices])

    result = train_in_folder(network, step, fetch, len(source), config, out, callbacks=callbacks, verbose=verbose)
    encoder.eval()
    return result


def train_in_folder(
    network: nn.Module,
    step: Callable[[nn.Module, Any], Mapping[str, Tensor]],
    fetch: Callable[[Tensor], Any],
    n_samples: int,
    config: TrainingConfig,
    out: str | Path | None,
    *,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> dict[str, Any]:
    """Train, or continue an interrupted training, and return what result.json says. Another config is refused."""
    if out is not None:  # only after all settings and samples have been checked
        open_run(Path(out), config.method, asdict(config))
    metric, mode = config.monitor
    stopping = [] if config.patience is None else [EarlyStopping(metric, patience=config.patience, mode=mode)]
    state = train(
        network,
        step,
        batches_for(n_samples, config.batch_size, seed=config.seed),
        fetch=fetch,
        optimizer=torch.optim.Adam(network.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay),
        schedule=cosine(warmup=0.02) if config.schedule == "cosine" else None,
        max_epochs=config.epochs,
        callbacks=(StopOnNaN(), *callbacks, *stopping),
        run_dir=out,
        log_every=20,
        verbose=verbose,
    )
    return {
        "method": config.method,
        "config": asdict(config),
        "samples": n_samples,
        "steps": state.step,
        "stop_reason": state.stop_reason,
        "metrics": state.history[-1] if state.history else {},
    }


def save(out: str | Path | None, result: Mapping[str, Any], encoder: ImageEncoder | None = None) -> None:
    """Write the encoder and result.json into the folder of a run, if there is one."""
    if out is not None:
        if encoder is not None:
            encoder.save(out)
        write_json(Path(out) / "result.json", dict(result))
