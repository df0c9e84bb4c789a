"""Table 2: classification on the last and second layer of all methods, on three data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

from neuralbayes.probes.protocol import Protocol

from paper.cells import IMAGES, LAST, SECOND, Cell, ImageScale, cell_cost, preset, run_cell
from paper.experiment import Experiment, Record, Results, Scale, by
from paper.images import Source, present
from paper.protocols import accuracies, selected
from paper.reproduced import Row, draw_rows
from paper.results_page import Claim, Table
from paper.statistics import Estimate, difference, interval, power, text, verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "table-classification"
LAYERS = {LAST: "last", SECOND: "2nd"}
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "digits": "digits"}
DATA_SETS = ("cifar10", "cifar100", "stl10")

PAPER: dict[tuple[str, str], dict[str, float]] = {
    ("random", LAST): {"cifar10": 67.97, "cifar100": 42.97, "stl10": 53.91},
    ("rotation", LAST): {"cifar10": 33.59, "cifar100": 6.25, "stl10": 25.78},
    ("infomax", LAST): {"cifar10": 80.95, "cifar100": 49.74},
    ("mim", LAST): {"cifar10": 82.81, "cifar100": 55.47, "stl10": 64.84},
    ("rotation", SECOND): {"cifar10": 84.38, "cifar100": 64.06, "stl10": 70.31},
    ("mim", SECOND): {"cifar10": 84.38, "cifar100": 57.03, "stl10": 67.19},
}
"""Table 2 of the paper, in percent. It quotes Deep InfoMax from that method's paper, with another encoder."""

AUTHORS: dict[str, Any] = {"alpha": 4.0, "beta": 2.0}
"""Identifies runs with the settings of the authors' README; the paper's text swaps the two values."""

AUTHORS_TRAINING: dict[str, Any] = AUTHORS | {
    "normalize": "dimension",
    "scales": (1, 2),
    "batch_size": 4000,
    "microbatch_size": 500,
    "smooth_fraction": 1.0,
    "marginal": "minibatch",
    "learning_rate": 1e-3,
    "schedule": "constant",
}
"""Settings of the command in that README, and the defaults of its code."""

ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "random": ("random encoder", "random", {"batch_norm": False}),
    "random-bn": ("random encoder, batch norm", "random", {"batch_norm": True}),
    "rotation": ("rotation prediction", "rotation", {}),
    "infomax": ("Deep InfoMax, on this encoder", "infomax", {}),
    "mim": ("Neural Bayes-MIM", "mim", {}),
    "mim-authors": ("Neural Bayes-MIM, the authors' settings", "mim", AUTHORS),
    "supervised": ("trained with labels", "supervised", {}),
}
"""Key of a row -> its name, method and settings. The random encoder of the authors' code has no batch normalisation;
the paper says that the architecture is identical."""

COMPARED: dict[str, tuple[tuple[str, str], ...]] = {
    "MIM beats the random encoder (with and without batch norm)": (
        ("mim", LAST),
        ("random-bn", LAST),
        ("random", LAST),
    ),
    "MIM beats Deep InfoMax": (("mim", LAST), ("infomax", LAST)),
    "MIM beats rotation prediction on the last layer": (("mim", LAST), ("rotation", LAST)),
    "The second layer of rotation prediction beats its last layer": (("rotation", SECOND), ("rotation", LAST)),
    "Rotation prediction beats MIM on the second layer": (("rotation", SECOND), ("mim", SECOND)),
}
"""The paper's claims about table 2 -> the better (row, layer), then the (row, layer) pairs that it beats."""

Grid = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class ClassificationScale:
    """Runs to compare at one scale.

    Attributes
    ----------
    images : ImageScale
    data : tuple of str
        The first is always run, the others only if they are on this computer.
    seeds : int
    authors : mapping
        Changes to the authors' settings at this scale.
    authors_images : int, optional
        Number of images that the authors' settings learn from; all by default.
    changes : mapping of str to mapping
        Settings of a method at this scale.
    grids : mapping of str to mapping of str to tuple
        Settings to try for a method; the best one is selected.
    """

    images: ImageScale
    data: tuple[str, ...]
    seeds: int
    authors: Mapping[str, Any] = field(default_factory=dict)
    authors_images: int | None = None
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    grids: Mapping[str, Grid] = field(default_factory=dict)


RATES: Grid = {"learning_rate": (1e-3, 1e-4), "weight_decay": (0.0, 1e-5)}

SCALES: dict[Scale, ClassificationScale] = {
    "smoke": ClassificationScale(
        IMAGES["smoke"], ("digits",), 2, {"batch_size": 80, "microbatch_size": 40}, authors_images=120
    ),
    "laptop": ClassificationScale(
        ImageScale("cifar10", preset("laptop", epochs=8), n_train=10_000),
        DATA_SETS,
        3,
        authors={"epochs": 24},  # 300 updates
        # Fewer epochs take about as long as those of MIM: an image has four rotations, or meets discriminators.
        changes={"rotation": {"epochs": 3}, "infomax": {"epochs": 5}},
    ),
    "paper": ClassificationScale(
        ImageScale("cifar10", preset("paper"), probe_seeds=3),
        DATA_SETS,
        3,
        # Section 5.1.2. The paper also tries two learning rates of the classifier; here it has one.
        grids={"mim": RATES, "rotation": {"batch_size": (50, 25), **RATES}},
    ),
}


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """Every row on every available data set."""
    config = SCALES[scale]
    data_sets = (config.data[0], *present(config.data[1:]))
    found = []
    for seed, data, (key, (_, method, setting)) in product(
        range(config.seeds if seeds is None else seeds), data_sets, ROWS.items()
    ):
        authors = key == "mim-authors"
        grid = {} if authors else config.grids.get(method, {})
        fixed = {**AUTHORS_TRAINING, **config.authors} if authors else {**setting, **config.changes.get(method, {})}
        n_learn = config.authors_images if authors else config.images.n_train
        found += [
            config.images.cell(
                NAME,
                seed,
                method,
                data=data,
                learn=_learn(config.images, data, method, n_learn),
                layers=tuple(LAYERS),
                **{**fixed, **dict(zip(grid, values, strict=True))},
            )
            for values in product(*grid.values())
        ]
    return found


def _learn(images: ImageScale, data: str, method: str, n_images: int | None) -> Source | None:
    """Images that an encoder learns from; None for the training images."""
    if data == "cifar100" and method == "mim":  # section 5.1.2: the encoder of CIFAR-10, and a new classifier
        return Source("cifar10", "train", n_images, images.side)
    if data == "stl10" and method != "supervised":
        return Source("stl10", "unlabeled", n_images, images.side)
    return None if n_images == images.n_train else Source(data, "train", n_images, images.side)


def tables(results: Results) -> list[Table]:
    found = []
    for data, group in by(results, _data).items():
        rows = []
        for layer, layer_name in LAYERS.items():
            for key, (name, _, _) in ROWS.items():
                published = PAPER.get((key, layer), {}).get(data)
                cells = [text(_values(group, key, layer, protocol)) for protocol in ("paper", "validation")]
                rows.append((f"{name}, {layer_name} layer", "-" if published is None else f"{published:.2f}", *cells))
        head = ("features", "published", "here, paper's protocol", "here, honest")
        found.append(Table(f"{TITLES[data]}: accuracy in %", head, rows, _gaps(group, data)))
    return found


def _gaps(results: Results, data: str) -> str:
    """A sentence on the gap between MIM and the random encoder, here and in the paper."""
    random = _values(results, "random", LAST, "validation")
    gaps = {
        name: difference(values, random).text(sign=True)
        for key, name in (("mim", "with this library's settings"), ("mim-authors", "with the authors' settings"))
        if (values := _values(results, key, LAST, "validation")) and random
    }
    published = [PAPER[key, LAST].get(data) for key in ("mim", "random")]
    if not gaps:
        return ""
    here = ", ".join(f"{gap} points {name}" for name, gap in gaps.items())
    paper = "" if None in published else f". In the paper: {published[0] - published[1]:+.2f}"  # type: ignore[operator]
    return f"MIM minus the random encoder, last layer: {here}{paper}."


def draw(results: Results) -> Figure:
    data = _data(results[0])  # this one is always run
    group = by(results, _data)[data]
    rows = [
        Row(
            f"{name}, {layer_name} layer",
            interval(_values(group, key, layer, "validation")),
            interval(_values(group, key, layer, "paper")),
            PAPER.get((key, layer), {}).get(data),
        )
        for layer, layer_name in LAYERS.items()
        for key, (name, _, _) in ROWS.items()
    ]
    return draw_rows(rows, f"{TITLES[data]}: accuracy, %")


def claims(results: Results) -> list[Claim]:
    groups = by(results, _data)
    found = []
    for statement, (better, *worse) in COMPARED.items():
        gains: list[Estimate] = []
        numbers = []
        for data, group in groups.items():
            values = [_values(group, *what, "validation") for what in (better, *worse)]
            gains += [difference(values[0], other) for other in values[1:] if values[0] and other]
            published = [_values(group, *what, "paper") for what in (better, *worse)]
            numbers.append(f"{TITLES[data]}: {_against(values)} %, under the paper's protocol {_against(published)} %")
        found.append(
            Claim(
                statement, "section 5.1.2, table 2", verdict(gains), "; ".join(numbers) if gains else "", power(gains)
            )
        )
    return found


def _against(values: Sequence[list[float]]) -> str:
    return " vs ".join(map(text, values))


def missing_data(results: Results) -> list[str]:
    """Titles of the paper's data sets without a result."""
    return [TITLES[data] for data in DATA_SETS if data not in by(results, _data)]


def _data(record: Record) -> str:
    name: str = record.settings["test"]["name"]
    return name


def _values(results: Results, key: str, layer: str, protocol: Protocol) -> list[float]:
    """Accuracies of a row, one per seed, with the best settings if several were tried."""
    _, method, setting = ROWS[key]
    chosen = [
        record
        for record in results
        if record.settings["method"] == method
        and setting.items() <= record.settings["training"].items()
        and (key == "mim-authors") == (AUTHORS.items() <= record.settings["training"].items())
    ]
    return accuracies(selected(chosen, layer, protocol), layer, protocol)


EXPERIMENT = Experiment(
    name=NAME,
    title="Table 2: classification on features",
    about=(
        "All methods train the same encoder from the same initial weights on the same images, without augmentation. A "
        "classifier with 200 hidden units is then trained on each layer. We run Deep InfoMax on this encoder; the "
        "paper quotes numbers from a different one. Training with labels gives an upper bound. The authors' settings "
        "(learning rate 0.001, batches of 4,000 in mini-batches of 500, alpha 4, beta 2, states at two scales) use all "
        "training images."
    ),
    runs=runs,
    run_one=run_cell,
    cost=cell_cost,
    tables=tables,
    draw=draw,
    claims=claims,
)
