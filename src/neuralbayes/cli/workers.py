"""The same command in several processes of this machine, which share its work: ``--workers``.

A worker finds its share in the environment, as it would under torchrun. Its standard input ends when this process is
done, was interrupted or died; then it leaves.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

from rich.console import Console
from rich.text import Text

from neuralbayes.cli import main
from neuralbayes.distributed.launch import THREAD_VARIABLES, Share, n_cores, n_threads

WORKER = [sys.executable, "-m", "neuralbayes.cli.workers"]
POLL = 0.05
GRACE = 10.0
"""Seconds that a worker has to leave."""

Option = str | int | Path | bool | None


def check_workers(workers: int, share: Share) -> None:
    """Raise unless so many workers can be started here."""
    if not 1 <= workers <= n_cores():
        raise ValueError(f"--workers must be from 1 to the number of cores, {n_cores()}, got {workers}")
    if workers > 1 and share.world > 1:
        raise ValueError(
            f"--workers starts processes, but this is one of {share.world} that a launcher has started; leave it out"
        )


def command_words(command: str, *arguments: str | Path, **options: Option) -> list[str]:
    """A command line without the options that were not given.

    Examples
    --------
    >>> command_words("embed", "run", "cifar10", out="f.npy", limit=None, no_picture=True)
    ['embed', 'run', 'cifar10', '--out=f.npy', '--no-picture']
    """
    given = {f"--{name.replace('_', '-')}": value for name, value in options.items() if value is not None}
    flags = [option if value is True else f"{option}={value}" for option, value in given.items() if value is not False]
    return [command, *map(str, arguments), *flags]


def lead(words: list[str], workers: int) -> None:
    """Let `workers` processes run the command `words`, each its share of it, and wait for them.

    Raises
    ------
    ChildProcessError
        When one of them is killed. The others are ended.
    SystemExit
        When one of them fails, which has said why.
    """
    crew: list[subprocess.Popen[bytes]] = []
    threads = dict.fromkeys(THREAD_VARIABLES, str(n_threads(workers)))
    try:
        for rank in range(workers):
            share = {"RANK": str(rank), "WORLD_SIZE": str(workers)}
            crew.append(
                subprocess.Popen(
                    [*WORKER, *words],
                    stdin=subprocess.PIPE,
                    env=os.environ | threads | share,
                    start_new_session=True,  # Ctrl-C in the terminal is ours to pass on
                )
            )
        codes = [process.poll() for process in crew]
        while codes[0] is None and not any(codes):  # process 0 ends last
            time.sleep(POLL)
            codes = [process.poll() for process in crew]
    finally:
        _dismiss(crew)
    if codes[0] == 0:  # it answers for the whole
        return
    for rank, code in enumerate(codes):
        if code is not None and code < 0:
            raise ChildProcessError(
                f"worker {rank} was ended by {signal.Signals(-code).name}, perhaps for want of memory; what is "
                "finished is kept, and the same command goes on with it, with any number of --workers"
            )
    raise SystemExit(next(code for code in codes if code))


@contextmanager
def resumable(folder: Path, *, quiet: bool) -> Iterator[None]:
    """Say, when Ctrl-C ends the block, that the parts in `folder` are kept."""
    try:
        yield
    except KeyboardInterrupt:
        if folder.is_dir() and not quiet:
            text = f"finished parts are kept in {folder}; the same command goes on with them"
            Console(stderr=True, highlight=False).print(Text(text), soft_wrap=True)
        raise


def _dismiss(crew: list[subprocess.Popen[bytes]]) -> None:
    """End all workers: their input ends, and who does not leave is killed."""
    limit = time.monotonic() + GRACE
    try:
        for process in crew:
            with suppress(BrokenPipeError):
                process.stdin.close()  # type: ignore[union-attr]
        for process in crew:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, limit - time.monotonic()))
    finally:
        for process in crew:
            process.kill()  # nothing happens to one that has ended
            process.wait()


def work() -> int:
    """Be a worker: run the command of this process's command line, and leave when the input ends."""
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_follow, daemon=True).start()
    return main()


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)  # what is half written gets deleted


def _follow() -> None:
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(work())
