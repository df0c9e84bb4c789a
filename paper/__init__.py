"""The paper, measured: one file for each table and figure. `python -m paper` lists and runs them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from paper.experiment import Experiment

NAMES = (
    "table-classification",
    "table-batch",
    "fig-ablation",
    "fig-convergence",
    "fig-v1-v2",
    "fig-filters",
    "fig-manifolds",
    "mnist-dml",
)
"""All experiments, in the order of the results page. The file of an experiment has its name, with underscores."""


def load_experiment(name: str) -> Experiment:
    """Import the experiment called `name`."""
    if name not in NAMES:
        raise ValueError(f"`name` must be one of {', '.join(NAMES)}, got {name!r}")
    return cast("Experiment", import_module(f"paper.{name.replace('-', '_')}"))
