import math

import pytest
import torch
from torch import nn

from neuralbayes.training.schedule import constant, cosine, scheduled


def test_cosine_by_hand():
    factor = cosine(warmup=0.1, final=0.2)
    assert factor(0.05) == pytest.approx(0.5)
    assert factor(0.1) == pytest.approx(1.0)
    assert factor(0.325) == pytest.approx(0.2 + 0.8 * (1 + math.cos(math.pi / 4)) / 2)
    assert factor(1.0) == pytest.approx(0.2)


def test_warmup_over_the_whole_run_is_a_straight_line():
    factor = cosine(warmup=1.0)
    assert [factor(t) for t in (0.0, 0.5, 1.0)] == [0.0, 0.5, 1.0]


@pytest.mark.parametrize("arguments", [{"warmup": 1.2}, {"final": -0.1}, {"warmup": math.nan}])
def test_cosine_refuses_what_is_not_a_share(arguments):
    with pytest.raises(ValueError, match=rf"`{next(iter(arguments))}` must be a finite number in \[0, 1\]"):
        cosine(**arguments)


def test_rates_follow_the_schedule_per_group_and_come_back():
    first, second = nn.Linear(1, 1), nn.Linear(1, 1)
    groups = [{"params": first.parameters(), "lr": 1.0}, {"params": second.parameters(), "lr": 0.1}]
    optimizer = torch.optim.SGD(groups)
    with scheduled(optimizer, lambda progress: progress, total_steps=4) as set_rate:
        set_rate(1)
        assert [group["lr"] for group in optimizer.param_groups] == pytest.approx([0.375, 0.0375])
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.1]


def test_no_step_of_warmup_and_decay_is_spent_on_a_rate_of_zero():
    optimizer = torch.optim.SGD(nn.Linear(1, 1).parameters(), lr=1.0)
    with scheduled(optimizer, cosine(warmup=0.5), total_steps=4) as set_rate:
        for step in range(4):
            set_rate(step)
            assert optimizer.param_groups[0]["lr"] > 0


def test_constant_is_one():
    assert constant(0.3) == 1.0
