"""`backward(..., recompute=True)`: less memory, the same gradient."""

import pytest
import torch
from gradient_cases import (
    OBJECTIVES,
    CountByAssignment,
    CountInPlace,
    HiddenStatesOfTwoLayers,
    SharedBatchNorm,
    batch_norm_network,
    grads,
    images,
    mlp,
    plain_dropout_network,
    points,
    spectral_norm_network,
)
from process_cases import STATUS, in_child, peak_of
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.gradients import passes
from neuralbayes.networks.encoders import convolutional_encoder
from neuralbayes.networks.hidden import HiddenStates, last_state_only

NETWORKS = [
    mlp,
    batch_norm_network,
    plain_dropout_network,
    spectral_norm_network,
    SharedBatchNorm,
    CountInPlace,
    CountByAssignment,
]


def both(network: nn.Module, x: Tensor, objective: nb.Objective, **options: object) -> None:
    """Assert that value, gradient and buffers do not depend on `recompute`."""
    state = {k: v.clone() for k, v in network.state_dict().items()}
    found = []
    for recompute in (False, True):
        network.load_state_dict(state)
        network.zero_grad()
        torch.manual_seed(3)
        loss = nb.backward(objective, network, x, recompute=recompute, **options)  # type: ignore[arg-type]
        buffers = [b.flatten().double() for b in network.buffers()]
        found.append(torch.cat([loss.reshape(1), grads(network), *buffers]))
    assert float(found[0][1:].abs().max()) > 0
    torch.testing.assert_close(found[1], found[0], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("marginal", ["exact", "minibatch"])
@pytest.mark.parametrize("fraction", [None, 1.0, 0.5])
@pytest.mark.parametrize("make", NETWORKS)
def test_value_gradient_and_buffers_are_the_same(make: type[nn.Module], fraction: float | None, marginal: str) -> None:
    if make is plain_dropout_network and fraction == 0.5:
        pytest.skip("refused")
    smoothness = None if fraction is None else nb.Smoothness(2.0, "logits", fraction=fraction)
    both(make(), points(20), nb.DML(), microbatch_size=7, marginal=marginal, smoothness=smoothness)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_of_every_objective_on_several_outputs(objective: str) -> None:
    both(HiddenStatesOfTwoLayers(), images(), OBJECTIVES[objective](), smoothness=nb.Smoothness())


@pytest.mark.parametrize("of", ["pooled", lambda outputs: outputs["relu2"].mean((2, 3))])
@pytest.mark.parametrize("fraction", [1.0, 0.25])
def test_of_the_encoder(fraction: float, of: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "PART_BYTES", 40_000)  # several pieces, the last one shorter
    states = HiddenStates(convolutional_encoder((16, 32, 16, 16)), ["relu1", "relu2", "relu3", "relu4"]).double()
    smoothness = nb.Smoothness(fraction=fraction, of=of)  # type: ignore[arg-type]
    both(states, torch.randn(6, 3, 24, 24, dtype=torch.float64), nb.MIM(), smoothness=smoothness)


def test_an_output_that_nothing_trains_counts_in_the_value_only() -> None:
    class Frozen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(5, 3).double()

        def forward(self, x: Tensor) -> list[Tensor]:
            return [x, self.linear(x)]

    network, x = Frozen(), points(12)
    both(network, x, nb.MIM())
    expected = (nb.MIM()(x) + nb.MIM()(network.linear(x))) / 2
    assert nb.backward(nb.MIM(), network, x).item() == pytest.approx(expected.item(), abs=1e-12)


def test_a_network_without_anything_to_train_is_refused() -> None:
    network = nn.Linear(5, 3).double().requires_grad_(False)
    with pytest.raises(ValueError, match="`network` must have parameters that require a gradient"):
        nb.backward(nb.MIM(), network, points(8))


def test_the_last_state_only_is_the_one_of_all() -> None:
    states = HiddenStates(
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(48, 4)), ["0", "2"], (1, 2)
    ).double()
    x = images(3)
    every = states(x)
    assert list(every) == ["0", "2", "0/2"]  # a vector has no second scale
    with last_state_only(states):
        alone = states(x)
    assert list(alone) == ["0/2"]
    assert torch.equal(alone["0/2"], every["0/2"])
    assert list(states(x)) == list(every)


def peak(recompute: bool) -> int:
    """Kilobytes for a gradient with R_c of all hidden states."""
    torch.set_num_threads(1)
    states = HiddenStates(convolutional_encoder((48, 32, 32, 32)), ["relu1", "relu2", "relu3", "relu4"])
    x = torch.randn(48, 3, 32, 32)

    def step(x: Tensor) -> None:
        nb.backward(nb.MIM(), states, x, smoothness=nb.Smoothness(), recompute=recompute)

    step(x[:2])
    return peak_of(lambda: step(x))


@pytest.mark.skipif(not STATUS.exists(), reason="the peak of a process is read from Linux's /proc")
def test_the_memory_is_less_than_two_thirds() -> None:
    kept, recomputed = in_child(peak, False), in_child(peak, True)
    assert kept > 30_000  # enough to compare
    assert recomputed < 2 / 3 * kept


class Calls(nn.Module):
    """Count the calls of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.network, self.n = mlp(), 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        result: Tensor = self.network(x)
        return result


@pytest.mark.parametrize(("options", "calls"), [({}, 2), ({"recompute": False}, 2), ({"recompute": True}, 3)], ids=str)
def test_the_perturbed_pass_is_made_again_where_asked_for(options: dict[str, bool], calls: int) -> None:
    network = Calls()
    nb.backward(nb.DML(), network, points(), smoothness=nb.Smoothness(), **options)
    assert network.n == calls


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("marginal", ["exact", "minibatch"])
def test_gradients_in_outputs_wait_where_asked_for(
    recompute: bool, marginal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = []

    def backward(passed: passes.Passed, value: bool) -> Tensor:
        lazy.append(value)
        return torch.zeros(())

    monkeypatch.setattr(passes.Passed, "backward", backward)
    nb.backward(nb.DML(), mlp(), points(), microbatch_size=50, marginal=marginal, recompute=recompute)
    assert lazy == [recompute] * 2
