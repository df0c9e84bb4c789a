"""What a worker process does: obey orders, one line of JSON each, until there are no more."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

ORPHAN = 30.0
"""Seconds that a worker has to save and leave when its parent died, whose leases then run out: less than a lease."""

OCCUPIED = 10.0
"""Seconds between two looks whether a folder is still in use."""

Report = Callable[[int, float], bool]
"""Tells how far an order has come, a step and a value, and is told whether to end it."""


Obey = Callable[[dict[str, Any], Report], dict[str, Any]]
"""Does an order and returns its result."""


def serve(obey: Obey) -> None:
    """Take orders from standard input until it ends; answer each with its result, or with what went wrong."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    orders: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()

    def report(step: int, value: float) -> bool:
        print(json.dumps({"step": step, "value": value}), file=answers, flush=True)
        return bool(orders.get())

    while (order := orders.get()) is not None:
        try:
            answer: dict[str, Any] = {"result": _obeyed(obey, order, report)}
        except Exception as problem:
            answer = {"error": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(answer), file=answers, flush=True)


def _obeyed(obey: Obey, order: dict[str, Any], report: Report) -> dict[str, Any]:
    """The result of an order, when no other process is at its folder any more.

    That is one whose lease has run out, and which has not noticed yet.
    """
    told = False
    while True:
        try:
            return obey(order, report)
        except BlockingIOError as problem:
            if not told:
                print(f"waiting: {problem}", file=sys.stderr, flush=True)
            told = True
            time.sleep(OCCUPIED)


def _listen(orders: queue.SimpleQueue[Any]) -> None:
    parent = os.getppid()
    for line in sys.stdin:
        orders.put(json.loads(line))
    os.kill(os.getpid(), signal.SIGTERM)  # training takes it as a wish to save and leave
    orders.put(None)  # nobody answers a report any more
    time.sleep(ORPHAN)
    if os.getppid() != parent:  # else it waits for us, however long a step takes
        os._exit(1)
