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
kept_or_not = pytest.mark.parametrize("recompute", [False, True])


@every_objective
@pytest.mark.parametrize("size", [1, 7, 50, None])
@kept_or_not
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)], ids=str)
def test_microbatches_give_the_gradient_of_the_whole_batch(
    name: str, size: int | None, recompute: bool, dtype: torch.dtype, tolerance: float
) -> None:
    """To a share of the length of the gradient; 7 does not divide 100."""
    objective, network, x = OBJECTIVES[name](), mlp(dtype=dtype), points(100, dtype)
    value, gradient = whole_batch(objective, network, x)
    loss = nb.backward(objective, network, x, microbatch_size=size, recompute=recompute)
    assert relative_error(grads(network), gradient) < tolerance
    assert loss.item() == pytest.approx(value, abs=tolerance)
    assert not loss.requires_grad
    assert float(gradient.norm()) > 1e-3  # not 0 by chance


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


def test_frozen_parameters_get_no_gradient() -> None:
    network, x = mlp(), points(30)
    first = next(network.parameters()).requires_grad_(False)
    nb.backward(DML(), network, x, microbatch_size=7)
    assert first.grad is None
    assert float(grads(network).norm()) > 1e-3


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


def test_samples_may_be_numbers() -> None:
    """A batch of indices, as for an embedding, has one dimension."""
    torch.manual_seed(1)
    network, batch = nn.Embedding(6, 3).double(), torch.tensor([0, 1, 2, 3, 4, 5, 0, 2])
    nb.backward(DML(), network, batch, microbatch_size=3)
    found = grads(network)
    network.zero_grad()
    DML()(network(batch)).backward()
    torch.testing.assert_close(found, grads(network), rtol=0, atol=1e-12)
