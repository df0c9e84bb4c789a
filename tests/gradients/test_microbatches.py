"""Division of a batch into pieces, each with its share of the weight, and the same number on every process."""

import pytest
import torch
from torch import Tensor, nn

from neuralbayes.distributed import Processes, buckets
from neuralbayes.gradients.passes import Microbatch, microbatches


class OneOfTwo(Processes):
    """A process whose only peer has `others` samples with a weight of 1 each, and the same value in every sum."""

    def __init__(self, others: int) -> None:
        self.size = 2
        self.others = others
        self.messages: list[Tensor] = []

    def sum(self, tensor: Tensor) -> Tensor:
        self.messages.append(tensor)
        return tensor + self.others

    def largest(self, number: int, device: torch.device) -> int:
        return max(number, self.others)


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


def test_every_sample_has_the_same_weight() -> None:
    torch.testing.assert_close(torch.cat([piece.weight for piece in split(10, 4)]), torch.full((10,), 0.1))


@pytest.mark.parametrize("weight", [torch.tensor([1.0, 0.0, 3.0, 4.0]), torch.tensor([1, 0, 3, 4]), [1, 0, 3, 4]])
def test_given_weights_are_divided_by_their_sum(weight: Tensor) -> None:
    pieces = split(4, 3, weight)
    assert [piece.weight.tolist() for piece in pieces] == [[0.125, 0.0], [0.375, 0.5]]


def test_seeds_come_from_the_global_generator_one_for_each_piece() -> None:
    torch.manual_seed(3)
    seeds = [piece.seed for piece in split(10, 3)]
    torch.manual_seed(3)
    assert seeds == torch.randint(2**62, (4,)).tolist()
    assert len(set(seeds)) == 4


# Over several processes


def test_weights_sum_to_1_over_all_processes() -> None:
    """Three samples here and five there, so each counts an eighth."""
    (piece,) = split(3, None, processes=OneOfTwo(5))
    assert piece.weight.tolist() == [0.125] * 3


def test_as_many_pieces_as_the_process_with_most_samples_has() -> None:
    pieces = split(5, 4, processes=OneOfTwo(9))
    assert [len(piece.x) for piece in pieces] == [2, 2, 1]
    assert all(piece.present for piece in pieces)


def test_a_process_with_as_many_samples_as_pieces_fills_up_nothing() -> None:
    pieces = split(3, 4, processes=OneOfTwo(9))
    assert [piece.x.tolist() for piece in pieces] == [[[1.0]], [[2.0]], [[3.0]]]
    assert [piece.present for piece in pieces] == [True, True, True]


@pytest.mark.parametrize("n", [2, 1, 0])
def test_a_process_short_of_samples_fills_up_with_some_of_no_weight(n: int) -> None:
    pieces = split(n, 4, processes=OneOfTwo(9))
    assert [piece.x.tolist() for piece in pieces] == [[[float(i + 1 if i < n else 0)]] for i in range(3)]
    torch.testing.assert_close(
        torch.cat([piece.weight for piece in pieces]),
        torch.tensor([1.0 / (n + 9) if i < n else 0.0 for i in range(3)]),
    )
    assert [piece.present for piece in pieces] == [i < n for i in range(3)]


def test_an_empty_batch_on_every_process_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`batch` must have at least one sample, got shape \(0, 1\)"):
        split(0, 4, processes=OneOfTwo(0))


# Sums


def test_many_tensors_are_summed_in_few_messages() -> None:
    """In their order and shapes; a message has one dtype."""
    processes = OneOfTwo(10)
    tensors = [
        torch.arange(6.0).reshape(2, 3),
        torch.tensor(7.0),
        torch.ones(2, dtype=torch.float64),
        torch.zeros(0),
        torch.arange(4.0).reshape(2, 2).T,
    ]
    sums = processes.sum_all(tensors)
    assert [(s.dtype, s.tolist()) for s in sums] == [(t.dtype, (t + 10).tolist()) for t in tensors]
    assert [message.numel() for message in processes.messages] == [7, 2, 4]


@pytest.mark.parametrize(
    ("numbers", "messages"),
    [
        ([2, 2], [4]),  # just fits
        ([2, 3], [2, 3]),
        ([1, 1, 1, 1, 1], [4, 1]),
        ([9, 1, 1], [9, 2]),  # larger than a message, so sent alone
        ([1, 9], [1, 9]),
        ([], []),
    ],
)
def test_a_message_holds_no_more_than_a_bucket(numbers: list[int], messages: list[int]) -> None:
    """A bucket of 16 bytes holds four numbers of float32."""
    groups = buckets([torch.zeros(n) for n in numbers], 16)
    assert [sum(tensor.numel() for tensor in group) for group in groups] == messages
