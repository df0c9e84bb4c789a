"""The runs of most experiments: train an encoder on images by some method, then probe its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from neuralbayes.features.encoder import ImageEncoder, state_use
from neuralbayes.features.pretraining import PRESETS, PretrainConfig, pretrain
from paper import baselines
from paper.experiment import TRAINING, Record, Run, Scale
from paper.images import Source, labels_of
from paper.protocols import judge
from paper.timing import TIMED, seconds_per_sample

LAST, SECOND = "relu4", "relu2"

METHODS: dict[str, tuple[type[Any], Callable[..., ImageEncoder]]] = {
    "mim": (PretrainConfig, pretrain),
    "random": (baselines.RandomConfig, baselines.random),
    "rotation": (baselines.RotationConfig, baselines.rotation),
    "infomax": (baselines.InfoMaxConfig, baselines.infomax),
    "supervised": (baselines.SupervisedConfig, baselines.supervised),
}
"""Settings class and training function of each method."""


@dataclass(frozen=True)
class Cell(Run):
    """An encoder and its probes.

    Attributes
    ----------
    learn : Source
        Images that the encoder learns from.
    train, test : Source
        Labelled images for the classifiers.
    method : str
        One of `METHODS`.
    training : mapping
        Settings of the method that differ from its defaults.
    layers : tuple of str
        Hidden states to probe.
    probe_seeds : int
        Number of classifiers for each layer.
    probe_epochs : int, optional
        Maximum number of epochs; by default that of :func:`neuralbayes.probe`.
    """

    learn: Source
    train: Source
    test: Source
    method: str
    training: Mapping[str, Any]
    layers: tuple[str, ...] = (LAST,)
    probe_seeds: int = 1
    probe_epochs: int | None = None

    @property
    def label(self) -> str:
        varied = {name: value for name, value in self.training.items() if name in VARIED}
        words = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}" for name, value in varied.items()
        ]
        return " ".join([self.test.name, self.method, *words, f"seed={self.seed}"])

    @property
    def data_names(self) -> tuple[str, ...]:
        return (self.learn.name, self.train.name, self.test.name)

    def config(self, **changes: Any) -> Any:
        """The settings of the method."""
        kind, _ = METHODS[self.method]
        return replace(kind(**self.training, seed=self.seed), **changes)


VARIED = (
    "alpha",
    "beta",
    "version",
    "scales",
    "microbatch_size",
    "batch_size",
    "marginal",
    "batch_norm",
    "learning_rate",
    "weight_decay",
)
"""Settings that appear in the label of a run."""


@dataclass(frozen=True)
class ImageScale:
    """Settings shared by the experiments on images at one scale.

    Attributes
    ----------
    data : str
    side : int, optional
        Side length in pixels to which images are resized.
    n_train, n_test : int, optional
        Use only the first images of each part; all by default.
    training : mapping
        Settings of MIM. Other methods take the settings in `COMMON` from it.
    probe_seeds : int
    probe_epochs : int, optional
    """

    data: str
    training: Mapping[str, Any]
    side: int | None = None
    n_train: int | None = None
    n_test: int | None = None
    probe_seeds: int = 1
    probe_epochs: int | None = None

    def cell(
        self,
        experiment: str,
        seed: int,
        method: str = "mim",
        *,
        data: str | None = None,
        learn: Source | None = None,
        layers: tuple[str, ...] = (LAST,),
        **changes: Any,
    ) -> Cell:
        """A run at this scale; `changes` override the shared settings of its training."""
        known = {field.name for field in fields(METHODS[method][0])}
        shared = self.training if method == "mim" else {k: v for k, v in self.training.items() if k in COMMON & known}
        train = Source(data or self.data, "train", self.n_train, self.side)
        return Cell(
            experiment,
            seed,
            learn=train if learn is None else learn,
            train=train,
            test=Source(data or self.data, "test", self.n_test, self.side),
            method=method,
            training={**shared, **changes},
            layers=layers,
            probe_seeds=self.probe_seeds,
            probe_epochs=self.probe_epochs,
        )


COMMON = {"encoder", "normalize", "epochs", "schedule"}
"""Settings shared by all methods in a comparison."""


def preset(name: str, **changes: Any) -> dict[str, Any]:
    """The settings of a preset of `neuralbayes.pretrain`, with changes.

    They are spelt out, so that the hash still identifies the run if the preset changes later.
    """
    named = (
        "encoder",
        "normalize",
        "alpha",
        "beta",
        "scales",
        "batch_size",
        "microbatch_size",
        "smooth_fraction",
        "marginal",
        "epochs",
        "learning_rate",
        "schedule",
    )
    return {field: getattr(PRESETS[name], field) for field in named} | changes


IMAGES: dict[Scale, ImageScale] = {
    "smoke": ImageScale(
        "digits",
        preset("laptop", encoder="tiny", epochs=1, batch_size=40, microbatch_size=40),
        side=24,
        n_train=120,
        n_test=160,
        probe_epochs=4,
    ),
    "laptop": ImageScale("cifar10", preset("laptop", encoder="tiny", epochs=8), n_train=10_000),
    "paper": ImageScale("cifar10", preset("paper", batch_size=2000), probe_seeds=3),
}
"""CIFAR-10 as in section 5.1.1 of the paper, at each scale. The weight of R_c is that of the preset: the paper's 4
is too large for a narrow encoder."""


def run_cell(cell: Cell, folder: Path) -> dict[str, Any]:
    """Train the encoder, or resume its training, and probe its layers under both protocols."""
    images = cell.learn.load()
    _, learn = METHODS[cell.method]
    encoder = learn(images, cell.config(), out=folder / TRAINING)
    use = state_use(encoder, images.source)
    parts = [cell.train.load(), cell.test.load()]
    probes = {}
    for layer in cell.layers:
        train, test = ((encoder.features(part.source, layer), labels_of(part)) for part in parts)
        probes[layer] = judge(train, test, seeds=cell.probe_seeds, max_epochs=cell.probe_epochs)
    return {"probes": probes, "states": {name: layer.to_dict() for name, layer in use.items()}}


def cell_cost(cell: Cell) -> float:
    """Expected training time in seconds."""
    if cell.method == "random":
        return 0.0
    config = cell.config()
    seconds = _seconds_per_image(cell.method, config.encoder, cell.learn)
    return float(config.epochs * len(cell.learn) * seconds)


@cache
def _seconds_per_image(method: str, encoder: str, source: Source) -> float:
    kind, learn = METHODS[method]
    images = source.made_up(4 * TIMED)  # supervised training holds some out
    config = kind(encoder=encoder, epochs=1, batch_size=TIMED)
    return seconds_per_sample(lambda clock: learn(images, config, callbacks=[clock]))


def dead_share(record: Record, layer: str = LAST) -> float:
    """Fraction of dead states in a layer: p(z) below a tenth of the uniform 1 / n_states."""
    states = record.values["states"][layer]
    return float(states["dead"] / states["states"])
