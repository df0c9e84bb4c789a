"""A run of figure 4 in the authors' own setting, with other gaps, steps of R_c, batches and scales."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.data.toys import Labels, Points
from neuralbayes.distributed import seeded_globally
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import DML, Smoothness
from neuralbayes.training.fit import fit
from neuralbayes.training.inference import in_blocks
from paper.authors_toys import AUTHORS_SETS, CIRCLE_GAP, AuthorsSet
from paper.runs import Run, Scale
from paper.toys import rotate_into

WHOLE, BATCHES, IN_EACH = SETTINGS = ("whole set", "batches", "unit variance in each dimension")
"""The authors' own; batches of a quarter of the points (a third for the spirals); and the paper's text."""

ZETA, BETA, LEARNING_RATE = 0.1, 0.5, 1e-3
"""Settings of R_c and Adam. The authors add R_c with weight 1 to twice the mean over states: 0.5 in our units."""

MOMENTUM = 1.0 - 0.9**3
"""Momentum of batch normalisation: the authors' code updates the running statistics three times per step, ours once."""

MARGIN = 0.62
"""Half the side of a decision map, relative to the extent of the points."""

GAPS, STEPS = (0.4, 0.6, 0.8), (0.03, 0.1, 0.3, 1.0)
"""Gaps of the circles, in units of the outer radius; standard deviations of zeta."""


@dataclass(frozen=True)
class AuthorsRun(Run):
    """The authors' network on one of their sets."""

    published: str
    setting: str
    gap: float
    scale: float
    updates: int
    batch_size: int
    dimensions: int
    hidden: tuple[int, ...]
    grid: int = 0

    @property
    def label(self) -> str:
        return f"published {self.published} {self.setting} gap={self.gap:g} zeta={self.scale:g} seed={self.seed}"

    @property
    def drawn(self) -> AuthorsSet:
        """How the set is drawn."""
        return AUTHORS_SETS[self.published]

    def network(self) -> nn.Sequential:
        """A network with torch's initialisation and no bias in the last layer."""
        network = mlp((self.dimensions, *self.hidden, self.drawn.n_states), batch_norm=True)
        network[-1] = nn.Linear(self.hidden[-1], self.drawn.n_states, bias=False)
        for layer in network:
            if isinstance(layer, nn.Linear):
                layer.reset_parameters()
            elif isinstance(layer, nn.BatchNorm1d):
                layer.momentum = MOMENTUM
        return network

    def measure(self, folder: Path) -> dict[str, Any]:
        """Label the points. An interrupted run starts again, which takes a minute or two."""
        options = {"gap": self.gap} if self.published == "circles" else {}
        plane, truth = self.drawn.draw(**options, random_state=self.seed)
        X = rotate_into(plane, self.dimensions, self.seed)
        center, scale = (X.mean(axis=0), X.std(axis=0)) if self.setting == IN_EACH else (0.0, 1.0)

        def placed(points: Points) -> Tensor:
            return torch.from_numpy((rotate_into(points, self.dimensions, self.seed) - center) / scale).float()

        with seeded_globally(self.seed):
            network = self.network()
            fit(
                DML(),
                network,
                placed(plane),
                max_steps=self.updates,
                batch_size=self.batch_size,
                smoothness=Smoothness(BETA, of="logits", scale=self.scale, center=True, coefficients="binary"),
                optimizer=lambda parameters: torch.optim.Adam(parameters, lr=LEARNING_RATE),
                seed=self.seed,
            )
        with torch.no_grad():
            logits = network(placed(plane))
        states = logits.argmax(dim=1).numpy()
        values = {
            "right": round(float(clustering_accuracy(states, truth)), 5),
            "objective": round(float(DML()(logits)), 5),
        }
        if not self.grid:
            return values
        x = placed(grid_around(plane, self.grid)[0])
        mapped = in_blocks(lambda rows: network(x[rows]), len(x), block=2000).argmax(axis=1)
        return {**values, "picture": {"labels": _digits(states), "map": _digits(mapped)}}


Extent = tuple[float, float, float, float]


def grid_around(plane: Points, n: int) -> tuple[Points, Extent]:
    """Points of a square around `plane`, (n * n, 2) from the bottom up, and its left, right, bottom and top."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    half = MARGIN * float((high - low).max())
    columns, rows = (np.linspace(c - half, c + half, n) for c in (low + high) / 2)
    extent = (float(columns[0]), float(columns[-1]), float(rows[0]), float(rows[-1]))
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2), extent


def _digits(states: Labels) -> str:
    return "".join(map(str, states))


SCALES: dict[Scale, tuple[int, int]] = {"smoke": (2, 1), "laptop": (20, 3), "paper": (20, 10)}
"""Seeds for each set, and for each cell of the grid of circles."""


def runs(scale: Scale, seeds: int | None) -> list[AuthorsRun]:
    """All sets in the authors' setting and in batches, then the circles over gaps and steps."""
    small = scale == "smoke"
    n_seeds, n_grid = SCALES[scale]
    n_seeds, n_grid = (n_seeds, n_grid) if seeds is None else (seeds, min(seeds, n_grid))
    points = [
        (name, seed, setting, CIRCLE_GAP, ZETA)
        for seed, name, setting in product(range(n_seeds), AUTHORS_SETS, (WHOLE, BATCHES))
    ]
    points += [
        ("circles", seed, setting, gap, step)
        for seed, setting, gap, step in product(
            range(n_grid), SETTINGS, GAPS[:1] if small else GAPS, (ZETA,) if small else STEPS
        )
    ]
    size = (16, (20, 20)) if small else (512, (400, 400, 400, 400))
    found = []
    for name, seed, setting, gap, step in dict.fromkeys(points):
        drawn = AUTHORS_SETS[name]
        batch = drawn.n_points // (3 if name == "spirals" else 4) if setting == BATCHES else drawn.n_points
        mapped = seed == 0 and setting == WHOLE and (gap, step) == (CIRCLE_GAP, ZETA)
        updates, grid = (4, 12) if small else (drawn.updates, 48)
        shape = (updates, batch, *size, grid if mapped else 0)
        found.append(AuthorsRun("fig-manifolds", seed, name, setting, gap, step, *shape))
    return found
