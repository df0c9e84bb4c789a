"""The same encoder trained with labels, as an upper bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from neuralbayes.features.encoder_training import EncoderConfig, Learner, train_encoder
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import ImageSource, SubsetSource
from neuralbayes.probes.features import LabeledData, checked_labels, opened
from neuralbayes.training import Callback, TrainingState
from paper.baselines.headed import HeadedEncoder, classify


@dataclass(frozen=True)
class SupervisedConfig(EncoderConfig):
    """Settings of supervised training.

    Attributes
    ----------
    validation : float
        Fraction of random images that are held out to select the epoch.
    pooled : bool
        Classify the average of the last state over its positions, instead of all of it.
    patience : int, optional
        Stop after this many epochs without a new best accuracy on the held-out images.
    encoder, normalize, augment, batch_size, epochs, learning_rate, weight_decay, schedule, seed
        As in :class:`neuralbayes.PretrainConfig`.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> baselines.SupervisedConfig(encoder="small", patience=5).validation
    0.1
    """

    method: ClassVar[str] = "supervised"
    monitor: ClassVar[tuple[str, Literal["min", "max"]]] = ("validation_accuracy", "max")

    batch_size: int = 128
    validation: float = 0.1
    pooled: bool = False

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

    Parameters
    ----------
    images : Images, Split, or tuple (images of shape (n, H, W, C), labels of shape (n,))
        Labelled images.
    config : SupervisedConfig
    out, callbacks, verbose
        As in :func:`neuralbayes.pretrain`.

    Returns
    -------
    HeadedEncoder
        The encoder after its best epoch on the validation images, by accuracy and then by cross-entropy. result.json
        contains the epoch and its accuracy.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> part = nb.datasets.load("digits").train
    >>> images = part.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> config = baselines.SupervisedConfig(encoder="tiny", epochs=1)
    >>> encoder = baselines.supervised((images, part.labels[:40]), config)
    >>> encoder.predict(images).shape
    (40,)
    """
    source, labels, _ = opened(images, "images")
    if isinstance(source, np.ndarray):
        raise ValueError(f"`images` must be images to train an encoder on, got features of shape {source.shape}")
    y = checked_labels(labels, len(source), "images")
    if len(y) < 2:
        raise ValueError(f"`images` must be at least 2, one to train on and one to choose the epoch, got {len(y)}")
    order = np.random.default_rng(config.seed).permutation(len(y))
    n_held = min(max(1, round(config.validation * len(y))), len(y) - 1)
    held_out, kept = np.sort(order[:n_held]), np.sort(order[n_held:])
    n_classes = int(y.max()) + 1

    def learner(train: ImageSource, normalization: Normalization) -> Learner[HeadedEncoder]:
        encoder = HeadedEncoder(config.encoder, train.shape, normalization, n_classes, config.pooled)
        best = BestEpoch(encoder, SubsetSource(source, held_out), y[held_out])
        per_image = torch.from_numpy(y[kept])
        return Learner(encoder, encoder.classifier, _step, per_image, callbacks=[best], finish=best.restore)

    return train_encoder(SubsetSource(source, kept), config, learner, out=out, callbacks=callbacks, verbose=verbose)


class BestEpoch(Callback):
    """Evaluates an encoder on held-out images after each epoch, and keeps the best weights.

    It adds "validation_accuracy" and "validation_loss" to the metrics of the epoch.
    """

    def __init__(self, encoder: HeadedEncoder, images: ImageSource, labels: NDArray[np.int64]) -> None:
        self._encoder = encoder
        self._images = images
        self._labels = labels
        self._best = {"accuracy": -math.inf, "loss": math.inf, "epoch": 0}
        self._weights: dict[str, Tensor] = {}

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> dict[str, float]:
        p = self._encoder.predict_proba(self._images)
        accuracy = float((p.argmax(axis=1) == self._labels).mean())
        of_truth = p[np.arange(len(p)), self._labels]
        loss = float(-np.log(of_truth.clip(np.finfo(np.float32).tiny)).mean())
        if (accuracy, -loss) > (self._best["accuracy"], -self._best["loss"]):
            self._best = {"accuracy": accuracy, "loss": loss, "epoch": state.epoch}
            self._weights = {name: t.detach().clone() for name, t in self._encoder.classifier.state_dict().items()}
        return {"validation_accuracy": accuracy, "validation_loss": loss}

    def restore(self, encoder: HeadedEncoder, folder: Path | None) -> dict[str, Any]:
        """Restore the best weights, and return the entries of that epoch for result.json."""
        if not self._weights:  # stopped within the first epoch
            return {}
        encoder.classifier.load_state_dict(self._weights)
        return {"best_epoch": self._best["epoch"], "validation_accuracy": self._best["accuracy"]}

    def state_dict(self) -> dict[str, Any]:
        return {"best": self._best, "weights": self._weights}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._best, self._weights = dict(state["best"]), dict(state["weights"])


def _step(network: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    return classify(network, *batch)
