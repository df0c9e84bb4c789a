"""Hidden states: their names, scales and order, and the last one alone."""

import pytest
import torch
from torch import nn

import neuralbayes as nb
from neuralbayes.networks.hidden import HiddenStates

X = torch.randn(3, 2, 6, 6, generator=torch.Generator().manual_seed(0))


def states(scales: tuple[int, ...] = (1, 2)) -> HiddenStates:
    torch.manual_seed(0)
    return HiddenStates(nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(48, 4)), ["0", "2"], scales)


def test_states_come_scale_by_scale_and_a_vector_has_one_scale() -> None:
    network = states()
    found = network(X)
    assert {name: tuple(state.shape) for name, state in found.items()} == {
        "0": (3, 3, 4, 4),
        "2": (3, 4),
        "0/2": (3, 3, 2, 2),
    }
    by_hand = network.network[0](X)
    assert torch.equal(found["0"], by_hand)
    torch.testing.assert_close(found["0/2"], nn.functional.avg_pool2d(by_hand, 2))


@pytest.mark.parametrize("scales", [(1, 2), (2, 1), (1,), (3,)])
def test_the_last_state_alone_is_the_last_of_all_whatever_was_called_before(scales: tuple[int, ...]) -> None:
    network = states(scales)
    alone = network.last_state(X)
    every = network(X)
    assert torch.equal(alone, [*every.values()][-1])
    assert torch.equal(network.last_state(X), alone)
    assert [*network(X)] == [*every]


def test_a_window_larger_than_a_state_takes_all_of_it() -> None:
    network = states((8,))
    torch.testing.assert_close(network(X)["0/8"].flatten(1), network.network[0](X).mean((2, 3)))


def test_smoothness_of_the_last_state_alone_has_the_gradient_of_that_among_all() -> None:
    """With "pooled", `backward` asks for the last state only; with a function, for all of them."""
    found = []
    for of in ("pooled", lambda outputs: outputs["2"]):
        network = states((1,))
        torch.manual_seed(1)
        loss = nb.backward(nb.MIM(), network, X, smoothness=nb.Smoothness(0.5, of))  # type: ignore[arg-type]
        found.append(torch.cat([loss.reshape(1), *(p.grad.flatten() for p in network.parameters())]))
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(("names", "scales"), [([], (1,)), (["nowhere"], (1,)), (["0"], ()), (["0"], (0,))])
def test_names_and_scales_that_cannot_be_are_refused(names: list[str], scales: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`names` must|`scales` must"):
        HiddenStates(nn.Sequential(nn.Linear(2, 2)), names, scales)
