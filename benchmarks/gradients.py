"""Compare exact gradients in micro-batches with the whole batch at once: time and peak memory.

It measures MIM on the hidden states of a convolutional encoder, and DML on its last hidden state. For each micro-batch
size, it prints the peak memory and the time, both relative to the whole batch. Each setting runs in its own process,
because the peak memory of a process never decreases.
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
    """The same encoder, but it returns the mean of the last hidden state over positions: logits of each image."""

    def forward(self, x: Tensor) -> list[Tensor]:
        return [super().forward(x)[-1].mean(dim=(2, 3))]


def measure(objective: str, microbatch_size: int) -> dict[str, float]:
    """Measure the seconds per step, and the additional peak memory in megabytes."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    network = Encoder() if objective == "MIM" else LastPooled()
    loss = nb.MIM() if objective == "MIM" else nb.DML()
    batch = torch.randn(BATCH, 3, 32, 32)
    nb.backward(loss, network, batch[:2])  # do not measure start-up costs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    for _ in range(2):
        nb.backward(loss, network, batch, microbatch_size=microbatch_size)
    seconds = (time.perf_counter() - start) / 2
    return {"seconds": seconds, "megabytes": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--one", nargs=2, metavar=("OBJECTIVE", "MICROBATCH"), help="measure one setting and print JSON"
    )
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
