"""Networks that draw random numbers or have memory: every pass over a micro-batch must find them in the same state."""

import copy

import pytest
import torch
from gradient_cases import (
    OBJECTIVES,
    CountByAssignment,
    CountInPlace,
    batch_norm_network,
    grads,
    mlp,
    points,
    spectral_norm_network,
)
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, Objective, Smoothness

every_objective = pytest.mark.parametrize("name", OBJECTIVES)
SIZE = 7


class RecordedDropout(nn.Module):
    """Dropout that remembers its masks, or applies a given mask."""

    def __init__(self) -> None:
        super().__init__()
        self.masks: list[Tensor] = []
        self.given: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.given is not None:
            return x * self.given
        self.masks.append(nn.functional.dropout(torch.ones_like(x), 0.5, self.training))
        return x * self.masks[-1]


def dropout_network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 12), RecordedDropout(), nn.Tanh(), nn.Linear(12, 4)).double()


REMEMBERING = [batch_norm_network, spectral_norm_network, CountInPlace]


def piece_by_piece(objective: Objective, network: nn.Module, x: Tensor) -> tuple[float, Tensor]:
    """The gradient of the whole batch if the network sees the micro-batches one after the other, once."""
    network.zero_grad()
    pieces = x.tensor_split(-(-len(x) // SIZE))
    value = objective(torch.cat([network(piece) for piece in pieces]))
    value.backward()
    gradient = grads(network)
    network.zero_grad()
    return value.item(), gradient


# Dropout


@every_objective
@pytest.mark.parametrize("recompute", [False, True])
def test_dropout_is_the_same_in_every_pass(name: str, recompute: bool) -> None:
    """The gradient is that of the whole batch under one set of masks, from the last pass."""
    network, x = dropout_network(), points(50)
    dropout = network[1]
    loss = nb.backward(OBJECTIVES[name](), network, x, microbatch_size=SIZE, recompute=recompute)
    ours = grads(network)

    n_pieces = -(-50 // SIZE)
    masks = dropout.masks[-n_pieces:]
    for first in range(0, len(dropout.masks), n_pieces):
        assert all(torch.equal(a, b) for a, b in zip(dropout.masks[first : first + n_pieces], masks, strict=True))

    dropout.given = torch.cat(masks)
    network.zero_grad()
    value = OBJECTIVES[name]()(network(x))
    value.backward()
    torch.testing.assert_close(ours, grads(network), rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value.item(), abs=1e-12)


def test_micro_batches_have_masks_of_their_own() -> None:
    network = dropout_network()
    nb.backward(DML(), network, points(14), microbatch_size=7)
    first, second = network[1].masks[:2]
    assert not torch.equal(first, second)


def test_same_seed_same_gradient_and_the_next_call_another() -> None:
    network, x = dropout_network(), points(30)

    def gradient() -> Tensor:
        network.zero_grad()
        nb.backward(DML(), network, x, microbatch_size=SIZE)
        return grads(network)

    torch.manual_seed(5)
    first, second = gradient(), gradient()
    torch.manual_seed(5)
    again = gradient()
    assert torch.equal(first, again)
    assert not torch.allclose(first, second)


def test_the_global_generator_advances_by_the_call_not_by_the_network() -> None:
    """Random numbers after the call do not depend on how many dropout drew, and differ from those before it."""
    after = []
    for network in (mlp(), dropout_network()):
        torch.manual_seed(5)
        nb.backward(DML(), network, points(30).clone(), microbatch_size=SIZE)
        after.append(torch.rand(3))
    torch.manual_seed(2)
    points(30)
    untouched = torch.rand(3)
    assert torch.equal(after[0], after[1])
    assert not torch.equal(after[0], untouched)


# Networks with memory


@every_objective
@pytest.mark.parametrize("make", REMEMBERING)
@pytest.mark.parametrize("recompute", [False, True])
def test_gradient_is_that_of_one_pass_piece_by_piece(name: str, make: type[nn.Module], recompute: bool) -> None:
    """Exact for what each micro-batch saw: its batch statistics, its power iteration."""
    network, x = make(), points(50)
    value, gradient = piece_by_piece(OBJECTIVES[name](), copy.deepcopy(network), x)
    loss = nb.backward(OBJECTIVES[name](), network, x, microbatch_size=SIZE, recompute=recompute)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("make", [*REMEMBERING, CountByAssignment])
@pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
@pytest.mark.parametrize("fraction", [None, 1.0, 0.5], ids=["no-smoothness", "smoothness", "half-smoothness"])
def test_buffers_move_once_for_each_micro_batch(make: type[nn.Module], marginal: str, fraction: float | None) -> None:
    """Running statistics, counters and power iterations end as after one plain pass over the data."""
    network, x = make(), points(50)
    expected = copy.deepcopy(network)
    for piece in x.tensor_split(-(-50 // SIZE)):
        expected(piece)
    R_c = None if fraction is None else Smoothness(fraction=fraction, of="logits")
    # recompute: three passes, since the sample term depends on p(z)
    nb.backward(DML(), network, x, microbatch_size=SIZE, marginal=marginal, smoothness=R_c, recompute=True)
    ours, theirs = dict(network.named_buffers()), dict(expected.named_buffers())
    assert ours.keys() == theirs.keys()
    for key, buffer in ours.items():
        torch.testing.assert_close(buffer, theirs[key], rtol=0, atol=1e-12, msg=key)


def test_evaluation_mode_moves_nothing_and_is_exact() -> None:
    network, x = batch_norm_network(), points(50)
    network(x)
    network.eval()
    before = copy.deepcopy(dict(network.named_buffers()))
    nb.backward(MIM(), network, x, microbatch_size=SIZE, smoothness=None)
    ours = grads(network)
    network.zero_grad()
    MIM()(network(x)).backward()
    torch.testing.assert_close(ours, grads(network), rtol=0, atol=1e-10)
    assert all(torch.equal(buffer, before[key]) for key, buffer in network.named_buffers())
