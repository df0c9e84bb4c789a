"""Manifolds that are harder to separate than the paper's: its network, trained in two ways, and `ManifoldLabeler`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor, nn

from neuralbayes.bayes import LOG_2
from neuralbayes.data.toys import PAPER as SETS
from neuralbayes.data.toys import rotate_into
from neuralbayes.estimators import ManifoldLabeler
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import DML
from neuralbayes.training.rng import seeded_globally
from paper.experiment import Record, Results, Run, Scale, by
from paper.network_training import NetworkConfig, network_seconds, outputs, train_network
from paper.results_page import Table
from paper.statistics import text

NAME = "fig-manifolds"
LABELER_SECONDS = 1.0  # of ManifoldLabeler on 1,200 points, negligible compared with the networks

METHODS = {
    "batches": "MLP, in batches",
    "whole": "MLP, all points at once",
    "labeler": "ManifoldLabeler",
}
"""The paper's network with batches of 400 of the 1,200 points, with the gradient of all points, and our estimator."""


SIGHTED, BLIND = CHOICES = ("labels", "objective")
"""How the beta of a network is selected."""


@dataclass(frozen=True)
class ManifoldRun(Run):
    """Points of the plane, rotated into a high dimension and labelled.

    Attributes
    ----------
    points : str
        Name of the set.
    method : {"batches", "whole", "labeler"}
    beta : float or None
        Weight of R_c; None for `ManifoldLabeler`, which has its own.
    standardize : bool
        Whether to scale each dimension to unit variance, as the paper says of all its data, or to keep distances as
        they are.
    n_points, dimensions : int
    hidden : tuple of int
    batch_size : int
        For "batches".
    updates : int
    grid : int
        Side length of the decision map in points.
    """

    points: str
    method: str
    beta: float | None
    standardize: bool
    n_points: int
    dimensions: int
    hidden: tuple[int, ...]
    batch_size: int
    updates: int
    grid: int

    @property
    def label(self) -> str:
        setting = "" if self.beta is None else f" beta={self.beta:g} standardize={self.standardize}"
        return f"{self.points} {self.method}{setting} seed={self.seed}"

    @property
    def n_states(self) -> int:
        """The number of manifolds, which is given."""
        return SETS[self.points][1]

    @property
    def config(self) -> NetworkConfig:
        """Training of the network, as in section 5.2 of the paper."""
        size = self.batch_size if self.method == "batches" else self.n_points
        epochs = math.ceil(self.updates / math.ceil(self.n_points / size))
        return NetworkConfig(size, epochs, seed=self.seed, beta=self.beta or 0.0, microbatch_size=size)

    def network(self) -> nn.Sequential:
        """Create the paper's network."""
        return mlp((self.dimensions, *self.hidden, self.n_states), batch_norm=True)

    def plane(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Points (n, 2) before the rotation, and their manifolds."""
        return SETS[self.points][0](self.n_points, random_state=self.seed)


@dataclass(frozen=True)
class ManifoldScale:
    """Size of the experiment at one scale."""

    betas: tuple[float, ...]
    updates: int
    seeds: int
    n_points: int = 1200
    dimensions: int = 512
    hidden: tuple[int, ...] = (400, 400, 400, 400)
    batch_size: int = 400
    grid: int = 48


SCALES: dict[Scale, ManifoldScale] = {
    "smoke": ManifoldScale((1.0,), 20, 2, 300, 16, (50, 50), 100, 12),
    "laptop": ManifoldScale((0.5, 2.0, 6.0), 400, 3),
    "paper": ManifoldScale((0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 5000, 5),
}
"""Beta "was chosen from [0.5, 6]" (section 5.2)."""


def runs(scale: Scale, seeds: int | None) -> list[ManifoldRun]:
    """Every set with every method; networks with several weights of R_c."""
    c = SCALES[scale]
    common = (c.n_points, c.dimensions, c.hidden, c.batch_size, c.updates, c.grid)
    return [
        ManifoldRun(NAME, seed, points, method, beta, standardize, *common)
        for seed in range(c.seeds if seeds is None else seeds)
        for points in SETS
        for method in METHODS
        for beta, standardize in ([(None, False)] if method == "labeler" else product(c.betas, (False, True)))
    ]


Predict = Callable[[NDArray[np.float64]], NDArray[np.int64]]


def label_points(run: ManifoldRun) -> tuple[Predict, float]:
    """Fit, and return a function from points of the plane to states and the DML loss on the points of the run."""
    plane, _ = run.plane()
    fit = _labeler if run.method == "labeler" else _network
    return fit(run, rotate_into(plane, run.dimensions, run.seed))


def _labeler(run: ManifoldRun, X: NDArray[np.float64]) -> tuple[Predict, float]:
    """The function from points of the plane to states, and the DML loss on `X`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fits without a certificate count too
        labeler = ManifoldLabeler(run.n_states, random_state=run.seed).fit(X)
    return lambda plane: labeler.predict(rotate_into(plane, run.dimensions, run.seed)), LOG_2 - labeler.score(X)


def _network(run: ManifoldRun, X: NDArray[np.float64]) -> tuple[Predict, float]:
    center, scale = X.mean(axis=0), X.std(axis=0) if run.standardize else 1.0
    x = torch.from_numpy((X - center) / scale).float()
    with seeded_globally(run.seed):
        network = train_network(run.network(), DML(), x, run.config)

    def logits(plane: NDArray[np.float64]) -> Tensor:
        rotated = rotate_into(plane, run.dimensions, run.seed)
        return outputs(network, torch.from_numpy((rotated - center) / scale).float())

    def predict(plane: NDArray[np.float64]) -> NDArray[np.int64]:
        return logits(plane).argmax(dim=1).numpy()

    return predict, float(DML()(outputs(network, x)))


def cost(run: ManifoldRun) -> float:
    """Expected seconds."""
    if run.method == "labeler":
        return LABELER_SECONDS
    # The time of a step depends neither on the set nor on the weight of R_c.
    seconds = _seconds_per_point(replace(run, seed=0, points="moons", beta=1.0))
    return run.config.epochs * run.n_points * seconds


@cache
def _seconds_per_point(run: ManifoldRun) -> float:
    return network_seconds(run.network(), DML(), (run.dimensions,), run.config)


def tables(results: Results) -> list[Table]:
    """Percentage of correctly labelled points of every method."""
    networks = [(method, choice) for method in ("batches", "whole") for choice in CHOICES]
    columns = [*networks, ("labeler", BLIND)]
    rows = [
        (points, *(text(right_shares(group, *column)) for column in columns))
        for points, group in by(results, points_of).items()
    ]
    head = ("set", *(f"{METHODS[m]}, beta selected by {choice}" for m, choice in networks), METHODS["labeler"])
    note = (
        "These sets differ from the paper's: 1,200 points with five times its noise, around thicker circles and moons. "
        "For each seed, one value of beta is selected, with and without scaling each coordinate to unit variance: "
        "either by the labels, as in the paper, or by the lowest DML loss, without labels."
    )
    return [Table("Harder sets: correctly labelled points, %", head, rows, note)] if rows else []


def points_of(record: Record) -> str:
    """Name of the set of a run."""
    name: str = record.settings["points"]
    return name


def right_shares(group: Results, method: str, choice: str) -> list[float]:
    """Fraction of correctly labelled points per seed, with the selected beta."""
    chosen = [record for record in group if record.settings["method"] == method]

    def merit(record: Record) -> float:
        return float(record.values["right"] if choice == SIGHTED else -record.values["objective"])

    best = [max(found, key=merit) for found in by(chosen, lambda record: record.settings["seed"]).values()]
    return [float(record.values["right"]) for record in best]
