"""A worker of :func:`neuralbayes.reproduce.sweep.sweep`: does the runs that it is told of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neuralbayes.reproduce import load_experiment
from neuralbayes.reproduce.experiment import perform
from neuralbayes.reproduce.sweep import result_of
from neuralbayes.sweeps.worker import Report, serve


def _obey(order: dict[str, Any], report: Report) -> dict[str, Any]:
    runs = load_experiment(order["experiment"]).runs(order["scale"], order["seeds"])
    run = next(run for run in runs if run.key == order["run"])
    out = Path(order["out"])
    perform(load_experiment(run.experiment), run, out)
    return result_of(run, out)


if __name__ == "__main__":
    serve(_obey)
