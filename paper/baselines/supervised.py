"""The same encoder trained with labels, for orientation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource, SubsetSource
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.training import Callback, TrainingState
from neuralbayes.training.inference import evaluation_mode, in_blocks
from neuralbayes.training.rng import seeded_globally
from paper.baselines.training import EncoderConfig, classify, train_in_folder, with_head
from paper.protocol import LabeledData, opened


@dataclass(frozen=True)
class SupervisedConfig(EncoderConfig):
    """Settings of supervised training: the fraction `validation` of the images is held out to select the epoch."""

    method: ClassVar[str] = "supervised"

    batch_size: int = 128
    validation: float = 0.1


def supervised(
    images: LabeledData, config: SupervisedConfig, *, out: str | Path | None = None, callbacks: Sequence[Callback] = ()
) -> ImageEncoder:
    """Train an encoder with a linear layer to classify images, and return it after its best epoch.

    That is the best on the validation images, by accuracy and then by cross-entropy.
    """
    source, y = opened(images, "images")
    if isinstance(source, np.ndarray):
        raise ValueError(f"`images` must be images to train an encoder on, got features of shape {source.shape}")
    order = np.random.default_rng(config.seed).permutation(len(y))
    n_held = min(max(1, round(config.validation * len(y))), len(y) - 1)
    held_out, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    train, labels = SubsetSource(source, kept), torch.from_numpy(y[kept])
    with seeded_globally(config.seed):
        normalization = Normalization.fit(train, per=config.normalize, progress=False)
        encoder = ImageEncoder(config.encoder, train.shape, normalization)
        classifier = with_head(encoder, int(y.max()) + 1)
        best = BestEpoch(encoder, classifier, SubsetSource(source, held_out), y[held_out])

        def fetch(indices: Tensor) -> tuple[Tensor, Tensor]:
            return encoder.prepare(train.read(indices.numpy())), labels[indices]

        train_in_folder(classifier, classify, fetch, len(train), config, out, (best, *callbacks))
    if best.weights:  # none if stopped within the first epoch
        classifier.load_state_dict(best.weights)
    return encoder.eval()


class BestEpoch(Callback):
    """Evaluates a classifier on held-out images after each epoch, and keeps the best weights.

    It adds "validation_accuracy" and "validation_loss" to the metrics of the epoch.
    """

    def __init__(
        self, encoder: ImageEncoder, classifier: nn.Sequential, images: ImageSource, labels: NDArray[np.int64]
    ) -> None:
        self._encoder, self._classifier, self._images, self._labels = encoder, classifier, images, labels
        self.score = (-math.inf, -math.inf)  # accuracy, minus the cross-entropy
        self.weights: dict[str, Tensor] = {}

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> dict[str, float]:
        with evaluation_mode(self._classifier):
            p = in_blocks(self._posteriors, len(self._images), block=500, even=True)
        accuracy = float((p.argmax(axis=1) == self._labels).mean())
        of_truth = p[np.arange(len(p)), self._labels]
        loss = float(-np.log(of_truth.clip(np.finfo(np.float32).tiny)).mean())
        if (accuracy, -loss) > self.score:
            self.score = (accuracy, -loss)
            self.weights = {name: t.detach().clone() for name, t in self._classifier.state_dict().items()}
        return {"validation_accuracy": accuracy, "validation_loss": loss}

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "weights": self.weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.score, self.weights = tuple(state["score"]), dict(state["weights"])

    def _posteriors(self, rows: NDArray[np.int64]) -> Tensor:
        device = next(self._classifier.parameters()).device
        p_yx: Tensor = self._classifier(self._encoder.prepare(self._images.read(rows)).to(device)).softmax(dim=1)
        return p_yx
