"""Compare a step of MIM in one process and in two that share its batch, and model the cost of many GPUs.

One process uses both cores, and two processes use one core each. The arithmetic is the same, so the difference is the
cost of messages and of waiting for each other. The two settings alternate, and each ratio compares runs next to each
other in time. Messages and bytes are counted when they are sent, and compared with the formula of the model. `--record
FILE` saves the numbers, from which benchmarks/tables.py makes the tables of docs/scaling.md.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from rich.console import Console
from rich.table import Table
from torch import Tensor

import neuralbayes as nb
from neuralbayes.distributed import BUCKET_BYTES
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, scaled_channels
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.system.files import write_json

STATES = ("relu1", "relu2", "relu3", "relu4")
CASES = {"a quarter of the width": (0.25, 100), "the paper's width": (1.0, 64)}
"""Width of the encoder, and number of images in a batch."""
ROUNDS, STEPS = 5, 2

GPU_FLOPS = 6e13
GPU_LINK, NODE_LINK = 2.0e11, 2.5e10
LATENCY = 2e-5
GPUS_PER_NODE = 8
"""Assumptions of the model: achieved operations per second of a GPU, bytes per second between the GPUs of a node and
between nodes (for each GPU), seconds per message for each doubling of the GPUs, and GPUs per node."""
IMAGES_PER_GPU = 500
DATA_SET = 1e9


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
        "reckoned": sum(traffic(width).values()),
    }


def traffic(width: float) -> dict[str, int]:
    """Bytes that a process contributes to sums in one step with one micro-batch, by purpose."""
    channels = scaled_channels(PAPER_CHANNELS, width)
    network = convolutional_encoder(channels)
    with torch.no_grad():
        outputs = HiddenStates(network, STATES)(torch.zeros(2, 3, 32, 32))
    passes = 2  # clean and perturbed
    return {
        "gradient": 4 * sum(p.numel() for p in network.parameters()),
        "p(z)": 4 * sum(h[0].numel() for h in outputs.values()),
        # Forward: sums, sums of squares and their count in double. Backward: gradients of mean and variance.
        "batch statistics": passes * sum(8 * (2 * c + 1) + 4 * 2 * c for c in channels),
        "sizes and loss": 8 + 3 * 4,
    }


def n_messages(gradient: int) -> int:
    """Number of sums in a step with one micro-batch.

    They are sizes, weights and loss, p(z), batch statistics forward and backward, and the gradient.
    """
    return 4 + 1 + 2 * 2 * len(PAPER_CHANNELS) + math.ceil(gradient / BUCKET_BYTES)


def model(n_gpus: int) -> dict[str, float]:
    """Model a step of the paper's encoder with `IMAGES_PER_GPU` images per GPU, and an epoch of `DATA_SET` images."""
    compute = IMAGES_PER_GPU * flops() / GPU_FLOPS
    size = traffic(1.0)
    link = GPU_LINK if n_gpus <= GPUS_PER_NODE else NODE_LINK
    messages = n_messages(size["gradient"])
    # A ring all-reduce sends everything twice, except the share of the GPU itself. Latency grows with each doubling.
    sent = 2 * (n_gpus - 1) / n_gpus * sum(size.values()) / link
    waited = messages * LATENCY * math.log2(n_gpus) if n_gpus > 1 else 0.0
    step = compute + sent + waited
    return {
        "gpus": n_gpus,
        "milliseconds": 1000 * step,
        "communication": (sent + waited) / step,
        "images_per_second": n_gpus * IMAGES_PER_GPU / step,
        "hours_per_billion": DATA_SET / (n_gpus * IMAGES_PER_GPU) * step / 3600,
    }


def flops() -> float:
    """Floating-point operations of the paper's convolutions per image: clean and perturbed, forward and backward."""
    channels = (3, *PAPER_CHANNELS)
    sizes = (30, 13, 11, 3)
    return 6 * sum(2 * 9 * a * b * s * s for a, b, s in zip(channels, channels[1:], sizes, strict=False))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=2, type=float, metavar=("WIDTH", "BATCH"), help=argparse.SUPPRESS)
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    if arguments.one is not None:
        found = worker(arguments.one[0], int(arguments.one[1]))
        if int(os.environ.get("RANK", 0)) == 0:
            print(json.dumps(found))
        return
    table = Table(title="A step of MIM with R_c: two processes against one")
    for heading in ("encoder", "batch", "one", "two", "ratio", "sent by each", "messages"):
        table.add_column(heading, justify="left" if heading == "encoder" else "right")
    measured = {}
    for name, (width, batch) in CASES.items():
        found = measured[name] = measure(width, batch)
        table.add_row(
            name,
            str(batch),
            f"{1000 * found['seconds_one']:.0f} ms",
            f"{1000 * found['seconds_two']:.0f} ms",
            f"{found['ratio']:.2f} ({found['ratio_low']:.2f} to {found['ratio_high']:.2f})",
            f"{found['bytes'] / 1e6:.2f} MB",
            str(found["messages"]),
        )
    Console().print(table)
    if arguments.record is not None:
        assumed = {
            "gpu_flops": GPU_FLOPS,
            "gpu_link": GPU_LINK,
            "node_link": NODE_LINK,
            "latency": LATENCY,
            "gpus_per_node": GPUS_PER_NODE,
            "images_per_gpu": IMAGES_PER_GPU,
            "flops_per_image": flops(),
        }
        result = {
            "command": "python benchmarks/processes.py --record results/processes.json",
            "torch": torch.__version__,
            "measured": measured,
            "traffic": traffic(1.0),
            "assumed": assumed,
            "model_messages": n_messages(traffic(1.0)["gradient"]),
            "model": [model(n) for n in (1, 8, 64, 256, 1024)],
        }
        write_json(arguments.record, result)


if __name__ == "__main__":
    main()
