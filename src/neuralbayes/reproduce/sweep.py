"""Many runs over several processes: each worker is a process of its own with its share of the cores.

A worker reads orders from its standard input and answers on its standard output. When its input ends, because this
process is done, was interrupted or died, it saves what it is training and leaves: there is one way to stop, and none
that leaves a worker behind.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from neuralbayes.reproduce.experiment import Run, Scale
from neuralbayes.training.progress import progress

Job = tuple[str, Run]
"""The experiment that asks for a run, and the run."""

WORKER = [sys.executable, "-W", "ignore", "-m", "neuralbayes.reproduce.worker"]
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def n_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(workers: int) -> int:
    """Threads of each of so many workers: a share of the cores, and no more than OMP_NUM_THREADS where it is set."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    share = max(1, n_cores() // workers)
    return min(share, int(given)) if given.isdecimal() and int(given) > 0 else share


def sweep(
    jobs: Sequence[Job], out: Path, *, scale: Scale, seeds: int | None, workers: int, verbose: bool
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

    Returns
    -------
    dict of str to str
        What went wrong, by the label of the run.
    """
    waiting = [job for job in jobs if not job[1].finished(out)]
    failed: dict[str, str] = {}
    if not waiting:
        return failed
    # Not by how many runs are left: another number of threads rounds differently, and a run may be resumed.
    environment = dict.fromkeys(THREAD_VARIABLES, str(n_threads(workers)))
    done = len(jobs) - len(waiting)
    with (
        progress(len(jobs), description="runs", completed=done, enabled=verbose) as display,
        _workers(min(workers, len(waiting)), environment) as (crew, selector),
    ):
        busy: dict[int, Job] = {}

        def order(process: subprocess.Popen[str]) -> None:
            name, run = busy[process.pid] = waiting.pop(0)
            words = {"experiment": name, "scale": scale, "seeds": seeds, "run": run.key, "out": str(out.absolute())}
            with suppress(BrokenPipeError):  # it has died: its answer will not come
                print(json.dumps(words), file=process.stdin, flush=True)

        for process in crew:
            order(process)
        while busy:
            for ready, _ in selector.select():
                process = ready.data
                answer = process.stdout.readline()
                _, run = busy.pop(process.pid)
                if not answer:  # killed, most likely for its memory
                    raise ChildProcessError(
                        f"a worker died with exit code {process.wait()} in the run {run.label!r}, perhaps for want of "
                        "memory; the same command goes on, with fewer --workers in less memory"
                    )
                if error := json.loads(answer):
                    failed[f"{run.experiment} {run.label}"] = error
                display.advance()
                if waiting:
                    order(process)
    return failed


@contextmanager
def _workers(
    n: int, environment: dict[str, str]
) -> Iterator[tuple[list[subprocess.Popen[str]], selectors.BaseSelector]]:
    """`n` worker processes, and what waits for an answer of one; they end with the block, whatever ends it."""
    crew: list[subprocess.Popen[str]] = []
    with selectors.DefaultSelector() as selector:
        try:
            for _ in range(n):
                process = subprocess.Popen(
                    WORKER,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=os.environ | environment,
                    start_new_session=True,  # Ctrl-C in the terminal is ours to pass on
                )
                crew.append(process)
                selector.register(process.stdout, selectors.EVENT_READ, process)  # type: ignore[arg-type]
            yield crew, selector
        finally:
            try:
                for process in crew:
                    with suppress(BrokenPipeError):
                        process.stdin.close()  # type: ignore[union-attr]
                for process in crew:
                    process.wait()
                    process.stdout.close()  # type: ignore[union-attr]
            except KeyboardInterrupt:  # a second one does not wait
                for process in crew:
                    process.kill()
                raise
