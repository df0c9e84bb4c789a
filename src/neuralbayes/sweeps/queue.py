"""A queue of jobs in a database that processes and machines share. Each job is done once, even if processes die.

A job is a trial of an Optuna study, with one more trial for each further attempt. Optuna assigns a waiting trial to one
process, which sends heartbeats while it works. If the heartbeats stop, the trial waits again, with the same parameters.
"""

from __future__ import annotations

import errno
import os
import random
import time
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import optuna
from optuna.exceptions import ExperimentalWarning, StorageInternalError
from optuna.storages import RDBStorage, RetryHeartbeatStaleTrialCallback
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import event, exc, make_url

RETRIES = 1
"""Number of retries of a job whose process died."""
PATIENCE = 60
"""Timeout of SQLite in seconds, while another process writes."""
REFUSALS = {"disk is full": errno.ENOSPC, "readonly": errno.EROFS}
"""Messages of SQLite if the system refuses to write."""

# Attributes of a trial
JOB, WORKER, RESULT, ERROR = "job", "worker", "result", "error"
DIED = "its process died, perhaps because memory ran out"


@dataclass(frozen=True)
class Queue:
    """A queue of jobs, shared by all processes with the same storage and study.

    Attributes
    ----------
    storage : str
        Path of an SQLite file, for processes of one machine, or the address of a database, such as
        ``postgresql://user@host/name``. Tables are created if needed.
    study : str
        Name of the set of jobs.
    direction : {"minimize", "maximize"}
        Whether smaller or larger values are better.
    prune : bool
        Stop jobs whose value is worse than the median of the others at that step.
    grace : int
        Seconds without a heartbeat after which another process takes over a job.
    """

    storage: str
    study: str
    direction: Literal["minimize", "maximize"] = "minimize"
    prune: bool = False
    grace: int = 60

    @contextmanager
    def open(self) -> Iterator[optuna.Study]:
        """Open or create the study. Errors name the database."""
        url = _address(self.storage)
        shown = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.CRITICAL)  # attributes record what happens to trials
        storage: RDBStorage | None = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ExperimentalWarning)
                storage = self._open(url)
                yield optuna.create_study(
                    study_name=self.study,
                    storage=storage,
                    direction=self.direction,
                    pruner=optuna.pruners.MedianPruner() if self.prune else optuna.pruners.NopPruner(),
                    load_if_exists=True,
                )
        except (StorageInternalError, exc.DBAPIError) as error:
            raise _named(error, url) from error
        finally:
            optuna.logging.set_verbosity(shown)
            if storage is not None:
                storage.remove_session()
                storage.engine.dispose()

    def _open(self, url: str) -> RDBStorage:
        sqlite = url.startswith("sqlite")
        for last in (False, True):
            try:
                storage = RDBStorage(
                    url,
                    engine_kwargs={"connect_args": {"timeout": PATIENCE}} if sqlite else {"pool_pre_ping": True},
                    heartbeat_interval=max(1, self.grace // 4),
                    grace_period=self.grace,
                    heartbeat_stale_trial_callback=retry,
                )
                break
            except exc.DBAPIError:  # two processes may create the tables at the same time
                if last:
                    raise
                time.sleep(random.random())
        if sqlite:
            _lock_before_reading(storage)
        return storage


@dataclass(frozen=True)
class Standing:
    """Progress of jobs, by key.

    Attributes
    ----------
    results : dict of str to dict
        Results of finished jobs.
    failures : dict of str to str
        Error messages of failed jobs.
    parameters : dict of str to dict
        Parameters of started jobs.
    left : int
        Number of jobs that are neither finished nor failed.
    waiting : bool
        Whether any job of the study waits for a process.
    """

    results: dict[str, dict[str, Any]]
    failures: dict[str, str]
    parameters: dict[str, dict[str, Any]]
    left: int
    waiting: bool


def standing(study: optuna.Study, jobs: Collection[str]) -> Standing:
    """Progress of the jobs with these keys."""
    counted = counting(study)
    known = {job: counted[job] for job in jobs if job in counted}
    failed = {job: trial for job, trial in known.items() if trial.state == TrialState.FAIL}
    results = {job: trial.user_attrs[RESULT] for job, trial in known.items() if _rank(trial) == 0}
    return Standing(
        results=results,
        failures={job: trial.user_attrs.get(ERROR, DIED) for job, trial in failed.items()},
        parameters={job: trial.params for job, trial in known.items()},
        left=len(jobs) - len(results) - len(failed),
        waiting=any(trial.state == TrialState.WAITING for trial in counted.values()),
    )


def counting(study: optuna.Study) -> dict[str, FrozenTrial]:
    """The trial that counts for each job: a finished one, or the first unfinished one, or the last failed one.

    Processes that add a job at the same time create several trials for it. Only this one counts.
    """
    counted: dict[str, FrozenTrial] = {}
    for trial in study.get_trials(deepcopy=False):
        if (job := trial.user_attrs.get(JOB)) is None:
            continue
        rank, before = _rank(trial), _rank(counted[job]) if job in counted else 4
        if rank < before or rank == before == 2:
            counted[job] = trial
    return counted


def add(study: optuna.Study, jobs: Collection[str]) -> None:
    """Add jobs that are not in the study yet or have failed."""
    counted = counting(study)
    for job in jobs:
        if job not in counted or counted[job].state == TrialState.FAIL:
            put_back(study, job, counted[job].params if job in counted else {})


def add_finished(study: optuna.Study, job: str, result: dict[str, Any]) -> None:
    """Add a job that was finished before."""
    study.add_trial(optuna.create_trial(value=result["value"], user_attrs={JOB: job, RESULT: result}))


def put_back(study: optuna.Study, job: str, parameters: dict[str, Any]) -> None:
    """Add a job to the queue, with its parameters if they are known."""
    study.enqueue_trial(parameters, user_attrs={JOB: job})


def retry(study: optuna.Study, trial: FrozenTrial) -> None:
    """Retry a trial whose process died, unless it has killed processes before."""
    RetryHeartbeatStaleTrialCallback(max_retry=RETRIES)(study, trial)


def _rank(trial: FrozenTrial) -> int:
    """0 if finished, 1 if unfinished, 2 if failed, 3 if lost."""
    if trial.state == TrialState.FAIL:
        return 2 if ERROR in trial.user_attrs else 3
    return 0 if trial.state.is_finished() else 1


def _address(storage: str) -> str:
    """Address of a database. A path becomes an SQLite file, whose folder is created."""
    if "://" not in storage:
        path = Path(storage).absolute()
        if path.is_dir():
            raise IsADirectoryError(f"a storage must be a file or the address of a database, got the folder {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        return f"sqlite:///{path}"
    try:
        make_url(storage).get_dialect()
    except exc.NoSuchModuleError as error:
        shown = make_url(storage).render_as_string(hide_password=True)
        raise ValueError(f"a storage must be a database that SQLAlchemy knows, got {shown!r}") from error
    except exc.ArgumentError as error:
        raise ValueError(f"a storage must be a path or the address of a database, got {storage!r}") from error
    return storage


def _named(error: Exception, url: str) -> OSError:
    """Describe an error of a database, with its file or its address without the password."""
    cause = error.__cause__ if isinstance(error, StorageInternalError) else error
    text = str(getattr(cause, "orig", cause))
    address = make_url(url)
    for words, number in REFUSALS.items():
        if words in text and address.get_backend_name() == "sqlite":
            return OSError(number, os.strerror(number), address.database)
    return ConnectionError(f"the storage {address.render_as_string(hide_password=True)} cannot be used: {text}")


def _lock_before_reading(storage: RDBStorage) -> None:
    """Lock SQLite from reading to writing.

    SQLite has no SELECT FOR UPDATE, which Optuna uses elsewhere to assign a trial to only one process.
    """

    def no_transactions_of_its_own(connection: Any, record: object) -> None:
        connection.isolation_level = None

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(storage.engine, "connect", no_transactions_of_its_own)
    event.listen(storage.engine, "begin", begin)
    storage.engine.dispose()  # connections from before
