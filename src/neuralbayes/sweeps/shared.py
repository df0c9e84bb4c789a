"""Jobs on an Optuna storage, for any number of processes on any number of machines.

A job is a trial of a study, and a further trial for each further attempt at it. The storage sees that only one process
sets a waiting trial running, which is to take it, and only one a running trial finished. Trials that are missing are
made by everybody who misses them; of several for the same attempt the first counts, and the others are ended.

Who works at a trial renews its lease: a number that he changes, and no time, since the clocks of machines differ. Who
sees it unchanged for long by his own clock ends the trial, and there is another attempt.
"""

from __future__ import annotations

import random
import threading
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

try:
    import optuna
    from optuna.exceptions import StorageInternalError, UpdateFinishedTrialError
    from optuna.trial import FrozenTrial, TrialState
except ImportError as error:
    raise ImportError("a storage needs optuna: pip install 'neuralbayes[sweep]'") from error

from neuralbayes.sweeps.jobs import Job, Jobs
from neuralbayes.sweeps.storage import close_storage, open_storage

LEASE = 60.0
"""Seconds without a renewal after which a trial is taken from whoever had it. The same on all machines."""
RENEWALS = 4
"""In the time of a lease."""
INTERVAL = 2.0
"""Seconds between two looks at the storage."""
FEW = 8
"""Trials that are made before looking whether others make them too."""
DEATHS = 2
"""Workers that may die of a job: with the last of them it has failed."""
STRIKES = 3
"""Workers that may die one after the other: with the last of them this process gives up."""

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

# Attributes of a trial
JOB, ATTEMPT, BEAT, RESULT, ERROR, DIED = "job", "attempt", "beat", "result", "error", "died"


def _insistent(method: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Try again for the time of a lease where the storage cannot be reached. What is done twice by it does no harm."""

    @wraps(method)
    def insist(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        end = time.monotonic() + LEASE
        while True:
            try:
                return method(*arguments, **options)
            except (StorageInternalError, OSError) as error:
                if time.monotonic() > end:
                    raise ConnectionError(f"the storage cannot be reached: {error.__cause__ or error}") from error
                time.sleep(min(INTERVAL, LEASE / RENEWALS))

    return insist


@dataclass(frozen=True)
class _Held:
    """A job that this process has taken."""

    job: Job
    trial: FrozenTrial
    trial_id: int


class SharedJobs(Jobs):
    """Jobs that this process does together with all others that name the same storage and study.

    Jobs that had failed before are tried once more.

    Parameters
    ----------
    storage : str
        As :func:`neuralbayes.sweeps.storage.open_storage` takes it.
    study : str
        What the jobs together are called there.
    labels : mapping of str to str
        What people call each job, by its key. Other jobs of the study are left to others.
    direction : {"minimize", "maximize"}, default="minimize"
        Of the "value" of a result.
    prune : bool, default=False
        End jobs that report a worse value than the median of the others did at that step.

    Attributes
    ----------
    parameters : dict of str to dict
        What the sampler chose for each job.
    """

    def __init__(
        self,
        storage: str,
        study: str,
        labels: Mapping[str, str],
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        prune: bool = False,
    ) -> None:
        self._storage = open_storage(storage)
        shown = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # that it made a study is no news
        try:
            self._study = optuna.create_study(
                study_name=study, storage=self._storage, direction=direction, load_if_exists=True
            )
        finally:
            optuna.logging.set_verbosity(shown)
        self._study_id = self._storage.get_study_id_from_name(study)
        self._labels = dict(labels)
        self._pruner = optuna.pruners.MedianPruner() if prune else optuna.pruners.NopPruner()
        self._held: dict[str, _Held] = {}
        self._lost: list[Job] = []
        self._sights: dict[int, tuple[int, float]] = {}  # lease of a trial, and for how long it has been the same
        self._looked = time.monotonic()
        self._strikes = 0
        self.interval = min(INTERVAL, LEASE / RENEWALS)
        self.total = len(self._labels)
        for key, trial in self._newest().items():
            if trial.state == TrialState.FAIL and ERROR in trial.user_attrs:
                self._enqueue(key, trial)
        self.look()
        self._closed = threading.Event()
        self._renewal = threading.Thread(target=self._renew, daemon=True)
        self._renewal.start()

    def look(self) -> None:
        newest = self._newest()
        if self._rescue(newest.values()):
            newest = self._newest()
        while missing := [key for key in self._labels if key not in newest or _came_to_nothing(newest[key])]:
            # A few, by chance: others that begin at the same moment are likely to make others.
            for key in random.sample(missing, min(FEW, len(missing))):
                self._enqueue(key, newest.get(key))
            newest = self._newest()
        self._trials = newest
        done = {key: trial.user_attrs for key, trial in self._trials.items() if trial.state.is_finished()}
        self.n_done = len(done)
        self.failures = {key: attributes[ERROR] for key, attributes in done.items() if ERROR in attributes}
        self.results = {key: attributes[RESULT] for key, attributes in done.items() if RESULT in attributes}
        self.parameters = {key: trial.params for key, trial in self._trials.items()}

    def tell(self, key: str, result: dict[str, Any]) -> None:
        if job := self._taken(key):
            self.finish(job, result)

    def take(self) -> Job | None:
        # In their order, and what was tried before last.
        for key in sorted(self._labels, key=lambda key: self._trials[key].user_attrs[ATTEMPT]):
            if job := self._taken(key):
                return job
        return None

    def report(self, job: Job, step: int, value: float) -> bool:
        if job.key not in self._held:
            return False
        trial = self.trial(job)
        trial.report(value, step)
        return bool(trial.should_prune())

    def finish(self, job: Job, result: dict[str, Any]) -> None:
        self._strikes = 0
        state = TrialState.PRUNED if result["value"] is None else TrialState.COMPLETE
        self._end(job, state, {RESULT: result}, result["value"])

    def fail(self, job: Job, error: str) -> None:
        self._strikes = 0
        self._end(job, TrialState.FAIL, {ERROR: error})

    def died(self, job: Job, how: str) -> None:
        self._strikes += 1
        if job.key in self._held:
            deaths = self._held[job.key].trial.user_attrs.get(DIED, 0) + 1
            self._end(job, TrialState.FAIL, {DIED: deaths} | ({ERROR: how} if deaths >= DEATHS else {}))
        if self._strikes >= STRIKES:
            raise ChildProcessError(f"{how}, as {STRIKES - 1} did before it; try fewer --workers, or another machine")

    def lost(self) -> Collection[Job]:
        lost, self._lost = self._lost, []
        return lost

    def close(self) -> None:
        self._closed.set()
        self._renewal.join()
        for held in list(self._held.values()):
            self._end(held.job, TrialState.FAIL)
        close_storage(self._storage)

    def trial(self, job: Job, seed: int = 0) -> optuna.Trial:
        """The trial of a job that was taken, to be asked for parameters; the random numbers come from `seed`."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            # The liar keeps trials that go on at the same time from lying close together.
            sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
        # A study of its own: one that is kept looks at the other trials once only.
        study = optuna.load_study(
            study_name=self._study.study_name, storage=self._storage, sampler=sampler, pruner=self._pruner
        )
        study.get_trials(deepcopy=False)  # its cache of a database takes no parameter of a trial that it has not read
        return optuna.Trial(study, self._held[job.key].trial_id)

    @_insistent
    def _newest(self) -> dict[str, FrozenTrial]:
        """The last attempt at each job, which is the first trial that was made for it."""
        newest: dict[str, FrozenTrial] = {}
        every = self._study.get_trials(deepcopy=False)
        trials = [trial for trial in every if trial.user_attrs.get(JOB) in self._labels]
        for trial in sorted(trials, key=lambda trial: (trial.user_attrs[ATTEMPT], -trial.number)):
            newest[trial.user_attrs[JOB]] = trial
        for trial in trials:
            if trial.state == TrialState.WAITING and trial.number != newest[trial.user_attrs[JOB]].number:
                self._set(self._id(trial), TrialState.FAIL)
        return newest

    @_insistent
    def _enqueue(self, key: str, earlier: FrozenTrial | None) -> None:
        """Let a job wait for an attempt at it, with the parameters of an earlier one."""
        if earlier is None:
            self._study.enqueue_trial({}, user_attrs={JOB: key, ATTEMPT: 0})
            return
        died = 0 if ERROR in earlier.user_attrs else earlier.user_attrs.get(DIED, 0)
        attributes = {JOB: key, ATTEMPT: earlier.user_attrs[ATTEMPT] + 1, DIED: died}
        self._study.enqueue_trial(earlier.params, user_attrs=attributes)

    def _rescue(self, trials: Iterable[FrozenTrial]) -> bool:
        """End trials whose lease has run out; whether there were any."""
        now = time.monotonic()
        # However long this process was suspended, or the storage out of reach: nobody could be heard then.
        passed = min(now - self._looked, LEASE / RENEWALS)
        self._looked = now
        own = {held.trial.number for held in self._held.values()}
        ended = False
        for trial in trials:
            if trial.state != TrialState.RUNNING or trial.number in own:
                continue
            beat = trial.user_attrs.get(BEAT, 0)
            seen, still = self._sights.get(trial.number, (-1, 0.0))
            still = still + passed if beat == seen else 0.0
            self._sights[trial.number] = (beat, still)
            if still > LEASE:
                self._set(self._id(trial), TrialState.FAIL)
                ended = True
        return ended

    def _renew(self) -> None:
        """Renew the leases of all trials that are held, until the end."""
        beat = 0
        while not self._closed.wait(LEASE / RENEWALS):
            beat += 1
            for held in list(self._held.values()):
                try:
                    self._storage.set_trial_user_attr(held.trial_id, BEAT, beat)
                except UpdateFinishedTrialError:
                    if self._held.pop(held.job.key, None):  # else this process itself has ended it just now
                        self._lost.append(held.job)
                except Exception:  # out of reach for a moment, or for ever: then others will notice
                    continue

    def _taken(self, key: str) -> Job | None:
        """A job that is waiting, unless another process is faster."""
        trial = self._trials[key]
        if trial.state != TrialState.WAITING or key in self._held:
            return None
        trial_id = self._id(trial)
        if not self._set(trial_id, TrialState.RUNNING):
            return None
        job = Job(key, self._labels[key])
        self._held[key] = _Held(job, trial, trial_id)
        return job

    def _end(
        self, job: Job, state: TrialState, attributes: Mapping[str, Any] | None = None, value: float | None = None
    ) -> None:
        """End the trial of a job that was taken; nothing where another process did, after the lease."""
        held = self._held.pop(job.key, None)
        if held is not None:
            self._set(held.trial_id, state, attributes, value)
            self.look()

    @_insistent
    def _set(
        self,
        trial_id: int,
        state: TrialState,
        attributes: Mapping[str, Any] | None = None,
        value: float | None = None,
    ) -> bool:
        """Set attributes and then the state of a trial; False where another process was faster."""
        try:
            for name, content in (attributes or {}).items():
                self._storage.set_trial_user_attr(trial_id, name, content)
            return self._storage.set_trial_state_values(trial_id, state, None if value is None else [value])
        except UpdateFinishedTrialError:
            return False

    @_insistent
    def _id(self, trial: FrozenTrial) -> int:
        return self._storage.get_trial_id_from_study_id_trial_number(self._study_id, trial.number)


def _came_to_nothing(trial: FrozenTrial) -> bool:
    """Whether a trial was given back or taken away, and left neither a result nor an error."""
    return trial.state == TrialState.FAIL and ERROR not in trial.user_attrs
