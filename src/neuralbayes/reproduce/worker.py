"""A worker of :func:`neuralbayes.reproduce.sweep.sweep`: does the runs that it is told of, one line of JSON each."""

from __future__ import annotations

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from neuralbayes.reproduce import load_experiment
from neuralbayes.reproduce.experiment import perform


def main() -> None:
    """Take orders from standard input until it ends; answer each with null, or with what went wrong."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    orders: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(orders,), daemon=True).start()
    while True:
        order = orders.get()
        try:
            _obey(order)
            error = None
        except Exception as problem:
            error = f"{type(problem).__name__}: {problem}"
        print(json.dumps(error), file=answers, flush=True)


def _obey(order: dict[str, Any]) -> None:
    runs = load_experiment(order["experiment"]).runs(order["scale"], order["seeds"])
    run = next(run for run in runs if run.key == order["run"])
    perform(load_experiment(run.experiment), run, Path(order["out"]))


def _listen(orders: queue.SimpleQueue[dict[str, Any]]) -> None:
    for line in sys.stdin:
        orders.put(json.loads(line))
    os.kill(os.getpid(), signal.SIGTERM)  # training takes it as a wish to save and leave


if __name__ == "__main__":
    main()
