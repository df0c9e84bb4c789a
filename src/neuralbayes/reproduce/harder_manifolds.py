"""Manifolds that are harder to tell apart than the paper's: its network in two ways, and `ManifoldLabeler`."""

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
from neuralbayes.report.results_page import Table
from neuralbayes.reproduce.experiment import Record, Results, Run, Scale, by
from neuralbayes.reproduce.network_training import NetworkConfig, network_seconds, outputs, train_network
from neuralbayes.reproduce.statistics import text
from neuralbayes.training.rng import seeded_globally

NAME = "fig-manifolds"
LABELER_SECONDS = 1.0  # of ManifoldLabeler on 1,200 points; next to the networks it does not count

METHODS = {
    "batches": "MLP, in batches",
    "whole": "MLP, all points at once",
    "labeler": "ManifoldLabeler",
}
"""The paper's network with batches of 400 of 1,200 points, the same with the gradient of all, and our estimator."""


SIGHTED, BLIND = CHOICES = ("labels", "objective")
"""By what the beta of a network is chosen."""


@dataclass(frozen=True)
class ManifoldRun(Run):
    """Points of the plane, taken into a high dimension and labelled.

    Attributes
    ----------
    points : str
        The set.
    method : {"batches", "whole", "labeler"}
    beta : float or None
        Weight of R_c; None for `ManifoldLabeler`, which has its own.
    standardize : bool
        Whether each of the dimensions gets unit variance, as the paper says of all its data, or the points stay as far
        from each other as they are.
    n_points, dimensions : int
    hidden : tuple of int
    batch_size : int
        For "batches".
    updates : int
    grid : int
        Points of the decision map along a side.
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
        """How many manifolds there are, which is told."""
        return SETS[self.points][1]

    @property
    def config(self) -> NetworkConfig:
        """How the network is trained: section 5.2 of the paper."""
        size = self.batch_size if self.method == "batches" else self.n_points
        epochs = math.ceil(self.updates / math.ceil(self.n_points / size))
        return NetworkConfig(size, epochs, seed=self.seed, beta=self.beta or 0.0, microbatch_size=size)

    def network(self) -> nn.Sequential:
        """A new network of the paper's kind."""
        return mlp((self.dimensions, *self.hidden, self.n_states), batch_norm=True)

    def plane(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Points (n, 2) before they are rotated, and the manifold of each."""
        return SETS[self.points][0](self.n_points, random_state=self.seed)


@dataclass(frozen=True)
class ManifoldScale:
    """How much, at a scale."""

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
    """Every set by every method, networks with several weights of R_c."""
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
    """Fit; return the function from points of the plane to states, and the DML loss on the points of the run."""
    plane, _ = run.plane()
    fit = _labeler if run.method == "labeler" else _network
    return fit(run, rotate_into(plane, run.dimensions, run.seed))


def _labeler(run: ManifoldRun, X: NDArray[np.float64]) -> tuple[Predict, float]:
    """From points of the plane to states, and the DML loss on the points given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what is not certified is counted as it is
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
    # The cost of a step does not depend on what is labelled, nor on the weight of R_c.
    seconds = _seconds_per_point(replace(run, seed=0, points="moons", beta=1.0))
    return run.config.epochs * run.n_points * seconds


@cache
def _seconds_per_point(run: ManifoldRun) -> float:
    return network_seconds(run.network(), DML(), (run.dimensions,), run.config)


def tables(results: Results) -> list[Table]:
    """Points labelled right by every method."""
    networks = [(method, choice) for method in ("batches", "whole") for choice in CHOICES]
    columns = [*networks, ("labeler", BLIND)]
    rows = [
        (points, *(text(right_shares(group, *column)) for column in columns))
        for points, group in by(results, points_of).items()
    ]
    head = ("set", *(f"{METHODS[m]}, beta by the {choice}" for m, choice in networks), METHODS["labeler"])
    note = (
        "These sets are not the paper's: 1,200 points with five times its noise around thicker circles and moons. Of "
        "the values of beta, in coordinates as they are and of unit variance each, one counts for each seed: that "
        "with most points right (by the labels, as in the paper), or of the least DML loss (by the objective, without "
        "labels)."
    )
    return [Table("Harder sets: points with the label of their manifold, %", head, rows, note)] if rows else []


def points_of(record: Record) -> str:
    """The set of a run."""
    name: str = record.settings["points"]
    return name


def right_shares(group: Results, method: str, choice: str) -> list[float]:
    """Share of points labelled right, one a seed, with the beta that is chosen."""
    chosen = [record for record in group if record.settings["method"] == method]

    def merit(record: Record) -> float:
        return float(record.values["right"] if choice == SIGHTED else -record.values["objective"])

    best = [max(found, key=merit) for found in by(chosen, lambda record: record.settings["seed"]).values()]
    return [float(record.values["right"]) for record in best]
