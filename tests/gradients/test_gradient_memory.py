"""Memory of micro-batches, and with `recompute`; in new processes, because the peak of a process never falls."""

from itertools import pairwise

import pytest
import torch
from process_cases import STATUS, in_child, peak_of
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.networks.encoders import convolutional_encoder
from neuralbayes.networks.hidden import HiddenStates

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
    pieces, whole = in_child(peaks, objective)
    assert whole > 20_000  # kilobytes: enough to compare
    assert pieces < whole / 4


def peak(recompute: bool) -> int:
    """Kilobytes for a gradient with R_c of all hidden states."""
    torch.set_num_threads(1)
    states = HiddenStates(convolutional_encoder((48, 32, 32, 32)), ["relu1", "relu2", "relu3", "relu4"])
    x = torch.randn(48, 3, 32, 32)

    def step(x: Tensor) -> None:
        nb.backward(nb.MIM(), states, x, smoothness=nb.Smoothness(), recompute=recompute)

    step(x[:2])
    return peak_of(lambda: step(x))


def test_recomputation_needs_less_than_three_quarters_of_the_memory() -> None:
    kept, recomputed = in_child(peak, False), in_child(peak, True)
    assert kept > 30_000  # enough to compare
    assert recomputed < 3 / 4 * kept
