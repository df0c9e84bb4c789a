"""The same encoder trained with labels, as an upper bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource, SubsetSource
from neuralbayes.training import Callback, TrainingState
from neuralbayes.training.rng import seeded_globally
from paper.baselines.training import EncoderConfig, HeadedEncoder, classify, save, train_on_images
from paper.protocol import LabeledData, opened


@dataclass(frozen=True)
class SupervisedConfig(EncoderConfig):
    """Settings of supervised training: the fraction `validation` of the images is held out to select the epoch."""

    method: ClassVar[str] = "supervised"
    monitor: ClassVar[tuple[str, Literal["min", "max"]]] = ("validation_accuracy", "max")

    batch_size: int = 128
    validation: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.validation < 1.0:
            raise ValueError(f"`validation` must be in (0, 1), got {self.validation!r}")


def supervised(
    images: LabeledData,
    config: SupervisedConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> HeadedEncoder:
    """Train an encoder with a linear layer to classify images.

    Other parameters are those of :func:`neuralbayes.pretrain`. The result is the encoder after its best epoch on the
    validation images, by accuracy and then by cross-entropy; result.json says which.
    """
    source, y = opened(images, "images")
    if isinstance(source, np.ndarray):
        raise ValueError(f"`images` must be images to train an encoder on, got features of shape {source.shape}")
    if len(y) < 2:
        raise ValueError(f"`images` must be at least 2, one to train on and one to choose the epoch, got {len(y)}")
    order = np.random.default_rng(config.seed).permutation(len(y))
    n_held = min(max(1, round(config.validation * len(y))), len(y) - 1)
    held_out, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    train = SubsetSource(source, kept)
    with seeded_globally(config.seed):
        normalization = Normalization.fit(train, per=config.normalize, progress=verbose)
        encoder = HeadedEncoder(config.encoder, train.shape, normalization, int(y.max()) + 1)
        best = BestEpoch(encoder, SubsetSource(source, held_out), y[held_out])
        result = train_on_images(
            encoder.classifier,
            classify,
            encoder,
            train,
            config,
            out,
            per_image=torch.from_numpy(y[kept]),
            callbacks=(best, *callbacks),
            verbose=verbose,
        )
    if best.weights:  # none if stopped within the first epoch
        encoder.classifier.load_state_dict(best.weights)
        result |= {"best_epoch": best.epoch, "validation_accuracy": best.score[0]}
    save(out, result, encoder)
    return encoder


class BestEpoch(Callback):
    """Evaluates an encoder on held-out images after each epoch, and keeps the best weights.

    It adds "validation_accuracy" and "validation_loss" to the metrics of the epoch.
    """

    def __init__(self, encoder: HeadedEncoder, images: ImageSource, labels: NDArray[np.int64]) -> None:
        self._encoder, self._images, self._labels = encoder, images, labels
        self.score = (-math.inf, -math.inf)  # accuracy, minus the cross-entropy
        self.epoch = 0
        self.weights: dict[str, Tensor] = {}

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> dict[str, float]:
        p = self._encoder.predict_proba(self._images)
        accuracy = float((p.argmax(axis=1) == self._labels).mean())
        of_truth = p[np.arange(len(p)), self._labels]
        loss = float(-np.log(of_truth.clip(np.finfo(np.float32).tiny)).mean())
        if (accuracy, -loss) > self.score:
            self.score, self.epoch = (accuracy, -loss), state.epoch
            self.weights = {name: t.detach().clone() for name, t in self._encoder.classifier.state_dict().items()}
        return {"validation_accuracy": accuracy, "validation_loss": loss}

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "epoch": self.epoch, "weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.score, self.epoch, self.weights = tuple(state["score"]), state["epoch"], dict(state["weights"])
