"""A search of the settings of `pretrain` by Optuna, over processes and machines: one folder a trial."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neuralbayes.data.sources import Images
from neuralbayes.features.encoder import MIN_SIDE
from neuralbayes.features.pretraining import WATCHED, PretrainConfig
from neuralbayes.sweeps.crew import work
from neuralbayes.sweeps.jobs import Job
from neuralbayes.sweeps.shared import SharedJobs
from neuralbayes.sweeps.space import Space
from neuralbayes.sweeps.trial import METRICS, Metric, Pictures, check_pictures
from neuralbayes.system.files import read_json, write_json

WORKER = [sys.executable, "-W", "ignore", "-m", "neuralbayes.sweeps.trial"]
State = Literal["finished", "ended early", "failed"]
SWEEP_FILE = "sweep.json"
JOURNAL = "journal.log"


@dataclass(frozen=True)
class Plan:
    """All that decides what the trials of a sweep are; machines that share one have the same.

    Attributes
    ----------
    pictures : Pictures
    space : Space
        What is searched.
    config : PretrainConfig
        The other settings. Its seed is that of the sampler too.
    metric : {"probe", "information"}
        What is to be large: the accuracy of a linear probe of the last layer on a fifth of the labelled training
        images, or I(x; z) of the last layer in nats, which needs no labels.
    prune : bool
        End trials that are worse after an epoch than the median of the others was.
    """

    pictures: Pictures
    space: Space
    config: PretrainConfig
    metric: Metric = "probe"
    prune: bool = False

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"`metric` must be one of {', '.join(METRICS)}, got {self.metric!r}")


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Attributes
    ----------
    trial : str
        The name of its folder.
    state : {"finished", "ended early", "failed"}
    settings : dict
        Those that were searched.
    value : float or None
        The metric, of a finished one.
    note : str
        Why it was ended early, or what went wrong.
    seconds : float or None
        Of training.
    host : str
        The machine that has its folder.
    """

    trial: str
    state: State
    settings: dict[str, Any]
    value: float | None = None
    note: str = ""
    seconds: float | None = None
    host: str = ""


def search(
    plan: Plan, out: Path, *, trials: int, workers: int, storage: str | None = None, verbose: bool = False
) -> list[Outcome]:
    """Do all trials of a sweep that are not done, together with others that share its storage.

    Parameters
    ----------
    plan : Plan
    out : Path
        Folder of the trials that this process does, ``trial-0000`` and so on, and of sweep.json, which has all.
    trials : int
        How many there are to be in all.
    workers : int
        Processes; each gets as many threads as there are cores for it.
    storage : str, optional
        As :func:`neuralbayes.sweeps.storage.open_storage` takes it; by default a journal in `out`.
    verbose : bool, default=False

    Returns
    -------
    list of Outcome
        The best first, those without a value last.
    """
    if trials < 1:
        raise ValueError(f"`trials` must be at least 1, got {trials}")
    images = check_pictures(plan.pictures, plan.metric, progress=verbose)
    settings = _settings(plan, images)
    _check_folder(out, settings)
    study = f"neuralbayes sweep {hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:12]}"
    names = {f"trial-{i:04d}": i for i in range(trials)}

    def order(job: Job) -> dict[str, Any]:
        # Of its own for each trial: with the same random numbers all workers would begin with the same draws.
        seed = int(np.random.SeedSequence([plan.config.seed, names[job.key]]).generate_state(1)[0])
        trial = source.trial(job, seed)
        for name, searched in plan.space.items():
            searched.suggest(name, trial)
        return {
            "pictures": asdict(plan.pictures),
            "config": asdict(plan.config) | _chosen(plan.space, trial.params),
            "metric": plan.metric,
            "prune": plan.prune,
            "folder": str((out / job.key).absolute()),
        }

    def outcomes() -> list[Outcome]:
        return _outcomes(plan.space, source.results, source.failures, source.parameters)

    def best() -> dict[str, float]:
        value = outcomes()[0].value
        return {} if value is None else {f"best {plan.metric}": value}

    place = str(out / JOURNAL) if storage is None else storage
    labels = {name: name for name in names}
    with closing(SharedJobs(place, study, labels, direction="maximize", prune=plan.prune)) as source:
        _write(out, settings, outcomes())
        try:
            work(source, WORKER, order, workers=workers, what="trial", metrics=best, verbose=verbose)
        finally:
            _write(out, settings, outcomes())
        return outcomes()


def _settings(plan: Plan, images: Images) -> dict[str, Any]:
    """The plan as JSON has it. Images are known by what they show, not by where they lie on this machine."""
    if min(images.source.shape[:2]) < MIN_SIDE:
        height, width, _ = images.source.shape
        raise ValueError(f"images must be at least {MIN_SIDE}x{MIN_SIDE} pixels, got {height}x{width}; give a `size`")
    digest = hashlib.blake2b(f"{len(images)} {images.source.shape}".encode(), digest_size=8)
    digest.update(images.source.read(np.arange(min(WATCHED, len(images)))).tobytes())
    digest.update(b"" if images.labels is None else images.labels.tobytes())
    settings = asdict(plan) | {"pictures": digest.hexdigest()}
    known: dict[str, Any] = json.loads(json.dumps(settings))
    return known


def _check_folder(out: Path, settings: Mapping[str, Any]) -> None:
    """Raise if the folder holds another sweep."""
    if not (out / SWEEP_FILE).is_file():
        return
    earlier = read_json(out / SWEEP_FILE)
    known = earlier.get("settings", {}) if isinstance(earlier, dict) else {}
    if changed := sorted(name for name in settings if known.get(name) != settings[name]):
        raise ValueError(f"{out} holds another sweep (other: {', '.join(changed)}); take another folder")


def _write(out: Path, settings: Mapping[str, Any], outcomes: list[Outcome]) -> None:
    write_json(out / SWEEP_FILE, {"settings": settings, "trials": [asdict(outcome) for outcome in outcomes]})


def _chosen(space: Space, drawn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: space[name].value(value) for name, value in drawn.items()}


def _outcomes(
    space: Space,
    results: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, str],
    parameters: Mapping[str, Mapping[str, Any]],
) -> list[Outcome]:
    def outcome(name: str, state: State, **what: Any) -> Outcome:
        return Outcome(name, state, _chosen(space, parameters[name]), **what)

    outcomes = [
        outcome(name, "ended early" if result["value"] is None else "finished", **result)
        for name, result in results.items()
    ]
    outcomes += [outcome(name, "failed", note=error) for name, error in failures.items()]
    return sorted(outcomes, key=lambda one: (one.value is None, -(one.value or 0.0), one.trial))
