"""Worker processes that do the jobs of a queue, together with other machines."""

from __future__ import annotations

import multiprocessing
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.queues import SimpleQueue
from typing import Any

import optuna
from optuna.trial import TrialState

from neuralbayes.distributed.launch import THREAD_VARIABLES, n_threads, on_its_own
from neuralbayes.sweeps.queue import JOB, WORKER, Queue, Standing, add, retry, standing
from neuralbayes.sweeps.worker import INTERVAL, Do, leave, serve, worker_name
from neuralbayes.training.progress import progress

STRIKES = 3
"""Number of workers that may die in succession before this machine gives up."""


def do_jobs(
    queue: Queue,
    labels: Mapping[str, str],
    do: Do,
    *,
    workers: int,
    what: str,
    metrics: Callable[[Standing], Mapping[str, float]] = lambda now: {},
    verbose: bool,
) -> Standing:
    """Let workers do all unfinished jobs, and wait for the jobs of other machines.

    Parameters
    ----------
    queue : Queue
    labels : mapping of str to str
        Readable name of each job, by its key. Failed jobs are tried once more.
    do : callable
        Does a job; must be picklable.
    workers : int
        Number of processes, which share the cores equally.
    what : str
        Name of a job, such as "run".
    metrics : callable
        Numbers to show with the progress.
    verbose : bool
        Show finished jobs, the remaining time, and messages about workers.
    """
    # Independent of the number of jobs left: another number of threads rounds differently, and a job may be resumed.
    threads = dict.fromkeys(THREAD_VARIABLES, str(n_threads(workers)))
    spawn = multiprocessing.get_context("spawn")
    problems: SimpleQueue[str] = spawn.SimpleQueue()
    crew: list[SpawnProcess] = []
    deaths = 0  # since the last finished job
    with on_its_own(threads), _handled(signal.SIGTERM, leave), queue.open() as study, _dismissed(crew):
        add(study, labels)
        now = standing(study, labels)
        done = len(labels) - now.left
        with progress(len(labels), description=f"{what}s", completed=done, enabled=verbose) as display:
            while now.left:
                while len(crew) < min(workers, now.left):
                    process = spawn.Process(target=serve, args=(queue, list(labels), do, problems))
                    with _handled(signal.SIGINT, signal.SIG_IGN):  # we pass Ctrl-C on ourselves
                        process.start()
                    crew.append(process)
                wait([process.sentinel for process in crew], INTERVAL)
                for process in [process for process in crew if process.exitcode is not None]:
                    crew.remove(process)
                    if process.exitcode == 0:
                        continue
                    job = _retry_job_of(study, process.pid or 0)
                    how = f"a worker died with exit code {process.exitcode}"
                    how += f" in the {what} {labels.get(job, job)!r}" if job else ""
                    how += "" if problems.empty() else f" ({problems.get()})"
                    deaths += 1
                    if deaths == STRIKES:
                        raise ChildProcessError(f"{how}, like {STRIKES - 1} before it; try fewer --workers")
                    if verbose:
                        print(f"{how}; a new one was started", file=sys.stderr, flush=True)
                now = standing(study, labels)
                while display.completed < len(labels) - now.left:
                    display.advance(metrics=metrics(now))
                    deaths = 0
    return now


def _retry_job_of(study: optuna.Study, pid: int) -> str | None:
    """Return the job of a dead worker to the queue at once, and return its key."""
    for trial in study.get_trials(states=(TrialState.RUNNING,)):
        if trial.user_attrs.get(WORKER) == worker_name(pid):
            retry(study, study.tell(trial.number, state=TrialState.FAIL))
            return str(trial.user_attrs[JOB])
    return None


@contextmanager
def _dismissed(crew: list[SpawnProcess]) -> Iterator[None]:
    """Make workers save and exit at the end of the block; a second Ctrl-C does not wait."""
    try:
        yield
    finally:
        try:
            for process in crew:
                process.terminate()
            for process in crew:
                process.join()
        except (KeyboardInterrupt, SystemExit):
            for process in crew:
                process.kill()
            raise


@contextmanager
def _handled(signum: signal.Signals, handler: Any) -> Iterator[None]:
    """Install a signal handler inside the block, if Python allows it in this thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signum, handler)
    try:
        yield
    finally:
        signal.signal(signum, earlier)
