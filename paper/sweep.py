"""Many runs on several processes of this machine, or of all machines that share a storage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import optuna
from neuralbayes.sweeps.crew import do_jobs
from neuralbayes.sweeps.queue import Queue, add_finished, standing

from neuralbayes.system.files import read_json
from paper import load_experiment
from paper.experiment import Record, Run, perform


def sweep(
    runs: Sequence[Run],
    out: Path,
    *,
    workers: int,
    verbose: bool,
    storage: str | None = None,
    study: str = "",
) -> dict[str, str]:
    """Perform all unfinished runs.

    Parameters
    ----------
    runs : sequence of Run
    out : Path
        Folder of the results.
    workers : int
        Number of processes, which share the cores equally.
    verbose : bool
        Show the number of finished runs and the time left.
    storage : str, optional
        Storage shared with other processes, as in :class:`neuralbayes.sweeps.queue.Queue`. One of them performs each
        run, and `out` receives the results of all.
    study : str
        Name of the set of runs in the storage.

    Returns
    -------
    dict of str to str
        Error messages by label of the run.
    """
    wanted = {run.key: run for run in runs if storage or not run.finished(out)}
    with TemporaryDirectory() as folder:
        queue = Queue(storage or f"{folder}/runs.db", study)
        with queue.open() as shared:
            known = standing(shared, wanted).results
            for key, run in wanted.items():
                if run.finished(out) and key not in known:
                    add_finished(shared, key, _result(run, out))
        labels = {key: run.label for key, run in wanted.items()}
        now = do_jobs(queue, labels, _Runs(wanted, out), workers=workers, what="run", verbose=verbose)
    for key, result in now.results.items():
        Record(wanted[key].settings, result["values"], result["about"]).store(wanted[key], out)
    return {f"{wanted[key].experiment} {labels[key]}": error for key, error in now.failures.items()}


@dataclass(frozen=True)
class _Runs:
    """The job of a worker: perform the run with a given key in its folder below `out`."""

    runs: dict[str, Run]
    out: Path

    def __call__(self, key: str, trial: optuna.Trial) -> dict[str, Any]:
        run = self.runs[key]
        perform(load_experiment(run.experiment), run, self.out)
        return _result(run, self.out)


def _result(run: Run, out: Path) -> dict[str, Any]:
    """The result of a finished run from its folder; its value is the time it took."""
    result: dict[str, Any] = read_json(run.folder(out) / "result.json")
    return result | {"value": result["about"]["seconds"]}
