"""Compare one training step of MIM on the paper's encoder with a literal step for the same objective.

The literal step follows the equations and the authors' code. It has one forward pass for the objective and two for R_c,
on the clean and on the perturbed images, with two backward passes. Softmax, logarithm and mean are separate operations
on contiguous tensors. Our step shares the clean pass, evaluates the objective in pieces that stay in the cache, and
uses the memory format `channels_last`. With recomputation, it also computes posteriors and small results of the
perturbed pass again in the backward pass. Speed is that of the fastest step of two rounds, in which the kinds
alternate, and the peak of the convolutions is the best of several measurements: other programs on the machine can only
slow both down. Memory is the additional peak of one step, with freed blocks returned to the system at once. `--full`
adds the paper's width at a larger mini-batch, and `--record FILE` saves the numbers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import torch
from paper.reference import R_c, mim
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, scaled_channels
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.system.files import write_json

ALPHA, BETA = 2.0, 4.0
STATES = ("relu1", "relu2", "relu3", "relu4")


def literal_step(states: HiddenStates, x: Tensor) -> Tensor:
    """Follow paper/reference.py; adds the gradients to the parameters and returns the loss."""
    loss = mim(list(states(x).values()), ALPHA)
    loss.backward()  # type: ignore[no-untyped-call]
    smoothness = BETA * R_c(lambda x: list(states(x).values())[-1], x)
    smoothness.backward()  # type: ignore[no-untyped-call]
    return loss.detach() + smoothness.detach()


def our_step(states: HiddenStates, x: Tensor, fraction: float, recompute: bool = False) -> Tensor:
    """Compute the same objective with the library."""
    smoothness = nb.Smoothness(BETA, fraction=fraction)
    return nb.backward(nb.MIM(ALPHA), states, x, marginal="minibatch", smoothness=smoothness, recompute=recompute)


KINDS: dict[str, tuple[float, bool]] = {
    "ours": (1.0, False),
    "ours, recomputed": (1.0, True),
    "R_c on 1/4": (0.25, False),
    "R_c on 1/4, recomputed": (0.25, True),
}
"""Share of the images with R_c, and whether to recompute."""


def measure(kind: str, width: float, batch: int, seconds: float) -> dict[str, float]:
    """Measure images per second in the fastest of some steps, and the additional peak memory in megabytes."""
    torch.set_num_threads(2)
    torch.manual_seed(0)
    states = HiddenStates(convolutional_encoder(scaled_channels(PAPER_CHANNELS, width)), STATES)
    x = torch.randn(batch, 3, 32, 32)
    if kind != "literal":
        states.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = x.contiguous(memory_format=torch.channels_last)

    def step(x: Tensor) -> None:
        if kind == "literal":
            literal_step(states, x)
        else:
            our_step(states, x, *KINDS[kind])

    step(x[:8])  # do not measure start-up costs
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    durations: list[float] = []
    while not durations or (len(durations) < 20 and time.perf_counter() - start < seconds):
        states.zero_grad()
        begin = time.perf_counter()
        step(x)
        durations.append(time.perf_counter() - begin)
    duration = min(durations)
    megabytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {
        "images_per_second": batch / duration,
        "megabytes": megabytes,
        "gflops": flops(width) * batch / duration / 1e9,
    }


def compare(width: float, batch: int) -> dict[str, dict[str, float]]:
    """Measure speed and memory of each kind in its own process, because a peak never decreases."""
    found: dict[str, dict[str, float]] = {}
    returned = {"MALLOC_MMAP_THRESHOLD_": "65536"}
    for environment, seconds in ((returned, 0.0), ({}, 8.0), ({}, 8.0)):
        for kind in ("literal", *KINDS):
            command = [sys.executable, __file__, "--one", kind, str(width), str(batch), str(seconds)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | environment)
            cost = json.loads(done.stdout)
            if environment:
                found[kind] = {"megabytes": cost["megabytes"], "images_per_second": 0.0}
            elif cost["images_per_second"] > found[kind]["images_per_second"]:
                found[kind] |= {k: cost[k] for k in ("images_per_second", "gflops")}
    return found


def flops(width: float) -> float:
    """Floating-point operations of the convolutions of one image, clean and perturbed, forward and backward."""
    channels = (3, *scaled_channels(PAPER_CHANNELS, width))
    sizes = (30, 13, 11, 3)
    forward = sum(2 * 9 * a * b * s * s for a, b, s in zip(channels, channels[1:], sizes, strict=False))
    return 2 * 3 * forward


def convolution_peak() -> float:
    """GFLOPS of the forward pass of a large convolution, as the peak of this machine."""
    torch.set_num_threads(2)
    layer = nn.Conv2d(512, 512, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(32, 512, 14, 14).contiguous(memory_format=torch.channels_last)
    best = 0.0
    with torch.no_grad():
        for _ in range(5):
            start = time.perf_counter()
            layer(x)
            best = max(best, 2 * 9 * 512 * 512 * 12 * 12 * 32 / (time.perf_counter() - start) / 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--one", nargs=4, metavar=("KIND", "WIDTH", "BATCH", "SECONDS"), help="measure one setting and print JSON"
    )
    parser.add_argument("--full", action="store_true", help="also measure the paper's width at larger mini-batches")
    parser.add_argument("--record", type=Path, metavar="FILE", help="write the numbers to this JSON file")
    arguments = parser.parse_args()
    if arguments.one:
        kind, width, batch, seconds = arguments.one
        print(json.dumps(measure(kind, float(width), int(batch), float(seconds))))
        return
    settings = [(0.25, 100), (0.5, 50), (1.0, 64)] + ([(1.0, 250)] if arguments.full else [])
    found = []
    peak = 0.0
    for width, batch in settings:
        peak = max(peak, convolution_peak())
        found.append((width, batch, compare(width, batch)))
    peak = max(peak, convolution_peak())
    table = Table(title=f"A step of MIM with R_c; this machine's convolutions reach {peak:.0f} GFLOPS")
    for column in ("width", "batch", "step", "images/s", "speed", "memory", "of literal", "of peak"):
        table.add_column(column, justify="right", no_wrap=True)
    records = []
    for width, batch, costs in found:
        literal = costs["literal"]
        for kind, cost in costs.items():
            # `flops` counts the operations of the full step; the literal step needs 1.5 times as many.
            used = "" if "1/4" in kind else f"{cost['gflops'] / peak * (1.5 if kind == 'literal' else 1.0):.0%}"
            speed = cost["images_per_second"] / literal["images_per_second"]
            memory = cost["megabytes"] / literal["megabytes"]
            table.add_row(
                f"{width:g}",
                str(batch),
                kind,
                f"{cost['images_per_second']:.1f}",
                f"{speed:.2f}x",
                f"{cost['megabytes']:.0f} MB",
                f"{memory:.0%}",
                used,
            )
            settings_of = {"width": width, "batch": batch, "step": kind}
            records.append(settings_of | {"speed": speed, "memory": memory} | cost)
    Console().print(table)
    if arguments.record:
        command = f"python benchmarks/step.py{' --full' if arguments.full else ''} --record {arguments.record}"
        rounded = [{k: round(v, 3) if isinstance(v, float) else v for k, v in record.items()} for record in records]
        write_json(arguments.record, {"command": command, "convolution_gflops": round(peak, 1), "steps": rounded})


if __name__ == "__main__":
    main()
