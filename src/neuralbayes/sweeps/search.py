"""A search of the settings of `pretrain` by Optuna, over processes and machines: one folder a trial."""

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
from neuralbayes.objectives.reference import described, named_objective
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
    objective : str, optional
        What is minimised in the place of MIM, as :func:`neuralbayes.objectives.reference.named_objective` takes it.
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
        Folder of the trials that this process does, each in a folder that the hash of its settings names, and of
        sweep.json, which has all.
    trials : int
        How many there are to be in all.
    workers : int
        Processes; each gets as many threads as there are cores for it.
    storage : str, optional
        As :class:`neuralbayes.sweeps.queue.Queue` takes it; by default an SQLite file in `out`.
    verbose : bool, default=False

    Returns
    -------
    list of Outcome
        The best first, those without a value last.
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
        outcomes()  # from now on the folder is that of this sweep
        try:
            do_jobs(queue, labels, _Trials(plan, out), workers=workers, what="trial", metrics=best, verbose=verbose)
        finally:
            kept = outcomes()
    return kept


@dataclass(frozen=True)
class _Trials:
    """What a worker does: draw settings, train with them in the folder that their hash names, judge."""

    plan: Plan
    out: Path

    def __call__(self, job: str, trial: optuna.Trial) -> dict[str, Any]:
        plan = self.plan
        # Of its own for each trial: with the same random numbers all workers would begin with the same draws.
        seed = int(np.random.SeedSequence([plan.config.seed, int(job)]).generate_state(1)[0])
        # The liar keeps trials that go on at the same time from lying close together.
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
    """The plan as JSON has it. Images and objective are known by what they are, not by where they lie."""
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
    """Raise if the folder holds another sweep."""
    if not (out / SWEEP_FILE).is_file():
        return
    earlier = read_json(out / SWEEP_FILE)
    known = earlier.get("settings", {}) if isinstance(earlier, dict) else {}
    if changed := sorted(name for name in settings if known.get(name) != settings[name]):
        raise ValueError(f"{out} holds another sweep (other: {', '.join(changed)}); take another folder")


def _chosen(space: Space, drawn: Mapping[str, Any]) -> dict[str, Any]:
    return {name: space[name].value(value) for name, value in drawn.items()}


def _name(plan: Plan, chosen: Mapping[str, Any]) -> str:
    """The folder of a trial: the same settings are trained once."""
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
