"""`marginal="minibatch"` and `"running"`: the p(z) that each micro-batch uses."""

import pytest
import torch
from gradient_cases import OBJECTIVES, grads, mlp, points, whole_batch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, Objective, RunningPrior

every_objective = pytest.mark.parametrize("name", OBJECTIVES)


def with_prior_of_value(objective: Objective, network: nn.Module, x: Tensor, p_z: Tensor) -> tuple[float, Tensor]:
    """The objective with the value `p_z` for p(z) and the derivative of the batch mean."""
    network.zero_grad()
    p_zx = network(x).softmax(1)
    own = p_zx.mean(0)
    through = p_z + own - own.detach()
    value = objective.per_sample(p_zx, through).mean() + objective.of_prior(through)
    value.backward()
    gradient = grads(network)
    network.zero_grad()
    return value.item(), gradient


# Mini-batch


@every_objective
@pytest.mark.parametrize("weighted", [False, True])
def test_minibatch_is_the_mean_over_microbatches(name: str, weighted: bool) -> None:
    """Section 3.2: gradients of each MBS samples are averaged, here by weight; pieces without weight do not count."""
    objective, network, x = OBJECTIVES[name](), mlp(), points(20)
    weight = torch.rand(20, dtype=torch.float64) if weighted else torch.ones(20, dtype=torch.float64)
    weight[7:14] *= not weighted
    loss = nb.backward(objective, network, x, microbatch_size=7, marginal="minibatch", sample_weight=weight)
    ours = grads(network)
    expected, value = torch.zeros_like(ours), 0.0
    for piece in (p for p in torch.arange(20).tensor_split(3) if float(weight[p].sum()) > 0):  # 7, 7 and 6 samples
        share = float(weight[piece].sum() / weight.sum())
        v, g = whole_batch(objective, network, x[piece], weight[piece])
        expected, value = expected + share * g, value + share * v
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value, abs=1e-12)


# Running


@every_objective
def test_running_without_momentum_is_minibatch(name: str) -> None:
    objective, network, x = OBJECTIVES[name](), mlp(), points(50)
    loss = nb.backward(objective, network, x, microbatch_size=7, marginal="minibatch")
    expected = grads(network)
    network.zero_grad()
    running = nb.backward(objective, network, x, microbatch_size=7, marginal=RunningPrior(momentum=0.0))
    torch.testing.assert_close(grads(network), expected, rtol=0, atol=1e-12)
    assert running.item() == pytest.approx(loss.item(), abs=1e-12)


@every_objective
def test_running_takes_the_value_of_the_average_and_the_derivative_of_the_batch(name: str) -> None:
    """Two micro-batches after one earlier batch, with E from the formula of the average."""
    objective, network, x = OBJECTIVES[name](), mlp(), points(20)
    earlier = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    running = RunningPrior(momentum=0.5)
    running.update(0, earlier)

    pieces = x.tensor_split(2)
    own = [network(piece).softmax(1).mean(0).detach() for piece in pieces]
    averages = [(0.5 * earlier + own[0]) / 1.5, (0.25 * earlier + 0.5 * own[0] + own[1]) / 1.75]
    results = [with_prior_of_value(objective, network, x, E) for x, E in zip(pieces, averages, strict=True)]

    loss = nb.backward(objective, network, x, microbatch_size=10, marginal=running)
    torch.testing.assert_close(grads(network), sum(g for _, g in results) / 2, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(sum(v for v, _ in results) / 2, abs=1e-12)


def test_running_prior_of_the_objective_goes_on_over_calls_and_reloads() -> None:
    x = points(40)

    def step(objective: Objective, piece: Tensor) -> Tensor:
        network = mlp()
        nb.backward(objective, network, piece, microbatch_size=10, marginal="running")
        return grads(network)

    trained = DML()
    step(trained, x[:20])
    fresh = DML()
    fresh.load_state_dict(trained.state_dict())
    assert "running_prior.p_z_0" in trained.state_dict()
    first, resumed, forgetful = step(trained, x[20:]), step(fresh, x[20:]), step(DML(), x[20:])
    assert torch.equal(first, resumed)
    assert not torch.allclose(first, forgetful)
