"""Figures 1, 5 and 6: filters of a network on MNIST with and without alpha and beta, and with version 1.

The paper shows pictures; this experiment also measures dead filters and memorised images.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.bayes import mutual_information, posterior, prior
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import is_dead
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives import MIM
from neuralbayes.training.rng import seeded_globally
from paper.experiment import TRAINING, Experiment, Record, Results, Run, Scale, by
from paper.images import Source
from paper.network_training import PIECE, NetworkConfig, network_seconds, train_network
from paper.reproduced import draw_walls
from paper.results_page import Claim, Table
from paper.statistics import difference, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "fig-filters"
SHOWN = 15
"""Number of filters to draw."""

Setting = tuple[float, float, Literal[1, 2]]
SETTINGS: dict[Setting, str] = {
    (0.0, 4.0, 2): "alpha = 0, beta = 4",
    (4.0, 0.0, 2): "alpha = 4, beta = 0",
    (4.0, 4.0, 2): "alpha = 4, beta = 4",
    (4.0, 4.0, 1): "alpha = 4, beta = 4, version 1",
}
"""Alpha, beta and version of figures 1 and 5."""

NO_ALPHA, NO_BETA, FULL, FIRST = SETTINGS
NORMS = {False: "no batch norm", True: "batch norm"}
"""The paper does not say whether this network has batch normalisation, so both are run."""


@dataclass(frozen=True)
class FilterRun(Run):
    """A fully connected network on images.

    Attributes
    ----------
    train, test : Source
    alpha, beta : float
    version : {1, 2}
    batch_norm : bool
    hidden : tuple of int
    epochs, batch_size : int
    """

    train: Source
    test: Source
    alpha: float
    beta: float
    version: Literal[1, 2]
    batch_norm: bool
    hidden: tuple[int, ...]
    epochs: int
    batch_size: int

    @property
    def label(self) -> str:
        norm = NORMS[self.batch_norm]
        return (
            f"{self.train.name} {norm} alpha={self.alpha:g} beta={self.beta:g} version={self.version} seed={self.seed}"
        )

    @property
    def data_names(self) -> tuple[str, ...]:
        return (self.train.name,)

    @property
    def config(self) -> NetworkConfig:
        """Settings of the training."""
        size = self.batch_size
        return NetworkConfig(size, self.epochs, seed=self.seed, beta=self.beta, microbatch_size=size)

    def network(self, n_features: int) -> HiddenStates:
        """All hidden states of a new network."""
        names = [f"relu{i}" for i in range(1, len(self.hidden) + 1)]
        network = mlp((n_features, *self.hidden, 1), self.batch_norm)[:-1]  # without its output
        return HiddenStates(network, names, scales=(1,))


@dataclass(frozen=True)
class FilterScale:
    """Size of the experiment at one scale; section 5.1.1 gives the paper's network and batch."""

    data: str
    epochs: int
    seeds: int
    hidden: tuple[int, ...] = (500, 500, 500)
    batch_size: int = 500
    n_train: int | None = None
    n_test: int | None = None
    side: int | None = None


SCALES: dict[Scale, FilterScale] = {
    "smoke": FilterScale("digits", 3, 2, (40, 40), 60, n_train=240, n_test=160, side=22),
    "laptop": FilterScale("mnist", 30, 3, n_train=20_000),
    "paper": FilterScale("mnist", 50, 3),
}


def runs(scale: Scale, seeds: int | None) -> list[FilterRun]:
    c = SCALES[scale]
    return [
        FilterRun(
            NAME,
            seed,
            Source(c.data, "train", c.n_train, c.side),
            Source(c.data, "test", c.n_test, c.side),
            alpha,
            beta,
            version,
            batch_norm,
            c.hidden,
            c.epochs,
            c.batch_size,
        )
        for seed in range(c.seeds if seeds is None else seeds)
        for batch_norm in NORMS
        for alpha, beta, version in SETTINGS
    ]


def run_one(run: FilterRun, folder: Path) -> dict[str, Any]:
    """Train, and measure states and filters."""
    train, test = run.train.load(), run.test.load()
    normalization = Normalization.fit(train.source, per="dimension", progress=False)
    x, x_test = (normalization(part.source.read(np.arange(len(part)))).flatten(1) for part in (train, test))
    with seeded_globally(run.seed):
        states = run.network(x.shape[1])
        train_network(states, MIM(run.alpha, run.version), x, run.config, out=folder / TRAINING)
    p_zx, p_zx_test = (_posteriors(states, rows) for rows in (x, x_test))
    weight = states.network.state_dict()["linear1.weight"]
    dead = {name: is_dead(prior(p)) for name, p in p_zx.items()}
    alive = weight[~dead["relu1"]]
    values: dict[str, Any] = {
        "dead": {name: round(float(d.float().mean()), 5) for name, d in dead.items()},
        "information": {name: round(float(mutual_information(p)), 4) for name, p in p_zx.items()},
        "test_information": {name: round(float(mutual_information(p)), 4) for name, p in p_zx_test.items()},
        "likeness": _likeness(alive, x),
        "test_likeness": _likeness(alive, x_test),
    }
    if run.seed == 0:
        values["filters"] = _packed(weight[:SHOWN], run.train.shape[:2])
    return values


def cost(run: FilterRun) -> float:
    return run.epochs * len(run.train) * _seconds_per_image(replace(run, seed=0))


@cache
def _seconds_per_image(run: FilterRun) -> float:
    n_features = math.prod(run.train.shape)
    return network_seconds(run.network(n_features), MIM(run.alpha, run.version), (n_features,), run.config)


def tables(results: Results) -> list[Table]:
    columns: dict[str, Callable[[Record], float | None]] = {
        "dead in layer 1, %": lambda record: 100 * _dead(record, "relu1"),
        "dead in all layers, %": lambda record: 100 * _mean_dead(record),
        "similarity to a training image": lambda record: record.values["likeness"],
        "to a test image": lambda record: record.values["test_likeness"],
    }
    rows = []
    for (norm, setting), found in _groups(results).items():
        measured = [[value for r in found if (value := column(r)) is not None] for column in columns.values()]
        rows.append((f"{SETTINGS[setting]}, {NORMS[norm]}", *(text(values, 2, 1.0) for values in measured)))
    note = (
        "Dead: states whose p(z) is below a tenth of 1/K. Similarity: the cosine similarity between a filter of the "
        "first layer and its most similar image, averaged over the filters that are not dead. It is 1 if the filter is "
        "the image itself."
    )
    return [Table("MNIST filters", ("setting", *columns), rows, note)]


def draw(results: Results) -> Figure:
    walls = {
        f"{SETTINGS[setting]}, {NORMS[norm]}; dead: {100 * _dead(record, 'relu1'):.0f} % of these filters, "
        f"{100 * _mean_dead(record):.0f} % of the states of all layers": _unpacked(record)
        for (norm, setting), found in _groups(results).items()
        for record in found
        if "filters" in record.values
    }
    return draw_walls(walls, SHOWN)


def claims(results: Results) -> list[Claim]:
    groups = _groups(results)
    figure = "section 5.1.1, figure 1"
    return [
        _claim(groups, "alpha > 0 prevents dead filters", figure, (NO_ALPHA, FULL), DEAD, _mean_dead, 100.0),
        _claim(
            groups,
            "beta > 0 prevents the memorisation of inputs",
            figure,
            (NO_BETA, FULL),
            "similarity to a training image",
            lambda record: record.values["likeness"],
            1.0,
        ),
        _claim(
            groups,
            "Version 1 has more dead filters than version 2",
            "appendix C.2, figure 5",
            (FIRST, FULL),
            DEAD,
            _mean_dead,
            100.0,
        ),
    ]


DEAD = "dead in all layers, %"
Groups = dict[tuple[bool, Setting], list[Record]]


def _claim(
    groups: Groups,
    statement: str,
    where: str,
    compared: tuple[Setting, Setting],
    name: str,
    measure: Callable[[Record], float | None],
    factor: float,
) -> Claim:
    """The claim that a measure is larger in the first of two settings, with and without batch normalisation."""
    gains, numbers = [], []
    for norm, norm_name in NORMS.items():
        more, less = (
            [value for record in groups.get((norm, setting), []) if (value := measure(record)) is not None]
            for setting in compared
        )
        if more and less:
            gains.append(difference(more, less))
            numbers.append(f"{norm_name}: {text(more, 2, factor)} vs {text(less, 2, factor)}")
    return Claim(statement, where, verdict(gains), f"{name}, {'; '.join(numbers)}" if numbers else "", power(gains))


def _groups(results: Results) -> Groups:
    """Results by batch normalisation and setting, in the order of the paper."""
    found = by(
        results, lambda r: (r.settings["batch_norm"], tuple(r.settings[k] for k in ("alpha", "beta", "version")))
    )
    return {key: found[key] for key in product(NORMS, SETTINGS) if key in found}


def _dead(record: Record, layer: str) -> float:
    return float(record.values["dead"][layer])


def _mean_dead(record: Record) -> float:
    return float(np.mean(list(record.values["dead"].values())))


@torch.no_grad()
def _posteriors(states: HiddenStates, x: Tensor) -> dict[str, Tensor]:
    pieces = [states(piece) for piece in torch.split(x, PIECE)]
    return {name: posterior(torch.cat([piece[name] for piece in pieces])) for name in states.names}


def _likeness(filters: Tensor, x: Tensor) -> float | None:
    """The largest cosine of each filter with an image, averaged over the filters; None without filters."""
    if not len(filters):
        return None
    directions = torch.nn.functional.normalize(filters, dim=1)
    best = [(torch.nn.functional.normalize(piece, dim=1) @ directions.T).amax(dim=0) for piece in torch.split(x, PIECE)]
    return round(float(torch.stack(best).amax(dim=0).mean()), 5)


def _packed(filters: Tensor, size: tuple[int, ...]) -> dict[str, Any]:
    """Encode filters as grey images in base64, each scaled to its largest weight."""
    scaled = filters / filters.abs().amax(dim=1, keepdim=True).clamp_min(1e-12)
    pixels: NDArray[np.uint8] = (127.5 + 127.5 * scaled.numpy()).round().astype(np.uint8)
    return {"size": list(size), "pixels": base64.b64encode(pixels.tobytes()).decode()}


def _unpacked(record: Record) -> NDArray[np.uint8]:
    packed = record.values["filters"]
    height, width = packed["size"]
    return np.frombuffer(base64.b64decode(packed["pixels"]), np.uint8).reshape(-1, height, width)


EXPERIMENT = Experiment(
    name=NAME,
    title="Figures 1, 5 and 6: filters on MNIST",
    about=(
        "A fully connected network with three hidden layers of 500 units on MNIST. The paper judges the filters by "
        "eye. Here a state counts as dead if its p(z) is below a tenth of 1/K for K states, and memorisation is the "
        "cosine similarity between a filter and its most similar training image."
    ),
    runs=runs,
    run_one=run_one,
    cost=cost,
    tables=tables,
    draw=draw,
    claims=claims,
)
