"""Memory: a micro-batch of B/8 needs less than a quarter of what the whole batch needs."""

from itertools import pairwise

import pytest
import torch
from process_cases import STATUS, in_child, peak_of
from torch import Tensor, nn

import neuralbayes as nb

pytestmark = pytest.mark.skipif(not STATUS.exists(), reason="the peak of a process is read from Linux's /proc")

WIDTH, BATCH = 16, 64


class Encoder(nn.Module):
    """Three convolutions with batch normalisation; all hidden states at two scales, as in appendix B."""

    def __init__(self) -> None:
        super().__init__()
        widths = [3, WIDTH, WIDTH, WIDTH]
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(a, b, 3), nn.BatchNorm2d(b), nn.ReLU()) for a, b in pairwise(widths)
        )

    def forward(self, x: Tensor) -> list[Tensor]:
        states = []
        for layer in self.layers:
            x = layer(x)
            states.append(x)
        return states + [nn.functional.avg_pool2d(h, 2) for h in states]


def peaks(objective: nb.Objective) -> tuple[int, int]:
    """Kilobytes for the gradient in pieces, and for the gradient of the whole batch."""
    torch.set_num_threads(1)
    network, x = Encoder(), torch.randn(BATCH, 3, 32, 32)
    nb.backward(objective, network, x[:4], microbatch_size=2)  # loads and allocates everything that is needed once
    pieces = peak_of(lambda: nb.backward(objective, network, x, microbatch_size=BATCH // 8))
    return pieces, pieces + peak_of(lambda: nb.backward(objective, network, x))


@pytest.mark.parametrize("objective", [nb.MIM(), nb.DML()], ids=["MIM", "DML"])
def test_an_eighth_of_the_batch_needs_under_a_quarter_of_the_memory(objective: nb.Objective) -> None:
    """Run in a new process, because the peak of a process never falls."""
    pieces, whole = in_child(peaks, objective)
    assert whole > 20_000  # kilobytes: enough to compare
    assert pieces < whole / 4
