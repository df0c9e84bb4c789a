"""Table 2: classification on the last and second layer of all methods, on three data sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from paper.accuracy import accuracies, selected
from paper.cells import IMAGES, LAST, SECOND, Cell, ImageScale, preset
from paper.cells import settings as settings
from paper.claims import Claim, every, listed
from paper.experiment import Picture
from paper.images import Source, present
from paper.pictures import Row, draw_rows
from paper.protocol import Protocol
from paper.published import TABLE_2
from paper.runs import Record, Results, Scale, by
from paper.statistics import Estimate, difference, text
from paper.tables import Table

NAME = "table-classification"
TITLE = "Table 2: classification on features"
AT_FULL_SCALE = "four days on two cores"
ABOUT = (
    "One encoder, from the same initial weights on the same images, and a classifier with 200 hidden units on each "
    "layer. MIM has the settings of this library, chosen on held-out training images; the others have their defaults. "
    "Runs with 3 and 5 epochs took about as long as the 8 of MIM."
)
LAYERS = {LAST: "last", SECOND: "2nd"}
TITLES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "stl10": "STL-10", "digits": "digits"}
DATA_SETS = ("cifar10", "cifar100", "stl10")

AUTHORS: dict[str, Any] = {
    "alpha": 4.0,
    "beta": 2.0,
    "normalize": "dimension",
    "scales": (1, 2),
    "batch_size": 4000,
    "microbatch_size": 500,
    "smooth_fraction": 1.0,
    "marginal": "minibatch",
    "learning_rate": 1e-3,
    "schedule": "constant",
}
"""Settings of the command in the authors' README, and the defaults of their code."""

ROWS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "random": ("random encoder", "random", {"batch_norm": False}),
    "random-bn": ("random encoder (batch norm)", "random", {"batch_norm": True}),
    "rotation": ("rotation prediction", "rotation", {}),
    "infomax": ("Deep InfoMax (on this encoder)", "infomax", {}),
    "mim": ("Neural Bayes-MIM", "mim", {}),
    "mim-authors": ("Neural Bayes-MIM (the authors' settings)", "mim", AUTHORS),
    "supervised": ("trained with labels", "supervised", {}),
}
"""Key of a row -> its name, method and settings; the last is in the records, but no longer run. The random encoder of
the authors' code has no batch normalisation; the paper says that the architecture is identical."""

Grid = Mapping[str, tuple[Any, ...]]

RATES: Grid = {"learning_rate": (1e-3, 1e-4), "weight_decay": (0.0, 1e-5)}

SCALES: dict[Scale, tuple[ImageScale, dict[str, Any], int | None]] = {
    "smoke": (IMAGES["smoke"], {"batch_size": 80, "microbatch_size": 40}, 120),
    "laptop": (ImageScale("cifar10", preset("laptop", epochs=8), n_train=10_000), {"epochs": 24}, None),  # 300 updates
    "paper": (ImageScale("cifar10", preset("paper"), probe_seeds=3), {}, None),
}
"""Images, changes to the authors' settings, and the images that these learn from (None: all)."""

SEARCHED: dict[str, Grid] = {"mim": RATES, "rotation": {"batch_size": (50, 25), **RATES}}
"""Settings that section 5.1.2 tries at scale "paper"; the best one is selected."""


def runs(scale: Scale, seeds: int | None) -> list[Cell]:
    """Every row on every data set that is on this computer, all methods with the same epochs."""
    images, changes, n_authors = SCALES[scale]
    default = 2 if scale == "smoke" else 3
    data_sets = (images.data, *(() if scale == "smoke" else present(DATA_SETS[1:])))
    found = []
    for seed, data, key in product(range(default if seeds is None else seeds), data_sets, list(ROWS)[:-1]):
        _, method, setting = ROWS[key]
        authors = key == "mim-authors"
        grid = SEARCHED.get(method, {}) if scale == "paper" and not authors else {}
        fixed = setting | changes if authors else setting
        learn = _learn(images, data, method, n_authors if authors else images.n_train)
        found += [
            images.cell(NAME, seed, method, data=data, learn=learn, layers=tuple(LAYERS), **fixed, **tried)
            for tried in (dict(zip(grid, values, strict=True)) for values in product(*grid.values()))
        ]
    return found


def _learn(images: ImageScale, data: str, method: str, n_images: int | None) -> Source | None:
    """Images that an encoder learns from; None for the training images."""
    if data == "cifar100" and method == "mim":  # section 5.1.2: the encoder of CIFAR-10, and a new classifier
        return Source("cifar10", "train", n_images, images.side)
    if data == "stl10":
        return Source("stl10", "unlabeled", n_images, images.side)
    return None if n_images == images.n_train else Source(data, "train", n_images, images.side)


def tables(results: Results) -> list[Table]:
    columns = ("published", "paper's protocol", "honest")
    head = ("features", *(f"{layer} layer: {column}" for layer, column in product(LAYERS.values(), columns)))
    found = []
    for data, group in by(results, _data).items():
        rows = []
        for key, (name, _, _) in ROWS.items():
            for epochs in _epochs(group, key):
                cells: list[str] = []
                for row in (_row(group, key, layer, epochs) for layer in LAYERS):
                    cells += [_published(row.published), text(row.paper), text(row.honest)]
                rows.append((f"{name}{_after(epochs)}", *cells))
        found.append(Table(f"{TITLES[data]}: accuracy in %", head, rows))
    return found


def pictures(results: Results) -> list[Picture]:
    if not results:
        return []
    data = _data(results[0])  # this one is always run
    group = by(results, _data)[data]
    rows = [_row(group, key, layer, epochs) for layer, key in product(LAYERS, ROWS) for epochs in _epochs(group, key)]
    return [Picture(NAME, TITLE, partial(draw_rows, rows, f"{TITLES[data]}: accuracy, %"))]


def _row(group: Results, key: str, layer: str, epochs: int | None) -> Row:
    """A method, layer and number of epochs on one data set."""
    return Row(
        f"{ROWS[key][0]}, {LAYERS[layer]} layer{_after(epochs)}",
        _values(group, key, layer, "validation", epochs),
        _values(group, key, layer, "paper", epochs),
        TABLE_2.get((key, layer), {}).get(_data(group[0])),
    )


def _after(epochs: int | None) -> str:
    return "" if epochs is None else f", {epochs} epochs"


def _published(accuracy: float | None) -> str:
    return "-" if accuracy is None else f"{accuracy:.2f}"


def claims(results: Results) -> list[Claim]:
    best = "Neural Bayes-MIM outperforms baseline methods in general"
    second = "we also train classifiers on the 2nd layer and report their performance which is significantly better"
    lower = "when using 2nd layer features, rotation prediction (RP) performs better"
    return [
        _claim(results, f"{best} [random encoder]", ("mim", LAST), [("random-bn", LAST), ("random", LAST)]),
        _claim(results, f"{best} [Deep InfoMax]", ("mim", LAST), [("infomax", LAST)]),
        _claim(results, f"{best} [rotation prediction]", ("mim", LAST), [("rotation", LAST)]),
        _claim(results, f"{second} [rotation prediction]", ("rotation", SECOND), [("rotation", LAST)]),
        _claim(results, lower, ("rotation", SECOND), [("mim", SECOND)]),
    ]


def _claim(results: Results, words: str, better: tuple[str, str], worse: Sequence[tuple[str, str]]) -> Claim:
    """The claim that a row and layer beats others, after equally many epochs; with other epochs it is only quoted."""
    equal: dict[str, Estimate] = {}
    unequal: dict[str, Estimate] = {}
    data_sets = by(results, _data)
    for data, group in data_sets.items():
        for other in worse:
            for mine, theirs in product(_epochs(group, better[0]), _epochs(group, other[0])):
                trained = dict.fromkeys(epochs for epochs in (mine, theirs) if epochs is not None)
                if better[0] == other[0] and len(trained) > 1:
                    continue
                a, b = _values(group, *better, "validation", mine), _values(group, *other, "validation", theirs)
                name = f"{_minus(better, other)}, {' and '.join(map(str, trained))} epochs"
                if len(data_sets) > 1:
                    name = f"{TITLES[data]}, {name}"
                (unequal if len(trained) > 1 else equal)[name] = difference(a, b)
    numbers = "; ".join(filter(None, (listed(equal), listed(unequal, "at unequal epochs, points"))))
    rule = "the difference is above 0 on every data set, after equally many epochs"
    verdict = every(equal) if equal or not unequal else "undecided"
    return Claim(words, "section 5.1.2, table 2", rule, verdict, numbers)


def _minus(better: tuple[str, str], worse: tuple[str, str]) -> str:
    """The name of a difference of two rows or layers."""
    (a, above), (b, below) = better, worse
    if a == b:
        return f"{LAYERS[above]} minus {LAYERS[below]} layer"
    return f"minus {ROWS[b][0]}"


def not_run(results: Results) -> list[str]:
    learnt = [record.settings["training"] for record in results if record.settings["method"] == "mim"]
    absent = [TITLES[data] for data in DATA_SETS if data not in by(results, _data)]
    found = [f"{' and '.join(absent)} in table 2"] if absent else []
    if not any((t["alpha"], t["beta"], t["batch_size"]) == (2.0, 4.0, 4000) for t in learnt):
        found.append("table 2 at the paper's width, with its settings (alpha 2, beta 4, BS 4000, 100 epochs)")
    if not any(_of_authors(record) for record in results):
        found.append("table 2 with the authors' settings (alpha 4, beta 2, BS 4000)")
    searched = {record.settings["training"].get("weight_decay") for record in results} - {None}
    if len(searched) < 2:
        found.append("table 2's searches over rates, decay and batches")
    return [*found, "table 2's random encoder with the best of 16 classifiers"]


def _data(record: Record) -> str:
    name: str = record.settings["test"]["name"]
    return name


def _of_authors(record: Record) -> bool:
    training = record.settings["training"]
    return all(training.get(name) == AUTHORS[name] for name in ("alpha", "beta"))


def _of_row(results: Results, key: str) -> list[Record]:
    _, method, setting = ROWS[key]
    mine = [record for record in results if record.settings["method"] == method]
    if method == "mim":
        return [record for record in mine if _of_authors(record) == (key == "mim-authors")]
    return [record for record in mine if setting.items() <= record.settings["training"].items()]


def _epochs(results: Results, key: str) -> list[int | None]:
    """The numbers of epochs that a row was trained for; None for a random encoder."""
    return sorted({record.settings["training"].get("epochs") for record in _of_row(results, key)}, key=lambda n: n or 0)


def _values(results: Results, key: str, layer: str, protocol: Protocol, epochs: int | None) -> list[float]:
    """Accuracies of a row, one per seed, with the best settings if several were tried."""
    chosen = [record for record in _of_row(results, key) if record.settings["training"].get("epochs") == epochs]
    return accuracies(selected(chosen, layer, protocol), layer, protocol)
