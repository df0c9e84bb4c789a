"""Inference in blocks: every sample once and in order, for any block size."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from neuralbayes.training.inference import evaluation_mode, in_blocks

X = torch.arange(40.0).reshape(20, 2)


@given(n=st.integers(1, 20), block=st.integers(1, 25))
def test_blocks_are_put_together_in_order(n: int, block: int) -> None:
    sizes: list[int] = []

    def double(rows: np.ndarray) -> torch.Tensor:
        sizes.append(len(rows))
        return 2 * X[rows]

    found = in_blocks(double, n, block=block)
    assert found.tolist() == (2 * X[:n]).tolist()
    assert len(sizes) == -(-n // block)
    assert max(sizes) <= block
    assert sizes[:-1] == [block] * (len(sizes) - 1)


def test_shape_and_type_are_those_of_the_blocks_or_the_type_asked_for() -> None:
    images = np.arange(6, dtype=np.uint8).reshape(3, 2)
    assert in_blocks(lambda rows: images[rows], 3, block=2).dtype == np.uint8
    assert in_blocks(lambda rows: X[rows], 0, block=4).shape == (0, 2)
    layer = nn.Linear(2, 3)
    assert in_blocks(lambda rows: layer(X[rows]), 20, block=7).shape == (20, 3)  # without gradients
    wide = in_blocks(lambda rows: images[rows], 3, block=2, dtype=np.float32)
    assert (wide.dtype, wide.tolist()) == (np.float32, images.tolist())


@pytest.mark.parametrize("training", [True, False])
def test_a_network_is_in_evaluation_mode_inside_and_as_before_outside(training: bool) -> None:
    network = nn.Sequential(nn.BatchNorm1d(2)).train(training)

    def fail() -> None:
        with evaluation_mode(network):
            assert not network[0].training
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert network[0].training == training
