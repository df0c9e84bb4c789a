"""`marginal="exact"`: the gradient of the whole batch, at any micro-batch size."""

import pytest
import torch
from gradient_cases import (
    OBJECTIVES,
    HiddenStatesOfTwoLayers,
    grads,
    images,
    mlp,
    points,
    relative_error,
    whole_batch,
)
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, WeightedSum

every_objective = pytest.mark.parametrize("name", OBJECTIVES)
any_microbatch = pytest.mark.parametrize("size", [1, 7, 50])
kept_or_not = pytest.mark.parametrize("recompute", [False, True])


@every_objective
@any_microbatch
@kept_or_not
def test_microbatches_give_the_gradient_of_the_whole_batch(name: str, size: int, recompute: bool) -> None:
    """Agrees to 1e-10 in float64; 7 does not divide 100."""
    objective, network, x = OBJECTIVES[name](), mlp(), points(100)
    value, gradient = whole_batch(objective, network, x)
    loss = nb.backward(objective, network, x, microbatch_size=size, marginal="exact", recompute=recompute)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value, abs=1e-12)
    assert float(gradient.norm()) > 1e-3  # not 0 by chance


@every_objective
@any_microbatch
def test_exact_gradient_in_float32(name: str, size: int) -> None:
    """Agrees to 1e-5 of the length of the gradient."""
    objective, network, x = OBJECTIVES[name](), mlp(dtype=torch.float32), points(100, torch.float32)
    value, gradient = whole_batch(objective, network, x)
    loss = nb.backward(objective, network, x, microbatch_size=size)
    assert relative_error(grads(network), gradient) < 1e-5
    assert loss.item() == pytest.approx(value, abs=1e-5)


def test_micro_batches_without_their_prior_would_fail_this_test() -> None:
    """The gradient accumulation of the paper differs from the gradient of the batch, so the tests above can fail."""
    network, x = mlp(), points(100)
    _, gradient = whole_batch(DML(), network, x)
    nb.backward(DML(), network, x, microbatch_size=7, marginal="minibatch")
    assert relative_error(grads(network), gradient) > 0.1


@every_objective
@pytest.mark.parametrize("as_dict", [False, True], ids=["list", "dict"])
@kept_or_not
def test_exact_gradient_of_several_outputs_with_positions(name: str, as_dict: bool, recompute: bool) -> None:
    """Appendix B: hidden states at several scales, each with a latent variable at every position."""
    network, x = HiddenStatesOfTwoLayers(as_dict), images(20)
    objective = WeightedSum([OBJECTIVES[name](), DML(), MIM()], weights=[0.5, 2.0, 1.0])
    value, gradient = whole_batch(objective, network, x)
    loss = nb.backward(objective, network, x, microbatch_size=3, recompute=recompute)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value, abs=1e-12)


@every_objective
def test_one_objective_is_averaged_over_the_outputs(name: str) -> None:
    network, x = HiddenStatesOfTwoLayers(), images(20)
    value, gradient = whole_batch(WeightedSum(OBJECTIVES[name]()), network, x)
    loss = nb.backward(OBJECTIVES[name](), network, x, microbatch_size=6)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value, abs=1e-12)


@every_objective
@pytest.mark.parametrize("size", [1, 7, None])
def test_exact_gradient_of_weighted_samples(name: str, size: int | None) -> None:
    """Weights need not sum to 1; samples of weight 0 do not count, not even a whole micro-batch of them."""
    network, x = mlp(), points(40)
    weight = 5.0 * torch.rand(40, dtype=torch.float64)
    weight[10:20] = 0.0
    value, gradient = whole_batch(OBJECTIVES[name](), network, x, weight)
    loss = nb.backward(OBJECTIVES[name](), network, x, microbatch_size=size, sample_weight=weight)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(value, abs=1e-12)


@every_objective
@pytest.mark.parametrize("marginal", ["exact", "minibatch"])
def test_a_single_micro_batch_is_the_whole_batch(name: str, marginal: str) -> None:
    network, x = mlp(), points(30)
    value, gradient = whole_batch(OBJECTIVES[name](), network, x)
    loss = nb.backward(OBJECTIVES[name](), network, x, marginal=marginal)
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-12)
    assert loss.item() == pytest.approx(value, abs=1e-12)


def test_gradients_are_added_to_those_that_were_there() -> None:
    network, x = mlp(), points(30)
    _, gradient = whole_batch(DML(), network, x)
    for p in network.parameters():
        p.grad = torch.ones_like(p)
    nb.backward(DML(), network, x, microbatch_size=7)
    torch.testing.assert_close(grads(network), gradient + 1.0, rtol=0, atol=1e-10)


def test_frozen_parameters_get_no_gradient() -> None:
    network, x = mlp(), points(30)
    first = next(network.parameters()).requires_grad_(False)
    nb.backward(DML(), network, x, microbatch_size=7)
    assert first.grad is None
    assert float(grads(network).norm()) > 1e-3


def test_the_loss_carries_no_graph() -> None:
    assert not nb.backward(DML(), mlp(), points(30), microbatch_size=7).requires_grad


def test_every_micro_batch_is_shown_to_the_monitor_once_in_order() -> None:
    network, x = mlp(), points(20)
    seen: list[Tensor] = []
    nb.backward(DML(), network, x, microbatch_size=7, monitor=lambda posteriors: seen.append(posteriors[0]))
    assert [len(p) for p in seen] == [7, 7, 6]
    torch.testing.assert_close(torch.cat(seen), network(x).softmax(1).detach(), rtol=0, atol=1e-14)
    assert not seen[0].requires_grad


@every_objective
@pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
@pytest.mark.parametrize("bias", [-1e4, 1e4, -69.0])
def test_gradient_is_finite_where_a_state_is_dead_or_has_everything(name: str, marginal: str, bias: float) -> None:
    """Priors of 0, 1 and 1e-30 in float32, as in training."""
    network, x = mlp(dtype=torch.float32), points(20, torch.float32)
    with torch.no_grad():
        network[-1].bias[0] = bias
    loss = nb.backward(OBJECTIVES[name](), network, x, microbatch_size=7, marginal=marginal)
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(grads(network)).all())


def test_descent_lowers_the_objective() -> None:
    """The loop of the README: a new objective, exact gradients, plain PyTorch."""
    network, x, objective = mlp(), points(60), OBJECTIVES["negative-information"]()
    losses = []
    for _ in range(30):
        network.zero_grad()
        losses.append(nb.backward(objective, network, x, microbatch_size=16).item())
        with torch.no_grad():
            for p in network.parameters():
                p -= 0.5 * p.grad
    assert losses[-1] < losses[0] - 0.3
    information = float(nb.mutual_information(network(x).detach(), from_logits=True))
    assert losses[-1] == pytest.approx(-information, abs=0.05)  # the last loss is one step behind


def test_bfloat16_logits_are_worked_on_in_float32() -> None:
    """A network that ends in bfloat16, as under autocast (elementwise, because products may be missing on a CPU)."""

    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(5))

        def forward(self, x: Tensor) -> Tensor:
            return (self.weight * x).bfloat16()

    network, x = Scale(), points(40, torch.float32)
    value, gradient = whole_batch(DML(), network, x)
    loss = nb.backward(DML(), network, x, microbatch_size=7)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(value, abs=1e-6)
    assert relative_error(grads(network), gradient) < 2e-2  # the gradient itself passes through bfloat16


def test_a_network_inside_distributed_data_parallel_is_taken_out_of_it() -> None:
    """DDP's own averaging over processes would count twice. It is not set up here, so it would fail if called."""
    network = mlp()
    wrapped = nn.parallel.DistributedDataParallel.__new__(nn.parallel.DistributedDataParallel)
    nn.Module.__init__(wrapped)
    wrapped.module = network
    nb.backward(DML(), wrapped, points(), microbatch_size=7)
    found = grads(network)
    network.zero_grad()
    DML()(network(points())).backward()
    torch.testing.assert_close(found, grads(network), rtol=0, atol=1e-12)


def test_samples_may_be_numbers() -> None:
    """A batch of indices, as for an embedding, has one dimension."""
    torch.manual_seed(1)
    network, batch = nn.Embedding(6, 3).double(), torch.tensor([0, 1, 2, 3, 4, 5, 0, 2])
    nb.backward(DML(), network, batch, microbatch_size=3)
    found = grads(network)
    network.zero_grad()
    DML()(network(batch)).backward()
    torch.testing.assert_close(found, grads(network), rtol=0, atol=1e-12)
