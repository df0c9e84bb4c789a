"""One trial of a sweep: a pretraining in its own folder, and its metric."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuralbayes.data.images import load_images
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import Images, ImageSource, SubsetSource
from neuralbayes.features.encoder import STATES, ImageEncoder, state_use
from neuralbayes.features.pretraining import PretrainConfig, pretrain
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives.description import named_objective
from neuralbayes.probes.features import checked_labels
from neuralbayes.probes.protocol import probe_parts
from neuralbayes.system.files import inside, read_json, write_json
from neuralbayes.training import Callback

Metric = Literal["probe", "information"]
METRICS: tuple[Metric, ...] = ("probe", "information")
LAST = STATES[-1]
HELD_OUT = 0.2
"""Fraction of the labelled training images for evaluating a probe."""
TRIAL_FILE = "trial.json"
"""Written last: if it exists, the trial is finished."""
PRUNED = "worse than the median of the other trials"


Report = Callable[[int, float], bool]
"""Called with an epoch and the metric; returns whether to stop the trial."""


@dataclass(frozen=True)
class Pictures:
    """The images of the trials. Evaluation always uses the labels of the training part.

    Attributes
    ----------
    data : str
        A name or a path, as in :func:`neuralbayes.load_images`.
    split : str
    limit : int, optional
        Use only the first `limit` images.
    size, channels : int, optional
    """

    data: str
    split: str = "train"
    limit: int | None = None
    size: int | None = None
    channels: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"`limit` must be at least 1, got {self.limit}")

    def load(self, split: str | None = None, *, progress: bool = False) -> Images:
        """The images of a part; by default the part to learn from."""
        images = load_images(
            self.data, split=split or self.split, size=self.size, channels=self.channels, progress=progress
        )
        if self.limit is None or self.limit >= len(images):
            return images
        labels = None if images.labels is None else images.labels[: self.limit]
        return replace(images, source=SubsetSource(images.source, np.arange(self.limit)), labels=labels)


def run_trial(
    pictures: Pictures,
    config: PretrainConfig,
    metric: Metric,
    folder: Path,
    objective: str | None = None,
    report: Report | None = None,
) -> dict[str, Any]:
    """Train in a folder, or resume, and evaluate; does nothing if the trial is finished.

    Parameters
    ----------
    pictures : Pictures
    config : PretrainConfig
    metric : {"probe", "information"}
    folder : Path
        Folder for these settings only.
    objective : str, optional
        As in ``--objective``; MIM by default.
    report : callable, optional
        Called with the value after each epoch except the last; returns whether to stop the trial.

    Returns
    -------
    dict
        "value" is None if the trial stopped early or diverged; "note" says why.
    """
    inside(folder.parent, folder.name)
    if (folder / TRIAL_FILE).is_file():
        kept: dict[str, Any] = read_json(folder / TRIAL_FILE)
        return kept
    source, judge = _opened(pictures, metric)
    callbacks = [_Epochs(source, config, judge, report)] if report else []
    try:
        own = None if objective is None else named_objective(objective)
        encoder = pretrain(source, config, objective=own, out=folder, callbacks=callbacks)
    except (FloatingPointError, ValueError) as error:
        if not (isinstance(error, FloatingPointError) or "must be finite" in str(error)):  # as reported by objectives
            raise
        return {"value": None, "note": f"diverged: {error}", "seconds": None, "host": socket.gethostname()}
    trained = read_json(folder / "result.json")
    pruned = trained["stop_reason"] == PRUNED
    result = {
        "value": None if pruned else judge(encoder),
        "note": PRUNED if pruned else "",
        "seconds": trained["seconds"],
        "host": socket.gethostname(),
    }
    write_json(folder / TRIAL_FILE, result)
    shutil.rmtree(folder / "checkpoints", ignore_errors=True)
    return result


def check_pictures(pictures: Pictures, metric: Metric, *, progress: bool) -> Images:
    """The images to learn from; raises if a sweep cannot use them."""
    images = pictures.load(progress=progress)
    if metric == "probe":
        labelled = images if pictures.split == "train" else pictures.load("train", progress=progress)
        if labelled.labels is None:
            raise ValueError(f"the metric probe needs labels, and {pictures.data} has none; information needs none")
    return images


class _Epochs(Callback):
    """Reports the metric after each epoch except the last, and stops the training on request."""

    def __init__(
        self, source: ImageSource, config: PretrainConfig, judge: Callable[[ImageEncoder], float], report: Report
    ) -> None:
        normalization = Normalization.fit(source, per=config.normalize, progress=False)
        self._encoder = ImageEncoder(config.encoder, source.shape, normalization)
        self._judge = judge
        self._report = report

    def on_epoch_end(self, state: Any, metrics: Mapping[str, float]) -> None:
        if state.finished:
            return
        (states,) = (module for module in state.network.modules() if isinstance(module, HiddenStates))
        self._encoder.network.load_state_dict(states.network.state_dict())
        if self._report(state.epoch, self._judge(self._encoder)):
            state.stop(PRUNED)


@cache
def _opened(pictures: Pictures, metric: Metric) -> tuple[ImageSource, Callable[[ImageEncoder], float]]:
    """The images and the evaluation, cached for all trials of a worker."""
    images = pictures.load()
    if metric == "information":
        return images.source, lambda encoder: state_use(encoder, images.source)[LAST].information
    labelled = images if pictures.split == "train" else pictures.load("train")
    labels = checked_labels(labelled.labels, len(labelled), "train")
    order = np.random.default_rng(0).permutation(len(labels))
    held_out, fit = np.split(order, [max(1, round(HELD_OUT * len(order)))])

    def accuracy(encoder: ImageEncoder) -> float:
        features = encoder.features(labelled.source, LAST)
        return probe_parts(
            (features[fit], labels[fit]), (features[held_out], labels[held_out]), head="linear", seeds=1
        ).mean

    return images.source, accuracy
