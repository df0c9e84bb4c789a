"""Memory: a micro-batch of B/8 needs less than a quarter of what the whole batch needs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Not resource.getrusage: there a child starts with the peak of the process that started it.
STATUS = Path("/proc/self/status")
pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the peak of a process is read from Linux's /proc")

PROGRAM = """
import sys
import torch
from torch import nn
import neuralbayes as nb

torch.set_num_threads(1)
WIDTH, BATCH = 16, 64


class Encoder(nn.Module):
    '''Three convolutions with batch normalisation; all hidden states at two scales, as in appendix B.'''

    def __init__(self):
        super().__init__()
        widths = [3, WIDTH, WIDTH, WIDTH]
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU()) for a, b in zip(widths, widths[1:])
        )

    def forward(self, x):
        states = []
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return states + [nn.functional.avg_pool2d(h, 2) for h in states]


def peak():
    (line,) = [line for line in open("/proc/self/status") if line.startswith("VmHWM")]
    return int(line.split()[1])


network, objective = Encoder(), getattr(nb, sys.argv[1])()
x = torch.randn(BATCH, 3, 32, 32)
nb.backward(objective, network, x[:4], microbatch_size=2)  # what is loaded and allocated once
before = peak()
nb.backward(objective, network, x, microbatch_size=BATCH // 8)
pieces = peak() - before
nb.backward(objective, network, x)
print(pieces, peak() - before)
"""


@pytest.mark.parametrize("objective", ["MIM", "DML"])
def test_an_eighth_of_the_batch_needs_under_a_quarter_of_the_memory(objective: str) -> None:
    """In a process of its own, since the peak of one never falls; freed blocks go back to the system at once."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, objective],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
    )
    pieces, whole = map(int, done.stdout.split())
    assert whole > 20_000  # kilobytes: there is something to compare
    assert pieces < whole / 4
