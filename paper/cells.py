"""The runs of most experiments: train an encoder on images by some method, then probe its layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from neuralbayes.features.encoder import ImageEncoder, state_use
from neuralbayes.features.pretraining import PRESETS, PretrainConfig, pretrain
from paper import baselines
from paper.accuracy import probe
from paper.images import Source, labels_of
from paper.runs import TRAINING, Record, Run, Scale

LAST, SECOND = "relu4", "relu2"

LABELLED = ("alpha", "beta", "version", "scales", "microbatch_size", "batch_size", "marginal", "batch_norm")
"""Settings that appear in the label of a run, with the three that a search varies."""
SEARCHED = ("epochs", "learning_rate", "weight_decay")

METHODS: dict[str, tuple[type[Any], Callable[..., ImageEncoder]]] = {
    "mim": (PretrainConfig, pretrain),
    "random": (baselines.RandomConfig, baselines.random),
    "rotation": (baselines.RotationConfig, baselines.rotation),
    "infomax": (baselines.InfoMaxConfig, baselines.infomax),
}
"""Settings class and training function of each method."""


@dataclass(frozen=True)
class Cell(Run):
    """An encoder and its probes."""

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
        words = [
            f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in self.training.items()
            if name in LABELLED + SEARCHED
        ]
        return " ".join([self.test.name, self.method, *words, f"seed={self.seed}"])

    def measure(self, folder: Path) -> dict[str, Any]:
        """Train the encoder, and probe its layers under both protocols."""
        images = self.learn.load()
        config, learn = METHODS[self.method]
        encoder = learn(images, config(**self.training, seed=self.seed), out=folder / TRAINING)
        use = state_use(encoder, images.source)
        parts = [self.train.load(), self.test.load()]
        probes = {}
        for layer in self.layers:
            train, test = ((encoder.features(part.source, layer), labels_of(part)) for part in parts)
            probes[layer] = probe(train, test, seeds=self.probe_seeds, max_epochs=self.probe_epochs)
        return {"probes": probes, "states": {name: layer.to_dict() for name, layer in use.items()}}


@dataclass(frozen=True)
class ImageScale:
    """Settings shared by the experiments on images at one scale."""

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
        common = COMMON[:2] if method == "random" else COMMON
        shared = self.training if method == "mim" else {k: v for k, v in self.training.items() if k in common}
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


COMMON = ("encoder", "normalize", "epochs", "schedule")
"""Settings shared by all methods in a comparison; a random encoder has the first two."""


def preset(name: str, **changes: Any) -> dict[str, Any]:
    """The settings of a preset of `neuralbayes.pretrain`, with changes.

    They are spelt out, so that the hash still identifies the run if the preset changes later.
    """
    first = "encoder normalize alpha beta scales batch_size microbatch_size"
    names = f"{first} smooth_fraction marginal epochs learning_rate schedule"
    return {field: getattr(PRESETS[name], field) for field in names.split()} | changes


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

WIDTHS = {"paper": "200-500-700-1000", "small": "a quarter of the channels", "tiny": "a twelfth of the channels"}
WORDS = {"dimension": "each dimension", "whiten": "whitened", "constant": "none"}


def settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Readable settings of an encoder that was trained, by the names of `paper.published.SETTINGS`."""
    training = settings["training"]
    if settings["method"] == "random":
        return {}
    method = settings["method"]
    common = {
        "encoder": WIDTHS[training["encoder"]],
        "images": f"{settings['learn']['name']}, {len(Source(**settings['learn'])):,}",
        "normalisation": WORDS.get(training["normalize"], training["normalize"]),
        f"epochs of {method}": training["epochs"],
        "schedule of the learning rate": WORDS.get(training["schedule"], training["schedule"]),
        "seeds of the classifier": settings["probe_seeds"],
    }
    if method != "mim":
        return common
    names = {
        "alpha": "alpha",
        "beta": "beta",
        "scales": "scales",
        "mini-batch": "microbatch_size",
        "batch": "batch_size",
        "p(z)": "marginal",
        "share of a mini-batch in R_c": "smooth_fraction",
        "learning rate": "learning_rate",
        "weight decay": "weight_decay",
    }
    ours = {name: training[key] for name, key in names.items() if key in training}
    return common | ours | {"version": training.get("version", 2)}


def dead_share(record: Record, layer: str = LAST) -> float:
    """Fraction of dead states in a layer: p(z) below a tenth of the uniform 1 / n_states."""
    states = record.values["states"][layer]
    return float(states["dead"] / states["states"])
