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
def test_minibatch_is_the_mean_over_microbatches(name: str) -> None:
    """Section 3.2: gradients are computed on each MBS samples, accumulated and averaged; here, weighted by size."""
    objective, network, x = OBJECTIVES[name](), mlp(), points(100)
    pieces = x.tensor_split(15)  # 7 or 6 samples
    assert {len(piece) for piece in pieces} == {6, 7}
    results = [whole_batch(objective, network, piece) for piece in pieces]
    loss = nb.backward(objective, network, x, microbatch_size=7, marginal="minibatch")
    mean = sum(len(piece) / 100 * g for piece, (_, g) in zip(pieces, results, strict=True))
    torch.testing.assert_close(grads(network), mean, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(sum(len(p) / 100 * v for p, (v, _) in zip(pieces, results, strict=True)))


def test_minibatch_of_weighted_samples() -> None:
    """Micro-batches count with the weight of their samples; one without weight does not count."""
    network, x = mlp(), points(21)
    weight = torch.rand(21, dtype=torch.float64)
    weight[7:14] = 0.0
    loss = nb.backward(DML(), network, x, microbatch_size=7, marginal="minibatch", sample_weight=weight)
    ours = grads(network)
    expected, value = torch.zeros_like(ours), 0.0
    for piece in (slice(0, 7), slice(14, 21)):
        v, g = whole_batch(DML(), network, x[piece], weight[piece])
        expected += g * weight[piece].sum() / weight.sum()
        value += v * float(weight[piece].sum() / weight.sum())
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


def test_a_batch_of_nan_leaves_the_running_prior_as_it_was() -> None:
    """A caller that skips a bad batch and continues must not find NaN in every later one."""
    objective, network = DML(), mlp()
    nb.backward(objective, network, points(20), marginal="running")
    before = objective.running_prior.get_buffer("p_z_0").clone()
    with pytest.raises(ValueError, match="`logits` must be finite"):
        nb.backward(objective, network, torch.full((20, 5), torch.nan, dtype=torch.float64), marginal="running")
    assert torch.equal(objective.running_prior.get_buffer("p_z_0"), before)
