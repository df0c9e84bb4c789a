import math
import warnings

import pytest
import torch
from torch import nn

from neuralbayes.training import EarlyStopping, StopOnNaN, TrainingState, WarnOnCollapse


def make_state():
    network = nn.Linear(2, 1)
    return TrainingState(network, torch.optim.SGD(network.parameters()), steps_per_epoch=1, total_steps=100)


def epochs_until_stop(callback, values):
    state = make_state()
    for epoch, value in enumerate(values, start=1):
        callback.on_epoch_end(state, {"score": value})
        if state.finished:
            return epoch
    return None


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({}, [5, 4, 3, 2, 1], None),
        ({}, [5, 4, 4, 4, 1], 4),
        ({}, [5, 6, 4, 5, 5], 5),
        ({"mode": "max"}, [1, 2, 2, 1], 4),
        ({"patience": 1}, [1, 1], 2),
        ({}, [math.nan, math.nan, 1], 2),
        ({}, [1, math.nan, 0.5, math.nan], None),
    ],
)
def test_early_stopping_counts_epochs_without_improvement(options, values, expected):
    assert epochs_until_stop(EarlyStopping("score", **{"patience": 2} | options), values) == expected


def test_early_stopping_names_what_it_can_monitor():
    with pytest.raises(ValueError, match="`monitor`"):
        epochs_until_stop(EarlyStopping("accuracy"), [1.0])


@pytest.mark.parametrize(
    ("options", "message"),
    [({"mode": "best"}, "`mode`"), ({"patience": 0}, "`patience`")],
)
def test_early_stopping_refuses_bad_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        EarlyStopping("loss", **options)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_metric_that_is_not_finite_is_named_with_its_step(value):
    state = make_state()
    state.step = 6
    with pytest.raises(FloatingPointError, match=f"metric 'loss' is {value} at step 7; .* those of step 6"):
        StopOnNaN().on_gradients(state, {"accuracy": 0.5, "loss": value})


def test_a_gradient_that_is_not_finite_is_named_though_the_loss_is():
    state = make_state()
    state.network.weight.grad = torch.zeros(1, 2)
    state.network.bias.grad = torch.tensor([math.nan])
    with pytest.raises(FloatingPointError, match="the gradient of 'bias' is not finite at step 1"):
        StopOnNaN().on_gradients(state, {"loss": 0.5})


GOOD = {"loss": 1.0, "mi/a": 0.5, "dead/a": 0.1, "mi/b": 0.5, "dead/b": 0.0}


def steps(guard, *metrics):
    """Messages of the warnings caused by these metrics, one dictionary per step."""
    state = make_state()
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
