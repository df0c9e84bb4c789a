"""Division of a batch into pieces, each with its share of the weight, and the same number on every process."""

import pytest
import torch
from torch import Tensor, nn

from neuralbayes.distributed import Processes, buckets
from neuralbayes.gradients.passes import Microbatch, microbatches


def split(
    n: int, size: int | None, weight: Tensor | None = None, processes: Processes | None = None
) -> list[Microbatch]:
    batch = torch.arange(1.0, n + 1).reshape(n, 1)
    return microbatches(nn.Identity(), batch, size, weight, Processes(None) if processes is None else processes)


# The pieces


@pytest.mark.parametrize(
    ("n", "size", "sizes"),
    [
        (10, 4, [4, 3, 3]),  # as even as possible, none larger than requested
        (10, 5, [5, 5]),
        (10, 9, [5, 5]),
        (10, 10, [10]),
        (10, 11, [10]),
        (10, None, [10]),
        (3, 1, [1, 1, 1]),
        (1, None, [1]),
    ],
)
def test_sizes_of_the_pieces(n: int, size: int | None, sizes: list[int]) -> None:
    pieces = split(n, size)
    assert [len(piece.x) for piece in pieces] == sizes
    assert [len(piece.weight) for piece in pieces] == sizes
    assert torch.cat([piece.x for piece in pieces]).flatten().tolist() == list(range(1, n + 1))
    assert all(piece.present for piece in pieces)


@pytest.mark.parametrize("weight", [torch.tensor([1.0, 0.0, 3.0, 4.0]), torch.tensor([1, 0, 3, 4]), [1, 0, 3, 4]])
def test_given_weights_are_divided_by_their_sum(weight: Tensor) -> None:
    pieces = split(4, 3, weight)
    assert [piece.weight.tolist() for piece in pieces] == [[0.125, 0.0], [0.375, 0.5]]


# Messages


@pytest.mark.parametrize(
    ("numbers", "messages"),
    [([2, 2], [4]), ([2, 3], [2, 3]), ([1] * 5, [4, 1]), ([9, 1, 1], [9, 2]), ([1, 9], [1, 9]), ([], [])],
)
def test_a_message_holds_no_more_than_a_bucket(numbers: list[int], messages: list[int]) -> None:
    """A bucket of 16 bytes holds four numbers of float32; a larger tensor is sent alone."""
    groups = buckets([torch.zeros(n) for n in numbers], 16)
    assert [sum(tensor.numel() for tensor in group) for group in groups] == messages
