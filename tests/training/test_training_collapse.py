import warnings

import pytest
import torch
from torch import nn

from neuralbayes.training import TrainingState, WarnOnCollapse

GOOD = {"loss": 1.0, "mi/a": 0.5, "dead/a": 0.1, "mi/b": 0.5, "dead/b": 0.0}


def steps(guard, *metrics):
    """Messages of the warnings caused by these metrics, one dictionary per step."""
    network = nn.Linear(1, 1)
    state = TrainingState(network, torch.optim.SGD(network.parameters()), steps_per_epoch=1, total_steps=100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for values in metrics:
            state.step += 1
            guard.on_step_end(state, values)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"mi/a": 0.009}, "a has carried less than 0.01 nats about its input for 3 steps, up to step 3"),
        ({"dead/a": 0.95}, "more than 90% of the states of a have been dead for 3 steps, up to step 3"),
    ],
)
def test_a_layer_that_stays_bad_is_named_once_with_advice(bad, words):
    guard = WarnOnCollapse("Do this.", steps=3)
    (message,) = steps(guard, *[GOOD | bad] * 9)
    assert message == f"{words}: it has collapsed. Do this."
    assert guard.messages == {"a": message}


def test_each_layer_has_a_warning_of_its_own():
    guard = WarnOnCollapse(steps=2)
    assert len(steps(guard, *[GOOD | {"mi/a": 0.0, "dead/a": 1.0, "mi/b": 0.0}] * 5)) == 2
    assert list(guard.messages) == ["a", "b"]


def test_a_layer_that_recovers_in_time_is_not_named():
    bad = GOOD | {"mi/a": 0.0}
    assert steps(WarnOnCollapse(steps=3), bad, bad, GOOD, bad, bad, {"loss": 1.0}, GOOD) == []


def test_it_goes_on_from_its_state():
    first, second, third = (WarnOnCollapse(steps=3) for _ in range(3))
    bad = GOOD | {"mi/a": 0.0}
    assert steps(first, bad, bad) == []
    second.load_state_dict(first.state_dict())
    assert len(steps(second, bad)) == 1
    third.load_state_dict(second.state_dict())
    assert steps(third, bad, bad, bad) == []
    assert third.messages == second.messages
