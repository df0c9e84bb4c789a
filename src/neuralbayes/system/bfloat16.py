"""bfloat16 where it works and is faster, probed in a subprocess: some processors that claim it crash (SIGILL)."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from neuralbayes.system.autocast import widened

PROBE = """
import time, torch
torch.set_num_threads({threads})
a = torch.randn(250, 1200)
layer = torch.nn.Linear(1200, 1200)
def seconds(half):
    start = time.perf_counter()
    with torch.autocast("cpu", torch.bfloat16, enabled=half):
        layer(a).float().square().sum().backward()
    return time.perf_counter() - start
with torch.autocast("cpu", torch.bfloat16):
    rounded = layer(a).float()
close = torch.allclose(rounded, layer(a), atol=0.1)
times = [(seconds(True), seconds(False)) for _ in range(9)]
print(int(close and 1.1 * min(t for t, _ in times) < min(t for _, t in times)))
"""


@cache
def bfloat16_is_faster() -> bool:
    """Whether matrix products on the CPU work in bfloat16 and are at least a tenth faster than in float32."""
    code = PROBE.format(threads=torch.get_num_threads())
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and done.stdout.split()[-1:] == ["1"]


class InBfloat16(nn.Module):
    """A network whose matrix products run in bfloat16 and whose outputs are float32.

    Autocast ends with the network, so the objective keeps its precision: products in bfloat16 lose a prior of 1/1000.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Any:
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            outputs = self.network(x)
        return widened(outputs)
