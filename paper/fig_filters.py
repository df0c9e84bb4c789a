"""Figures 1, 5 and 6: filters of a network on MNIST with and without alpha and beta, and with version 1.

The paper shows pictures; here dead filters and memorised images are measured too.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from neuralbayes.bayes import mutual_information, posterior, prior
from neuralbayes.data.normalize import Normalization
from neuralbayes.distributed import seeded_globally
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives import MIM, Smoothness
from neuralbayes.training.fit import fit
from paper.claims import Claim, every, listed
from paper.experiment import Picture
from paper.images import Source
from paper.pictures import draw_walls
from paper.runs import TRAINING, Record, Results, Run, Scale, by
from paper.statistics import Estimate, difference, estimate, text
from paper.tables import Table

NAME = "fig-filters"
TITLE = "Figures 1, 5 and 6: filters on MNIST"
AT_FULL_SCALE = "ten minutes on one core"
ABOUT = (
    "Three hidden layers of 500 units on MNIST. The paper judges by eye, and does not say whether it uses batch "
    "normalisation."
)
SHOWN = 15
"""Number of filters of the picture."""

PIECE = 2000
"""Rows per forward pass through a trained network."""

DEAD = 0.1
"""A state is dead if its p(z) is below this share of the uniform 1 / K."""

MEMORISED = 0.05
"""Least fall of the cosine between filters and images that counts: a hundredth is significant, but tells nothing."""

Setting = tuple[float, float, Literal[1, 2]]
SETTINGS: dict[Setting, str] = {
    (0.0, 4.0, 2): "alpha = 0, beta = 4",
    (4.0, 0.0, 2): "alpha = 4, beta = 0",
    (4.0, 4.0, 2): "alpha = 4, beta = 4",
    (4.0, 4.0, 1): "alpha = 4, beta = 4, version 1",
}
"""Alpha, beta and version of figures 1 and 5."""

NO_ALPHA, NO_BETA, FULL, FIRST = SETTINGS
Groups = dict[tuple[bool, Setting], list[Record]]
NORMS = {False: "no batch norm", True: "batch norm"}

PAPER: dict[str, Any] = {"hidden": (500, 500, 500), "epochs": 50, "batch_size": 500}
"""The network and its training in section 5.1.1."""


@dataclass(frozen=True)
class FilterRun(Run):
    """A fully connected network on images."""

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
        setting = f"alpha={self.alpha:g} beta={self.beta:g} version={self.version} seed={self.seed}"
        return f"{self.train.name} {NORMS[self.batch_norm]} {setting}"

    def measure(self, folder: Path) -> dict[str, Any]:
        """Train, and measure states and filters."""
        train, test = self.train.load(), self.test.load()
        normalization = Normalization.fit(train.source, per="dimension", progress=False)
        x, x_test = (normalization(part.source.read(np.arange(len(part)))).flatten(1) for part in (train, test))
        with seeded_globally(self.seed):
            network = mlp((x.shape[1], *self.hidden, 1), self.batch_norm)[:-1]  # without its output
            states = HiddenStates(network, [f"relu{i}" for i in range(1, len(self.hidden) + 1)], scales=(1,))
            fit(
                MIM(self.alpha, self.version),
                states,
                x,
                max_epochs=self.epochs,
                batch_size=self.batch_size,
                smoothness=Smoothness(self.beta, of="logits") if self.beta > 0 else None,
                out=folder / TRAINING,
                log_every=20,
                seed=self.seed,
            )
        p_zx, p_zx_test = (_posteriors(states, rows) for rows in (x, x_test))
        weight = states.network.state_dict()["linear1.weight"]
        dead = {name: prior(p) < DEAD / p.shape[1] for name, p in p_zx.items()}
        alive = weight[~dead["relu1"]]
        values: dict[str, Any] = {
            "dead": {name: round(float(d.float().mean()), 5) for name, d in dead.items()},
            "information": {name: round(float(mutual_information(p)), 4) for name, p in p_zx.items()},
            "test_information": {name: round(float(mutual_information(p)), 4) for name, p in p_zx_test.items()},
            "likeness": _likeness(alive, x),
            "test_likeness": _likeness(alive, x_test),
        }
        if self.seed == 0:
            values["filters"] = _packed(weight[:SHOWN], self.train.shape[:2])
        return values


SMALL = {"hidden": (40, 40), "epochs": 3, "batch_size": 60}
SCALES: dict[Scale, tuple[Source, Source, int, dict[str, Any]]] = {
    "smoke": (Source("digits", "train", 240, 22), Source("digits", "test", 160, 22), 2, SMALL),
    "laptop": (Source("mnist", "train", 20_000), Source("mnist", "test"), 3, PAPER | {"epochs": 30}),
    "paper": (Source("mnist"), Source("mnist", "test"), 3, PAPER),
}
"""Images, seeds, and the network and its training."""


def runs(scale: Scale, seeds: int | None) -> list[FilterRun]:
    """Every setting with and without batch normalisation."""
    train, test, default, size = SCALES[scale]
    return [
        FilterRun(NAME, seed, train, test, alpha, beta, version, batch_norm, **size)
        for seed in range(default if seeds is None else seeds)
        for batch_norm in NORMS
        for alpha, beta, version in SETTINGS
    ]


def tables(results: Results) -> list[Table]:
    columns: dict[str, Callable[[Record], float | None]] = {
        "dead in all layers, %": lambda record: 100 * _mean_dead(record),
        "similarity to a training image": lambda record: record.values["likeness"],
        "to a test image": lambda record: record.values["test_likeness"],
    }
    rows = [
        (
            f"{SETTINGS[setting]}, {NORMS[norm]}",
            *(text([v for r in found if (v := column(r)) is not None], 2, 1.0) for column in columns.values()),
        )
        for (norm, setting), found in _groups(results).items()
    ]
    note = (
        "Dead: p(z) below a tenth of 1/K. Similarity: the cosine between a filter and its most similar image, averaged "
        "over filters that are not dead."
    )
    return [Table("MNIST filters", ("setting", *columns), rows, note)]


def pictures(results: Results) -> list[Picture]:
    walls = {
        f"{SETTINGS[setting]}, {NORMS[norm]}; dead: {100 * _dead(record):.0f} % of the filters, "
        f"{100 * _mean_dead(record):.0f} % of the states of all layers": _unpacked(record)
        for (norm, setting), found in _groups(results).items()
        for record in found
        if "filters" in record.values
    }
    return [Picture(NAME, f"{TITLE}: the first {SHOWN}", partial(draw_walls, walls, SHOWN))] if walls else []


def claims(results: Results) -> list[Claim]:
    groups = _groups(results)
    alive = _gains(groups, NO_ALPHA, FULL, _mean_dead)
    memorised = _gains(groups, NO_BETA, FULL, lambda record: record.values["likeness"])
    return [
        _majority(
            groups,
            NO_ALPHA,
            "A majority of filters are dead when regularization coefficient α=0",
            "caption of figure 1",
        ),
        Claim(
            "the uniform prior regularization (α>0) prevents dead filters",
            "section 5.1.1, figure 1",
            "more dead states in all layers with α = 0 than with α = 4, with and without batch norm",
            every(alive),
            listed(alive),
        ),
        Claim(
            "the smoothness regularization (β>0) prevents input memorization",
            "section 5.1.1, figure 1",
            f"a filter's mean cosine with its most similar training image falls by at least {MEMORISED} from β = 0 to "
            "β = 4, with and without batch norm",
            every(memorised, least=MEMORISED, short="does not hold here"),
            listed(memorised, "fall", 3, 1.0),
        ),
        _majority(
            groups, FIRST, "majority of the filters learned by the v1 objective are dead", "section 5.1.1, figure 5"
        ),
    ]


def _majority(groups: Groups, setting: Setting, words: str, where: str) -> Claim:
    """The claim that most filters are dead in a setting."""
    dead = {
        name: [_dead(r) for r in groups[norm, setting]] for norm, name in NORMS.items() if (norm, setting) in groups
    }
    estimates = {name: estimate(values) for name, values in dead.items()}
    rule = "more than half are dead, with and without batch norm"
    verdict = every(estimates, least=0.5, short="does not hold here")
    numbers = "; ".join(f"{name}: {one.text(2)} % dead (n = {one.n})" for name, one in estimates.items())
    return Claim(words, where, rule, verdict, numbers)


def settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Readable settings of a run."""
    return {
        "images": f"{settings['train']['name']}, {len(Source(**settings['train'])):,}",
        "hidden units": "-".join(map(str, settings["hidden"])),
        "alpha and beta": f"{settings['alpha']:g} and {settings['beta']:g}",
        "batch normalisation": settings["batch_norm"],
        "batch": settings["batch_size"],
        "epochs": settings["epochs"],
    }


def not_run(results: Results) -> list[str]:
    full = {record.settings["epochs"] for record in results} >= {50}
    return [] if full else ["figures 1, 5 and 6 with 60,000 images and 50 epochs"]


def _gains(
    groups: Groups, more: Setting, less: Setting, measure: Callable[[Record], float | None]
) -> dict[str, Estimate]:
    """How much larger a measure is in the first of two settings, with and without batch normalisation."""
    gains = {}
    for norm, name in NORMS.items():
        a, b = ([v for r in groups.get((norm, s), []) if (v := measure(r)) is not None] for s in (more, less))
        if a and b:
            gains[name] = difference(a, b)
    return gains


def _groups(results: Results) -> Groups:
    """Results by batch normalisation and setting, in the order of the paper."""
    found = by(
        results, lambda r: (r.settings["batch_norm"], tuple(r.settings[k] for k in ("alpha", "beta", "version")))
    )
    return {key: found[key] for key in product(NORMS, SETTINGS) if key in found}


def _dead(record: Record) -> float:
    return float(record.values["dead"]["relu1"])


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
