"""Exact gradients in micro-batches against the whole batch at once: time and peak memory, in one run.

Prints, for MIM on the hidden states of a convolutional encoder and for DML on its last one, the peak memory that each
micro-batch size takes as a share of the whole batch's, and its time as a ratio. Each setting runs in a process of its
own, since the peak of a process never comes down.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import pairwise

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import neuralbayes as nb

BATCH = 256
WIDTHS = (32, 64, 96, 128)


class Encoder(nn.Module):
    """C-P-C-C-P-C with 3x3 convolutions, the paper's encoder at a sixth of its width; returns its hidden states."""

    def __init__(self) -> None:
        super().__init__()
        channels = (3, *WIDTHS)
        self.layers = nn.ModuleList(nn.Conv2d(a, b, 3) for a, b in pairwise(channels))

    def forward(self, x: Tensor) -> list[Tensor]:
        states = []
        for i, layer in enumerate(self.layers):
            x = torch.relu(layer(x))
            states.append(x)
            if i in (0, 2):
                x = nn.functional.max_pool2d(x, 2)
        return states


class LastPooled(Encoder):
    """The last hidden state averaged over its positions: one vector of logits an image."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [super().forward(x)[-1].mean(dim=(2, 3))]


def measure(objective: str, microbatch_size: int) -> dict[str, float]:
    """Seconds a step and megabytes above what the process held before it."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    network = Encoder() if objective == "MIM" else LastPooled()
    loss = nb.MIM() if objective == "MIM" else nb.DML()
    batch = torch.randn(BATCH, 3, 32, 32)
    nb.backward(loss, network, batch[:2])  # start-up costs are not the step's
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    for _ in range(2):
        nb.backward(loss, network, batch, microbatch_size=microbatch_size)
    seconds = (time.perf_counter() - start) / 2
    return {"seconds": seconds, "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--one", nargs=2, metavar=("OBJECTIVE", "MICROBATCH"), help="measure one setting, print JSON")
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    table = Table(title=f"Exact gradient of a batch of {BATCH}, widths {WIDTHS}")
    for column in ("objective", "micro-batch", "peak memory", "of whole batch", "time / whole batch"):
        table.add_column(column, justify="right")
    for objective in ("MIM", "DML"):
        whole: dict[str, float] = {}
        for size in (BATCH, BATCH // 2, BATCH // 8, BATCH // 32):
            command = [sys.executable, __file__, "--one", objective, str(size)]
            output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            cost = json.loads(output)
            whole = whole or cost
            memory = cost["megabytes"] / whole["megabytes"]
            ratio = cost["seconds"] / whole["seconds"]
            table.add_row(objective, str(size), f"{cost['megabytes']:.0f} MB", f"{memory:.2f}", f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
