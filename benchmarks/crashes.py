"""Kill a training process repeatedly, and check that the result is the same as without interruption.

`neuralbayes.training.train` trains a small network with dropout, batch normalisation and a running p(z), and writes a
checkpoint every other step. SIGKILL kills the process, half of the time at a random moment and half of the time while
it writes: before bytes reach the disk, before a file gets its name, or right after. Each time, the run continues in a
new process. At the end, weights and metrics.jsonl are compared byte for byte with an uninterrupted run.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import lightning_fabric  # noqa: F401  imported before forking, so the children need not import it
import numpy as np
import torch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.system.files import write_json
from neuralbayes.training import Batches, StopOnNaN, cosine, load_checkpoint, train

N_SAMPLES, BATCH, STEPS_A_KILL = 200, 32, 12
WRITING = ("fsync", "replace", "after replace", "unlink")
"""Calls at which a process kills itself while it writes: before the call, or after it."""


def training(folder: Path, n_steps: int) -> None:
    """Train in `folder`; continues an interrupted run."""
    torch.set_num_threads(1)
    for seed in (torch.manual_seed, np.random.seed, random.seed):
        seed(0)
    x = torch.randn(N_SAMPLES, 6)
    layers = [nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 4)]
    network = nn.Sequential(*layers)
    objective = nb.MIM()

    def step(network: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        smoothness = nb.Smoothness(0.1, of="logits")
        return {"loss": nb.backward(objective, network, batch, marginal="running", smoothness=smoothness)}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # about a damaged checkpoint, whose effect is compared
        train(
            network,
            step,
            Batches(N_SAMPLES, BATCH),
            fetch=lambda indices: x[indices] + 0.01 * torch.randn(len(indices), 6),
            optimizer=torch.optim.Adam(network.parameters(), lr=0.01),
            schedule=cosine(),
            max_steps=n_steps,
            callbacks=[StopOnNaN()],
            stateful={"objective": objective},
            run_dir=folder,
            log_every=3,
            checkpoint_every=2,
        )


def forked(work: Callable[[], None]) -> int:
    """Fork a process that calls `work`, and return its id. torch is already imported, so it starts at once."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def killed_while_writing(where: str, count: int, folder: Path, n_steps: int) -> None:
    """Train, and kill the process at the `count`-th call of a function that writes."""
    name = where.removeprefix("after ")
    real, calls = getattr(os, name), itertools.count(1)

    def deadly(*arguments: Any, **options: Any) -> Any:
        last = next(calls) == count
        if last and not where.startswith("after"):
            os.kill(os.getpid(), signal.SIGKILL)
        result = real(*arguments, **options)
        if last:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    setattr(os, name, deadly)
    training(folder, n_steps)


def digests(run: Path) -> tuple[str, str]:
    """Digests of the weights of the last checkpoint and of the metrics."""
    weights = (load_checkpoint(run) or {})["network"]
    content = b"".join(tensor.numpy().tobytes() for tensor in weights.values())
    return hashlib.sha256(content).hexdigest(), hashlib.sha256((run / "metrics.jsonl").read_bytes()).hexdigest()


def crash(n_kills: int, folder: Path, seed: int = 0) -> dict[str, Any]:
    """Kill a run `n_kills` times and compare it with an uninterrupted run."""
    rng, n_steps = random.Random(seed), STEPS_A_KILL * n_kills
    unbroken, broken = folder / "unbroken", folder / "broken"
    start = time.perf_counter()
    assert os.waitpid(forked(lambda: training(unbroken, n_steps)), 0)[1] == 0
    duration = time.perf_counter() - start
    kills: Counter[str] = Counter()
    ends: list[tuple[str, str]] = []
    left: list[str] = []
    finished = False
    while not (finished and kills.total() == n_kills):
        where = rng.choice(WRITING) if kills.total() % 2 else "at random"
        if kills.total() == n_kills:
            child = forked(lambda: training(broken, n_steps))
        elif where == "at random":
            child = forked(lambda: training(broken, n_steps))
            time.sleep(rng.uniform(0.0, 2.0 * duration / n_kills))
            os.kill(child, signal.SIGKILL)
        else:
            child = forked(partial(killed_while_writing, where, rng.randint(1, 12), broken, n_steps))
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        finished = status == 0
        if status == -signal.SIGKILL:
            kills[where] += 1
        elif status:
            raise RuntimeError("a run could not continue after it was killed")
        else:  # if there are kills left, start another run
            ends.append(digests(broken))
            left.extend(path.name for path in broken.rglob("*") if ".tmp" in path.name)
            shutil.rmtree(broken)
    weights, metrics = digests(unbroken)
    return {
        "kills": n_kills,
        "where": dict(sorted(kills.items())),
        "runs": len(ends),
        "steps": n_steps,
        "same_weights": {end[0] for end in ends} == {weights},
        "same_metrics": {end[1] for end in ends} == {metrics},
        "left_behind": sorted(left),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = crash(arguments.kills, Path(folder))
    print(*(f"{name}: {value}" for name, value in found.items()), sep="\n")
    if arguments.record is not None:
        write_json(arguments.record, {"command": "python benchmarks/crashes.py"} | found)
    sys.exit(not (found["same_weights"] and found["same_metrics"]) or bool(found["left_behind"]))


if __name__ == "__main__":
    main()
