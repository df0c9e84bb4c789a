"""Faults for commands: processes that are killed or cannot write, and damaged inputs."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from neuralbayes.cli import main as command

WRITING = ("fsync", "replace", "after replace", "unlink")
"""Calls at which a process kills itself while it writes: before the call, or after it."""


def start(line: list[str], said: Any, before: Callable[[], None], loaded: Path) -> int:
    """Fork a process that calls `before` and then runs a command; returns its id.

    Its standard error goes to `said`, and the names of the modules that it has imported go to `loaded`.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(said.fileno(), 2)
            before()
            code = command(line)
            sys.stderr.flush()
            loaded.write_text("\n".join(sys.modules), encoding="utf-8")
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else 1
        except KeyboardInterrupt:
            code = 130
        finally:
            os._exit(code)
    return child


def die_while_writing(where: str, count: int) -> None:
    """Make this process kill itself at the `count`-th call of a function that writes."""
    name = where.removeprefix("after ")
    real = getattr(os, name)
    calls = 0

    def deadly(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count and not where.startswith("after"):
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(os, name, deadly)


def write_no_more_than(limit: int) -> None:
    """Limit the files that this process writes to `limit` bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # raises an error instead, like a full disk
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def spoil(data: Path, spoilt: Path, rng: random.Random) -> None:
    """Copy the inputs and damage each copy: truncate it, change bytes, or replace it by another file."""
    shutil.rmtree(spoilt, ignore_errors=True)
    shutil.copytree(data, spoilt)
    files = sorted(spoilt.iterdir())
    for path in files:
        whole = bytearray(path.read_bytes())
        kind = rng.randrange(3)
        if kind == 0:
            whole = whole[: rng.randrange(len(whole))]
        elif kind == 1:
            for _ in range(rng.choice((1, 3, 30))):
                whole[rng.randrange(len(whole))] = rng.randrange(256)
        else:
            whole = bytearray(rng.choice(files).read_bytes())
        path.write_bytes(whole)


def is_whole(path: Path) -> bool:
    """Whether a file is complete. Pages and records with times cannot be checked further."""
    content = path.read_bytes()
    if path.suffix == ".html":
        return content.rstrip().endswith(b"</html>")
    try:
        for document in (
            [content] if path.suffix == ".json" else content.splitlines() if path.suffix == ".jsonl" else []
        ):
            json.loads(document)
    except ValueError:
        return False
    return path.suffix != ".png" or content.endswith(b"IEND\xaeB`\x82")


def load(names: list[str]) -> None:
    """Import modules before forking, so the processes of the commands need not import them."""
    for name in names:
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(name)
