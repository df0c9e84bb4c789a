"""Figure 4 in the authors' own setting, and how it depends on the gap, the steps of R_c, the batch and the scale."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.data.toys import Labels, Points, rotate_into
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import DML, Smoothness
from neuralbayes.training.fit import fit
from neuralbayes.training.rng import seeded_globally
from paper.authors_toys import AUTHORS_SETS, CIRCLE_GAP, AuthorsSet
from paper.decision_map import packed
from paper.runs import Results, Run, Scale, by
from paper.statistics import text
from paper.tables import Table
from paper.training import outputs

WHOLE, BATCHES, IN_EACH = SETTINGS = ("whole set", "batches", "unit variance in each dimension")
"""The authors' own; batches of a quarter of the points (a third for the spirals); and the paper's text."""

ZETA, BETA, LEARNING_RATE = 0.1, 0.5, 1e-3
"""Settings of R_c and Adam. The authors add R_c with weight 1 to twice the mean over states: 0.5 in our units."""

MOMENTUM = 1.0 - 0.9**3
"""Momentum of batch normalisation: the authors' code updates the running statistics three times per step, ours once."""

OPTIMAL = 0.999
"""Minimum fraction of correct labels to count a set as labelled optimally, as all are in figure 4."""

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

    def plane(self) -> tuple[Points, Labels]:
        """Points (n, 2) before the rotation, and their manifolds."""
        return self.drawn.draw(**{"gap": self.gap} if self.published == "circles" else {}, random_state=self.seed)

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
        plane, truth = self.plane()
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

        def predict(points: Points) -> Labels:
            return outputs(network, placed(points)).argmax(dim=1).numpy()

        values = {
            "right": round(float(clustering_accuracy(predict(plane), truth)), 5),
            "objective": round(float(DML()(outputs(network, placed(plane)))), 5),
        }
        return {**values, "picture": packed(predict, plane, self.grid)} if self.grid else values


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
    found = []
    for name, seed, setting, gap, step in dict.fromkeys(points):
        drawn = AUTHORS_SETS[name]
        batch = drawn.n_points // (3 if name == "spirals" else 4) if setting == BATCHES else drawn.n_points
        mapped = seed == 0 and setting == WHOLE and (gap, step) == (CIRCLE_GAP, ZETA)
        found.append(
            AuthorsRun(
                "fig-manifolds",
                seed,
                name,
                setting,
                gap,
                step,
                updates=4 if small else drawn.updates,
                batch_size=batch,
                dimensions=16 if small else 512,
                hidden=(20, 20) if small else (400, 400, 400, 400),
                grid=(12 if small else 48) if mapped else 0,
            )
        )
    return found


def shares(results: Results) -> dict[str, dict[str, list[float]]]:
    """Fraction of correct points per seed, in the authors' setting and in batches: set -> setting -> values."""
    plain = [r for r in results if (r.settings["gap"], r.settings["scale"]) == (CIRCLE_GAP, ZETA)]
    return {
        name: {
            setting: [float(record.values["right"]) for record in group if record.settings["setting"] == setting]
            for setting in (WHOLE, BATCHES)
        }
        for name, group in by(plain, lambda record: record.settings["published"]).items()
    }


def solved(right: list[float]) -> int:
    """Number of seeds that label a set optimally."""
    return sum(value >= OPTIMAL for value in right)


def tables(results: Results) -> list[Table]:
    """How often each set is solved, and the circles by gap and step."""
    if not results:
        return []
    rows = []
    for name, right in shares(results).items():
        counts = [f"{solved(values)} of {len(values)}" if values else "-" for values in right.values()]
        rows.append((name, *counts, *(text(values) for values in right.values())))
    note = (
        "A seed counts if at most one point in a thousand has the wrong label. In batches: a quarter of the points at "
        "a time (a third for the spirals), with the same number of updates. The centres of the blobs are drawn at "
        "random in a square, so some draws have no gap."
    )
    circles = [record for record in results if record.settings["published"] == "circles"]
    grouped = by(circles, lambda r: (r.settings["setting"], r.settings["scale"], r.settings["gap"]))
    cells = {key: [float(record.values["right"]) for record in group] for key, group in grouped.items()}
    gaps = sorted({gap for _, _, gap in cells})
    grid = [
        (f"{setting}, zeta {step:g}", *(text(cells.get((setting, step, gap), []), 0) for gap in gaps))
        for setting, step in product(SETTINGS, sorted({step for _, step, _ in cells}))
        if any((setting, step, gap) in cells for gap in gaps)
    ]
    return [
        Table(
            "The authors' setting: seeds that label a set optimally",
            ("set", "here", "here, in batches", "correct points, %", "in batches, %"),
            rows,
            note,
        ),
        Table(
            "Circles: correctly labelled points in %, by the standard deviation of zeta and the gap (outer radius 1)",
            ("setting", *(f"gap {gap:g}" for gap in gaps)),
            grid,
        ),
    ]
