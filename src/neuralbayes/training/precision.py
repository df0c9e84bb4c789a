"""Use bfloat16 if it works and is faster. It is probed in a subprocess, because it crashes on processors without it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

Precision = Literal["float32", "bfloat16"]

FASTER = 1.1
"""Minimum speedup over float32 for choosing bfloat16; smaller differences are noise."""

PATIENCE = 120.0  # seconds for the subprocess, mostly for importing torch on a busy machine
ROUNDING = 0.05  # maximum error of a product in bfloat16, relative to the largest exact value


class InBfloat16(nn.Module):
    """A network whose matrix products and convolutions run in bfloat16 and whose outputs are float32.

    Autocast ends with the network, so the objective keeps its precision: products in bfloat16 lose a prior of 1/1000.

    Parameters
    ----------
    network : nn.Module
        Returns a tensor, or containers of tensors.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Any:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            outputs = self.network(x)
        return tree_map(lambda output: output.float(), outputs)


@dataclass(frozen=True)
class Trial:
    """Result of the bfloat16 probe.

    Attributes
    ----------
    speedup : float or None
        Speedup over float32; None if bfloat16 does not work.
    problem : str
        Why it does not work.
    """

    speedup: float | None
    problem: str = ""


def choose_precision(wanted: Literal["float32", "bfloat16", "auto"]) -> Precision:
    """The precision for this machine: the requested one or, with "auto", bfloat16 if it works and is faster.

    Raises
    ------
    ValueError
        If bfloat16 is requested and does not work.
    """
    if wanted == "float32":
        return "float32"
    trial = try_bfloat16()
    if wanted == "auto":
        return "bfloat16" if trial.speedup is not None and trial.speedup >= FASTER else "float32"
    if trial.speedup is None:
        raise ValueError(
            f"`precision` must be 'float32' or 'auto' on this machine, got 'bfloat16', which failed: {trial.problem}"
        )
    return "bfloat16"


@cache
def try_bfloat16() -> Trial:
    """Time a layer in bfloat16 in a subprocess. The result is cached."""
    code = f"from neuralbayes.training.precision import measure; print(measure({torch.get_num_threads()}))"
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
    except subprocess.TimeoutExpired:
        return Trial(None, f"a test of it took more than {PATIENCE:.0f} s")
    if done.returncode < 0:
        return Trial(None, f"a test of it ended by {signal.Signals(-done.returncode).name}")
    if done.returncode > 0:
        lines = done.stderr.strip().splitlines()
        return Trial(None, lines[-1] if lines else f"a test of it ended with code {done.returncode}")
    return Trial(float(done.stdout.split()[-1]))


def measure(n_threads: int) -> float:
    """Speedup of bfloat16 over float32, forward and backward; call it in a subprocess.

    The layers are a convolution of a small encoder and a matrix product of that size.
    """
    torch.set_num_threads(n_threads)
    accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
    device = torch.device("cpu") if accelerator is None else accelerator
    network = nn.Sequential(nn.Conv2d(50, 125, 3), nn.ReLU(), nn.AvgPool2d(13), nn.Flatten(), nn.Linear(125, 1000))
    network = network.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    x = torch.randn(64, 50, 15, 15, device=device).contiguous(memory_format=torch.channels_last)
    variants = {"float32": network, "bfloat16": InBfloat16(network)}

    exact, rounded = variants["float32"](x), variants["bfloat16"](x)
    error = float((exact - rounded).abs().max() / exact.abs().max())
    if not error < ROUNDING:
        raise ArithmeticError(f"a product is off by {100 * error:.0f} %")
    seconds = dict.fromkeys(variants, float("inf"))
    for _ in range(5):  # alternate, so that other load slows both alike
        for name, variant in variants.items():
            start = time.perf_counter()
            network.zero_grad()
            variant(x).square().sum().backward()
            float(network[0].weight.grad.sum())  # waits for the device
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds["float32"] / seconds["bfloat16"]
