"""A worker process: does the waiting jobs of a queue until all are done."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.queues import SimpleQueue
from types import FrameType
from typing import Any, NoReturn

import optuna
from optuna.trial import TrialState

from neuralbayes.sweeps.queue import ERROR, JOB, RESULT, WORKER, Queue, counting, put_back, standing

INTERVAL = 1.0
"""Seconds between checks of the queue."""
OCCUPIED = 10.0
"""Seconds between checks whether a folder is still in use."""

Do = Callable[[str, optuna.Trial], dict[str, Any]]
"""Does the job with a key and returns JSON types. "value" is None if the job has no value."""


class SuperfluousError(Exception):
    """Raised if another trial of the same job counts."""


def serve(queue: Queue, jobs: list[str], do: Do, problems: SimpleQueue[str]) -> None:
    """Run a worker. It saves and exits on request, or if its parent process is gone."""
    signal.signal(signal.SIGTERM, leave)
    warnings.simplefilter("ignore")
    sys.stdout = sys.stderr  # output of libraries is not a result
    threading.Thread(target=_follow, daemon=True).start()
    try:
        work(queue, jobs, do)
    except Exception as problem:
        problems.put(f"{type(problem).__name__}: {problem}")
        sys.exit(1)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # already exiting


def work(queue: Queue, jobs: list[str], do: Do) -> None:
    """Do waiting jobs until all of `jobs` are done, here or elsewhere."""
    with queue.open() as study:
        while (now := standing(study, jobs)).left:
            if now.waiting:
                with suppress(ValueError):  # its heartbeats had stopped, and another process has taken over the job
                    study.optimize(lambda trial: _attempt(trial, do), n_trials=1, catch=Exception)
            else:
                time.sleep(INTERVAL)
                optuna.storages.fail_stale_trials(study)


def worker_name(pid: int) -> str:
    """Name of a process of this machine in the queue."""
    return f"{socket.gethostname()} {pid}"


def leave(signum: int, frame: FrameType | None) -> NoReturn:
    """Exit on a signal with the code of a shell; training saves its step first."""
    raise SystemExit(128 + signum)


def _follow() -> None:
    if parent := multiprocessing.parent_process():
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)


def _attempt(trial: optuna.Trial, do: Do) -> float:
    study = trial.study
    job = trial.user_attrs.get(JOB)
    if job is None or counting(study)[job].number != trial.number:
        raise SuperfluousError
    trial.set_user_attr(WORKER, worker_name(os.getpid()))
    try:
        result = _patiently(job, trial, do)
    except Exception as problem:
        trial.set_user_attr(ERROR, f"{type(problem).__name__}: {problem}")
        raise
    except SystemExit:
        study.tell(trial.number, state=TrialState.FAIL)
        put_back(study, job, trial.params)
        raise
    trial.set_user_attr(RESULT, result)
    if result["value"] is None:
        raise optuna.TrialPruned
    return float(result["value"])


def _patiently(job: str, trial: optuna.Trial, do: Do) -> dict[str, Any]:
    """Do a job once no other process uses its folder, and return the result."""
    told = False
    while True:
        try:
            return do(job, trial)
        except BlockingIOError as problem:
            if not told:
                print(f"waiting: {problem}", file=sys.stderr, flush=True)
            told = True
            time.sleep(OCCUPIED)
