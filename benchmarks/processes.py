"""Compare a step of MIM in one process and in two that share its batch.

One process uses both cores, and two processes use one core each. The arithmetic is the same, so the difference is the
cost of messages and of waiting for each other. The two settings alternate, and each ratio compares runs next to each
other in time. Messages and bytes are counted when they are sent. `--record FILE` saves the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import torch
import torch.distributed as dist
from records import parser
from torch import Tensor

import neuralbayes as nb
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, scaled_channels
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.system.files import write_json

STATES = ("relu1", "relu2", "relu3", "relu4")
CASES = {"a quarter of the width": (0.25, 100), "the paper's width": (1.0, 64)}
"""Width of the encoder, and number of images in a batch."""
ROUNDS, STEPS = 5, 2


def worker(width: float, batch: int) -> dict[str, float]:
    """Measure a step in a process of `start`: its seconds, and the messages and bytes that the process sends."""
    size = int(os.environ.get("WORLD_SIZE", 1))
    torch.set_num_threads(2 // size)
    if size > 1:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    states = HiddenStates(convolutional_encoder(scaled_channels(PAPER_CHANNELS, width)), STATES)
    states.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(batch, 3, 32, 32)[int(os.environ.get("RANK", 0)) :: size]
    x = x.contiguous(memory_format=torch.channels_last)
    sent: list[int] = []
    all_reduce = dist.all_reduce

    def counted(tensor: Tensor, *arguments: Any, **options: Any) -> Any:
        sent.append(tensor.nbytes)
        return all_reduce(tensor, *arguments, **options)

    dist.all_reduce = counted

    def step() -> None:
        states.zero_grad()
        sent.clear()
        nb.backward(nb.MIM(), states, x, marginal="minibatch", smoothness=nb.Smoothness(1.0))

    step()
    start = time.perf_counter()
    for _ in range(STEPS):
        step()
    found = {"seconds": (time.perf_counter() - start) / STEPS, "messages": len(sent), "bytes": sum(sent)}
    if size > 1:
        dist.barrier()
        dist.destroy_process_group()
    return found


def start(size: int, width: float, batch: int) -> dict[str, float]:
    """Run `worker` in one process, or in several with torchrun, and return its result."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"] if size > 1 else []
    command = [sys.executable, *launcher, __file__, "--one", str(width), str(batch)]
    environment = os.environ | {"OMP_NUM_THREADS": str(2 // size)}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(width: float, batch: int) -> dict[str, float]:
    """Compare one process with two, alternating between them."""
    rounds = [(start(1, width, batch), start(2, width, batch)) for _ in range(ROUNDS)]
    ratios = sorted(two["seconds"] / one["seconds"] for one, two in rounds)
    return {
        "batch": batch,
        "seconds_one": min(one["seconds"] for one, _ in rounds),
        "seconds_two": min(two["seconds"] for _, two in rounds),
        "ratio": statistics.median(ratios),
        "ratio_low": ratios[0],
        "ratio_high": ratios[-1],
        "messages": rounds[0][1]["messages"],
        "bytes": rounds[0][1]["bytes"],
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--one", nargs=2, type=float, metavar=("WIDTH", "BATCH"), help=argparse.SUPPRESS)
    arguments.add_argument("--only", nargs="+", default=CASES, choices=CASES, metavar="CASE")
    arguments.add_argument("--record", type=Path)
    given = arguments.parse_args()
    if given.one is not None:
        found = worker(given.one[0], int(given.one[1]))
        if int(os.environ.get("RANK", 0)) == 0:
            print(json.dumps(found))
        return
    measured = {name: measure(*CASES[name]) for name in given.only}
    print(pd.DataFrame(measured).T.to_string(float_format="{:.3g}".format))
    if given.record is not None:
        command = "python benchmarks/processes.py --record results/processes.json"
        write_json(given.record, {"command": command, "torch": torch.__version__, "measured": measured})


if __name__ == "__main__":
    main()
