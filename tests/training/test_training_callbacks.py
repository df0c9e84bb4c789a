import math

import pytest
import torch
from torch import nn

from neuralbayes.training import EarlyStopping, StopOnNaN, TrainingState


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
    with pytest.raises(ValueError, match=r"`monitor` must be one of the metrics \['score'\], got 'accuracy'"):
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
