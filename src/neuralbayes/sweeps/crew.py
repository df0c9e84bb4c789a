"""Worker processes, each with its share of the cores, and the loop that gives them work.

A worker reads orders from its standard input and answers on its standard output. When its input ends, because this
process is done, was interrupted or died, it saves what it is training and leaves: there is one way to stop, and none
that leaves a worker behind.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from neuralbayes.distributed.launch import THREAD_VARIABLES, n_cores, n_threads
from neuralbayes.sweeps.jobs import Job, Jobs
from neuralbayes.training.progress import progress

LAUNCHERS = ("SLURM_", "TORCHELASTIC_", "RANK", "GROUP_RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")
"""How variables begin by which a process knows that it is one of several that train together."""


def n_workers(asked: int | None) -> int:
    """As many workers as were asked for, or one a core."""
    cores = n_cores()
    if asked is not None and not 1 <= asked <= cores:
        raise ValueError(f"--workers must be from 1 to the number of cores, {cores}, got {asked}")
    return cores if asked is None else asked


@contextmanager
def on_its_own() -> Iterator[None]:
    """Let what this process and its workers train inside be trained by one process each, whatever has started it."""
    names = [name for name in os.environ if name.startswith(LAUNCHERS)]
    hidden = {name: os.environ.pop(name) for name in names}
    try:
        yield
    finally:
        os.environ.update(hidden)


def work(
    jobs: Jobs,
    command: Sequence[str],
    order: Callable[[Job], dict[str, Any]],
    *,
    workers: int,
    what: str,
    metrics: Callable[[], Mapping[str, float]] = dict,
    verbose: bool,
) -> None:
    """Let workers do all jobs, and wait for those that others do.

    Parameters
    ----------
    jobs : Jobs
    command : sequence of str
        Starts a worker, which is to call :func:`neuralbayes.sweeps.worker.serve`.
    order : callable
        What to tell a worker of a job, as JSON can hold it.
    workers : int
        Processes; each gets as many threads as there are cores for it.
    what : str
        What a job is called, such as "run".
    metrics : callable
        Numbers to show beside the progress.
    verbose : bool
        Show how many jobs are done, how long the others will take, and what happens to workers.
    """

    def say(message: str) -> None:
        if verbose:
            print(message, file=sys.stderr, flush=True)

    # Not by how many jobs are left: another number of threads rounds differently, and a job may be resumed.
    environment = dict.fromkeys(THREAD_VARIABLES, str(n_threads(workers)))
    waited = False
    with (
        on_its_own(),
        _leaving_on_sigterm(),
        progress(jobs.total, description=f"{what}s", completed=jobs.n_done, enabled=verbose) as display,
        _crew(command, environment, workers) as crew,
    ):
        while not jobs.over:
            while crew.has_room and (job := jobs.take()):
                crew.give(job, order(job))
            if not crew.busy and not waited:
                say(f"waiting for other processes, which are at the last {what}s")
                waited = True
            for job, answer in crew.answers(jobs.interval):
                if answer is None:
                    how = f"a worker died with exit code {crew.exit_code} in the {what} {job.label!r}"
                    jobs.died(job, f"{how}, perhaps for want of memory")
                    say(f"{how}; there is a new one")
                elif "step" in answer:
                    crew.reply(job, jobs.report(job, answer["step"], answer["value"]))
                elif "error" in answer:
                    jobs.fail(job, answer["error"])
                else:
                    jobs.finish(job, answer["result"])
            jobs.look()
            for job in jobs.lost():
                if crew.stop(job):
                    say(f"the {what} {job.label!r} was not heard of for too long: another process does it now")
            while display.completed < jobs.n_done:
                display.advance(metrics=metrics())


class _Crew:
    """Processes, the job of each that has one, and what waits for an answer."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], size: int, selector: selectors.BaseSelector
    ) -> None:
        self.exit_code: int | None = None
        self.busy: dict[Job, subprocess.Popen[str]] = {}
        self.processes: list[subprocess.Popen[str]] = []
        self._command = command
        self._environment = environment
        self._size = size
        self._selector = selector

    @property
    def has_room(self) -> bool:
        return len(self.busy) < self._size

    def give(self, job: Job, order: dict[str, Any]) -> None:
        """Let a worker that is idle, or a new one, do a job."""
        idle = [process for process in self.processes if process not in self.busy.values()]
        process = self.busy[job] = idle[0] if idle else self._start()
        self._write(process, order)

    def reply(self, job: Job, answer: bool) -> None:
        """Answer the question of the worker at a job."""
        self._write(self.busy[job], answer)

    def answers(self, timeout: float | None) -> Iterator[tuple[Job, dict[str, Any] | None]]:
        """Wait for what workers say: a question, the end of a job, or None where one has died."""
        for ready, _ in self._selector.select(timeout):
            process = ready.data
            job = next((job for job, other in self.busy.items() if other is process), None)
            line = process.stdout.readline()
            if not line:  # killed, most likely for its memory
                self.exit_code = self._bury(process)
            answer = json.loads(line) if line else None
            if job is not None:
                if answer is None or "step" not in answer:
                    del self.busy[job]
                yield job, answer

    def stop(self, job: Job) -> bool:
        """Kill the worker at a job, which is not to touch its folder any more; False where it has ended."""
        process = self.busy.pop(job, None)
        if process is None:
            return False
        process.kill()
        self._bury(process)
        return True

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | dict(self._environment),
            start_new_session=True,  # Ctrl-C in the terminal is ours to pass on
        )
        self.processes.append(process)
        self._selector.register(process.stdout, selectors.EVENT_READ, process)  # type: ignore[arg-type]
        return process

    def _bury(self, process: subprocess.Popen[str]) -> int:
        self.processes.remove(process)
        self._selector.unregister(process.stdout)  # type: ignore[arg-type]
        process.stdout.close()  # type: ignore[union-attr]
        with suppress(BrokenPipeError):
            process.stdin.close()  # type: ignore[union-attr]
        return process.wait()

    @staticmethod
    def _write(process: subprocess.Popen[str], words: Any) -> None:
        with suppress(BrokenPipeError):  # it has died: its answer will not come
            print(json.dumps(words), file=process.stdin, flush=True)


@contextmanager
def _crew(command: Sequence[str], environment: Mapping[str, str], size: int) -> Iterator[_Crew]:
    """Workers that end with the block, whatever ends it."""
    with selectors.DefaultSelector() as selector:
        crew = _Crew(command, environment, size, selector)
        try:
            yield crew
        finally:
            try:
                for process in crew.processes:
                    with suppress(BrokenPipeError):
                        process.stdin.close()  # type: ignore[union-attr]
                for process in crew.processes:
                    process.wait()
                    process.stdout.close()  # type: ignore[union-attr]
            except (KeyboardInterrupt, SystemExit):  # a second one does not wait
                for process in crew.processes:
                    process.kill()
                raise


@contextmanager
def _leaving_on_sigterm() -> Iterator[None]:
    """Make SIGTERM leave the block as Ctrl-C does, by SystemExit(143), where Python lets this thread say so."""

    def leave(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + signum)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    earlier = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, earlier)
