"""Search the settings of `pretrain` with Optuna, on several processes and machines, one folder per trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import optuna

from neuralbayes.data.sources import Images
from neuralbayes.features.encoder import MIN_SIDE
from neuralbayes.features.pretraining import WATCHED, PretrainConfig
from neuralbayes.objectives.description import described, named_objective
from neuralbayes.sweeps.crew import do_jobs
from neuralbayes.sweeps.queue import Queue, Standing, standing
from neuralbayes.sweeps.space import Space
from neuralbayes.sweeps.trial import METRICS, Metric, Pictures, check_pictures, run_trial
from neuralbayes.system.files import json_hash, read_json, write_json

State = Literal["finished", "ended early", "failed"]
SWEEP_FILE = "sweep.json"
DATABASE = "sweep.db"


@dataclass(frozen=True)
class Plan:
    """Everything that determines the trials of a sweep. Machines that share a sweep have the same plan.

    Attributes
    ----------
    pictures : Pictures
    space : Space
        The searched settings.
    config : PretrainConfig
        The other settings. Its seed is also that of the sampler.
    metric : {"probe", "information"}
        Metric to maximise: the accuracy of a linear probe of the last layer on a fifth of the labelled training images,
        or I(x; z) of the last layer in nats, which needs no labels.
    prune : bool
        Stop trials that are worse than the median of the others after an epoch.
    objective : str, optional
        Objective instead of MIM, as in :func:`neuralbayes.objectives.description.named_objective`.
    """

    pictures: Pictures
    space: Space
    config: PretrainConfig
    metric: Metric = "probe"
    prune: bool = False
    objective: str | None = None

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ValueError(f"`metric` must be one of {', '.join(METRICS)}, got {self.metric!r}")


@dataclass(frozen=True)
class Outcome:
    """Result of a trial.

    Attributes
    ----------
    trial : str
        Name of its folder.
    state : {"finished", "ended early", "failed"}
    settings : dict
        Values of the searched settings.
    value : float or None
        The metric, if finished.
    note : str
        Why it stopped early, or what went wrong.
    seconds : float or None
        Training time.
    host : str
        The machine with its folder.
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
    """Run all unfinished trials of a sweep, together with other processes that share its storage.

    Parameters
    ----------
    plan : Plan
    out : Path
        Folder for the trials of this process, each in a subfolder named by the hash of its settings, and for
        sweep.json, which lists all trials.
    trials : int
        Total number of trials.
    workers : int
        Number of processes, which share the cores equally.
    storage : str, optional
        Storage, as in :class:`neuralbayes.sweeps.queue.Queue`; by default an SQLite file in `out`.
    verbose : bool, default=False

    Returns
    -------
    list of Outcome
        Sorted from best to worst; trials without a value come last.
    """
    if trials < 1:
        raise ValueError(f"`trials` must be at least 1, got {trials}")
    settings = _settings(plan, check_pictures(plan.pictures, plan.metric, progress=verbose))
    _check_folder(out, settings)
    place = str(out / DATABASE) if storage is None else storage
    queue = Queue(place, f"neuralbayes sweep {json_hash(settings)}", "maximize", plan.prune)
    labels = {str(number): str(number) for number in range(trials)}

    def best(now: Standing) -> dict[str, float]:
        value = _outcomes(plan, now)[0].value
        return {} if value is None else {f"best {plan.metric}": value}

    def outcomes() -> list[Outcome]:
        found = _outcomes(plan, standing(study, labels))
        write_json(out / SWEEP_FILE, {"settings": settings, "trials": [asdict(one) for one in found]})
        return found

    with queue.open() as study:
        outcomes()  # marks the folder as that of this sweep
        try:
            do_jobs(queue, labels, _Trials(plan, out), workers=workers, what="trial", metrics=best, verbose=verbose)
        finally:
            kept = outcomes()
    return kept


@dataclass(frozen=True)
class _Trials:
    """The job of a worker: draw settings, train with them in their folder, and evaluate."""

    plan: Plan
    out: Path

    def __call__(self, job: str, trial: optuna.Trial) -> dict[str, Any]:
        plan = self.plan
        # One seed per trial: with the same seed, all workers would start with the same draws.
        seed = int(np.random.SeedSequence([plan.config.seed, int(job)]).generate_state(1)[0])
        # The constant liar keeps concurrent trials apart.
        trial.study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        for name, searched in plan.space.items():
            searched.suggest(name, trial)
        chosen = _chosen(plan.space, trial.params)

        def report(epoch: int, value: float) -> bool:
            trial.report(value, epoch)
            return trial.should_prune()

        return run_trial(
            plan.pictures,
            replace(plan.config, **chosen),
            plan.metric,
            self.out / _name(plan, chosen),
            plan.objective,
            report if plan.prune else None,
        )


def _settings(plan: Plan, images: Images) -> dict[str, Any]:
    """The plan as JSON types. Images and objective are identified by content, not by path."""
    if min(images.source.shape[:2]) < MIN_SIDE:
        height, width, _ = images.source.shape
        raise ValueError(f"images must be at least {MIN_SIDE}x{MIN_SIDE} pixels, got {height}x{width}; give a `size`")
    digest = hashlib.blake2b(f"{len(images)} {images.source.shape}".encode(), digest_size=8)
    digest.update(images.source.read(np.arange(min(WATCHED, len(images)))).tobytes())
    digest.update(b"" if images.labels is None else images.labels.tobytes())
    objective = None if plan.objective is None else described(named_objective(plan.objective))
    settings = asdict(plan) | {"pictures": digest.hexdigest(), "objective": objective}
    known: dict[str, Any] = json.loads(json.dumps(settings))
    return known


def _check_folder(out: Path, settings: Mapping[str, Any]) -> None:
    """Raise if the folder contains another sweep."""
    if not (out / SWEEP_FILE).is_file():
        return
    earlier = read_json(out / SWEEP_FILE)
    known = earlier.get("settings", {}) if isinstance(earlier, dict) else {}
    if changed := sorted(name for name in settings if known.get(name) != settings[name]):
        raise ValueError(f"{out} holds another sweep (different: {', '.join(changed)}); choose another folder")


def _chosen(space: Space, drawn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: space[name].value(value) for name, value in drawn.items()}


def _name(plan: Plan, chosen: Mapping[str, Any]) -> str:
    """The folder of a trial. The same settings are trained once."""
    return json_hash(asdict(plan.config) | dict(chosen))


def _outcomes(plan: Plan, now: Standing) -> list[Outcome]:
    def outcome(job: str, state: State, **what: Any) -> Outcome:
        chosen = _chosen(plan.space, now.parameters[job])
        return Outcome(_name(plan, chosen), state, chosen, **what)

    outcomes = [
        outcome(job, "ended early" if result["value"] is None else "finished", **result)
        for job, result in now.results.items()
    ]
    outcomes += [outcome(job, "failed", note=error) for job, error in now.failures.items()]
    return sorted(outcomes, key=lambda one: (one.value is None, -(one.value or 0.0), one.trial))
