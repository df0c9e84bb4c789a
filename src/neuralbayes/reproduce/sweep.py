"""Many runs over several processes of this machine, or of all machines that share a storage."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from neuralbayes.reproduce.experiment import Run, Scale
from neuralbayes.sweeps.crew import work
from neuralbayes.sweeps.jobs import Job as Task
from neuralbayes.sweeps.jobs import Jobs, LocalJobs
from neuralbayes.system.files import read_json, write_json

Job = tuple[str, Run]
"""The experiment that asks for a run, and the run."""

WORKER = [sys.executable, "-W", "ignore", "-m", "neuralbayes.reproduce.worker"]


def sweep(
    jobs: Sequence[Job],
    out: Path,
    *,
    scale: Scale,
    seeds: int | None,
    workers: int,
    verbose: bool,
    storage: str | None = None,
    study: str = "",
) -> dict[str, str]:
    """Do all runs that are not finished.

    Parameters
    ----------
    jobs : sequence of Job
    out : Path
        Folder of the results.
    scale, seeds
        From which the runs follow: a worker finds them again by their hash.
    workers : int
        Processes; each gets as many threads as there are cores for it.
    verbose : bool
        Show how many runs are done and how long the others will take.
    storage : str, optional
        What this process shares with others, as :func:`neuralbayes.sweeps.storage.open_storage` takes it: each run is
        done by one of them, and `out` gets the results of all.
    study : str
        What the runs together are called there.

    Returns
    -------
    dict of str to str
        What went wrong, by the label of the run.
    """
    asked = {run.key: (name, run) for name, run in jobs}
    labels = {key: run.label for key, (_, run) in asked.items()}

    def order(task: Task) -> dict[str, Any]:
        name, run = asked[task.key]
        return {"experiment": name, "scale": scale, "seeds": seeds, "run": run.key, "out": str(out.absolute())}

    with closing(_source(labels, storage, study)) as source:
        for key, (_, run) in asked.items():
            if run.finished(out):
                source.tell(key, result_of(run, out))
        work(source, WORKER, order, workers=workers, what="run", verbose=verbose)
        for key, result in source.results.items():
            _keep(asked[key][1], result, out)
        return {f"{asked[key][1].experiment} {labels[key]}": error for key, error in source.failures.items()}


def _source(labels: Mapping[str, str], storage: str | None, study: str) -> Jobs:
    if storage is None:
        return LocalJobs(labels)
    from neuralbayes.sweeps.shared import SharedJobs

    return SharedJobs(storage, study, labels)


def result_of(run: Run, out: Path) -> dict[str, Any]:
    """What a finished run left in its folder; its value is the time it took."""
    result: dict[str, Any] = read_json(run.folder(out) / "result.json")
    return result | {"value": result["about"]["seconds"]}


def _keep(run: Run, result: dict[str, Any], out: Path) -> None:
    """Put the result of another machine into the folder that the run has here."""
    if not run.finished(out):
        write_json(run.folder(out) / "config.json", run.settings)
        write_json(run.folder(out) / "result.json", {name: result[name] for name in ("values", "about")})
