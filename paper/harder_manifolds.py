"""Manifolds that are harder to separate than the paper's: its network, trained in two ways, and `ManifoldLabeler`."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from neuralbayes.bayes import LOG_2
from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.data.toys import PAPER as SETS
from neuralbayes.data.toys import rotate_into
from neuralbayes.estimators import ManifoldLabeler
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import DML
from neuralbayes.training.rng import seeded_globally
from paper.decision_map import Predict, packed
from paper.runs import Record, Results, Run, Scale, by
from paper.statistics import text
from paper.tables import Table
from paper.training import outputs, train_network

METHODS = {"batches": "MLP, in batches", "whole": "MLP, all points at once", "labeler": "ManifoldLabeler"}
"""The paper's network with batches of 400 of the 1,200 points, with the gradient of all points, and our estimator."""

SIGHTED, BLIND = CHOICES = ("labels", "objective")
"""How the beta of a network is selected."""


@dataclass(frozen=True)
class ManifoldRun(Run):
    """Points of the plane, rotated into a high dimension and labelled."""

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

    def plane(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Points (n, 2) before the rotation, and their manifolds."""
        return SETS[self.points][0](self.n_points, random_state=self.seed)

    def measure(self, folder: Path) -> dict[str, Any]:
        """Label the points. An interrupted run starts again, which takes a minute or two."""
        plane, truth = self.plane()
        X = rotate_into(plane, self.dimensions, self.seed)
        predict, objective = self._labeler(X) if self.method == "labeler" else self._network(X)
        values = {"right": round(clustering_accuracy(predict(plane), truth), 5), "objective": round(objective, 5)}
        return values if self.seed > 0 else {**values, "picture": packed(predict, plane, self.grid)}

    def _labeler(self, X: NDArray[np.float64]) -> tuple[Predict, float]:
        """A function from points of the plane to states, and the DML loss on `X`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fits without a certificate count too
            labeler = ManifoldLabeler(SETS[self.points][1], random_state=self.seed).fit(X)
        return lambda plane: labeler.predict(rotate_into(plane, self.dimensions, self.seed)), LOG_2 - labeler.score(X)

    def _network(self, X: NDArray[np.float64]) -> tuple[Predict, float]:
        center, scale = X.mean(axis=0), X.std(axis=0) if self.standardize else 1.0
        x = torch.from_numpy((X - center) / scale).float()
        size = self.batch_size if self.method == "batches" else self.n_points
        with seeded_globally(self.seed):
            network = mlp((self.dimensions, *self.hidden, SETS[self.points][1]), batch_norm=True)
            train_network(
                network,
                DML(),
                x,
                epochs=math.ceil(self.updates / math.ceil(self.n_points / size)),
                batch_size=size,
                microbatch_size=size,
                beta=self.beta or 0.0,
                seed=self.seed,
            )

        def predict(plane: NDArray[np.float64]) -> NDArray[np.int64]:
            rotated = rotate_into(plane, self.dimensions, self.seed)
            return outputs(network, torch.from_numpy((rotated - center) / scale).float()).argmax(dim=1).numpy()

        return predict, float(DML()(outputs(network, x)))


PAPER: dict[str, Any] = {
    "n_points": 1200,
    "dimensions": 512,
    "hidden": (400, 400, 400, 400),
    "batch_size": 400,
    "grid": 48,
}
SMALL = {"n_points": 300, "dimensions": 16, "hidden": (50, 50), "batch_size": 100, "updates": 20, "grid": 12}
SCALES: dict[Scale, tuple[tuple[float, ...], int, dict[str, Any]]] = {
    "smoke": ((1.0,), 1, SMALL),
    "laptop": ((0.5, 2.0, 6.0), 3, PAPER | {"updates": 400}),
    "paper": ((0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 5, PAPER | {"updates": 5000}),
}
"""Beta, which "was chosen from [0.5, 6]" (section 5.2), seeds, and the network and its training."""


def runs(scale: Scale, seeds: int | None) -> list[ManifoldRun]:
    """Every set with every method; networks with several weights of R_c."""
    betas, default, size = SCALES[scale]
    return [
        ManifoldRun("fig-manifolds", seed, points, method, beta, standardize, **size)
        for seed in range(default if seeds is None else seeds)
        for points in SETS
        for method in METHODS
        for beta, standardize in ([(None, False)] if method == "labeler" else product(betas, (False, True)))
    ]


def tables(results: Results) -> list[Table]:
    """Percentage of correctly labelled points of every method."""
    networks = [(method, choice) for method in ("batches", "whole") for choice in CHOICES]
    columns = [*networks, ("labeler", BLIND)]
    rows = [
        (points, *(text(_right(group, *column)) for column in columns))
        for points, group in by(results, points_of).items()
    ]
    head = ("set", *(f"{METHODS[m]}, beta selected by {choice}" for m, choice in networks), METHODS["labeler"])
    note = (
        "These sets differ from the paper's: 1,200 points with five times its noise, around thicker circles and moons. "
        "For each seed, one value of beta is selected, with and without scaling each coordinate to unit variance: "
        "either by the labels, as in the paper, or by the lowest DML loss, without labels."
    )
    return [Table("Harder sets, not in the paper: correctly labelled points, %", head, rows, note)] if rows else []


def points_of(record: Record) -> str:
    """Name of the set of a run."""
    name: str = record.settings["points"]
    return name


def _right(group: Results, method: str, choice: str) -> list[float]:
    """Fraction of correctly labelled points per seed, with the selected beta."""
    chosen = [record for record in group if record.settings["method"] == method]

    def merit(record: Record) -> float:
        return float(record.values["right"] if choice == SIGHTED else -record.values["objective"])

    best = [max(found, key=merit) for found in by(chosen, lambda record: record.seed).values()]
    return [float(record.values["right"]) for record in best]
