import pytest
import torch
from torch import nn

from neuralbayes.training import Batches, cosine, train


@pytest.mark.parametrize("arguments", [{"warmup": 1.2}, {"final": -0.1}, {"warmup": float("nan")}])
def test_cosine_refuses_what_is_not_a_share(arguments):
    with pytest.raises(ValueError, match=f"`{next(iter(arguments))}` must be"):
        cosine(**arguments)


def test_rates_follow_the_schedule_per_group_and_come_back():
    """In the middle of a step, so neither the first nor the last step has a rate of 0."""
    network = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    groups = [{"params": network[0].parameters(), "lr": 1.0}, {"params": network[1].parameters(), "lr": 0.1}]
    optimizer = torch.optim.SGD(groups)
    seen = []

    def step(network, batch):
        seen.append([group["lr"] for group in optimizer.param_groups])
        network(batch).sum().backward()
        return {}

    options = {"optimizer": optimizer, "schedule": lambda progress: progress, "max_steps": 4}
    train(network, step, Batches(2, 2), fetch=lambda i: i[:, None].float(), **options)
    assert [pytest.approx([rate, 0.1 * rate]) for rate in (0.125, 0.375, 0.625, 0.875)] == seen
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.1]
