"""A call of `backward` that fails changes nothing: gradients, buffers and running averages stay as before."""

from collections.abc import Callable

import pytest
import torch
from gradient_cases import batch_norm_network, grads, mlp, points, whole_batch
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, RunningPrior, Smoothness

every_error = pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, MemoryError])
with_and_without_gradients = pytest.mark.parametrize("there", [False, True], ids=["none", "some"])


class FailsAt:
    """Raises at the n-th call."""

    def __init__(self, n: int, error: type[BaseException]) -> None:
        self.n, self.error = n, error

    def __call__(self, *_: object) -> None:
        self.n -= 1
        if self.n == 0:
            raise self.error("in the middle")


def snapshot(module: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in module.state_dict().items()}


def check_untouched(network: nn.Module, there: bool, call: Callable[[], object], error: type[BaseException]) -> None:
    """Run a call that fails; gradients must be the same objects with the same values, and buffers unchanged."""
    for p in network.parameters():
        p.grad = torch.full_like(p, 0.5) if there else None
    before, state = [p.grad for p in network.parameters()], snapshot(network)
    with pytest.raises(error, match="in the middle"):
        call()
    for p, old in zip(network.parameters(), before, strict=True):
        assert p.grad is old
        assert old is None or bool((old == 0.5).all())
    after = network.state_dict()
    assert after.keys() == state.keys()
    for name, value in state.items():
        torch.testing.assert_close(after[name], value, rtol=0, atol=0, equal_nan=True)
    assert all("forward" not in vars(module) for module in network.modules())
    assert len(network[1]._forward_pre_hooks) == 0


@with_and_without_gradients
@pytest.mark.parametrize(
    ("marginal", "n"),
    [("exact", 1), ("exact", 3), ("exact", 5), ("exact", 6), ("minibatch", 1), ("minibatch", 3), ("running", 3)],
)
def test_in_a_pass_of_the_network(there: bool, marginal: str, n: int) -> None:
    """With three micro-batches, it fails in the pass for p(z), or after one or two have added their gradients."""
    network = batch_norm_network()
    fail = FailsAt(n, RuntimeError)
    network[3].register_forward_pre_hook(lambda *_: fail())
    check_untouched(
        network,
        there,
        lambda: nb.backward(DML(), network, points(20), microbatch_size=7, marginal=marginal),  # type: ignore[arg-type]
        RuntimeError,
    )


@every_error
@with_and_without_gradients
def test_in_the_backward_pass(error: type[BaseException], there: bool) -> None:
    """It fails when half of the parameters have the gradient of the second micro-batch."""
    network = batch_norm_network()
    fail = FailsAt(2, error)
    network[1].weight.register_hook(lambda gradient: fail())
    check_untouched(network, there, lambda: nb.backward(DML(), network, points(20), microbatch_size=7), error)


@with_and_without_gradients
@pytest.mark.parametrize("recompute", [False, True])
def test_in_the_perturbed_pass(there: bool, recompute: bool) -> None:
    network, R_c = batch_norm_network(), Smoothness(fraction=0.5)
    fail = FailsAt(2, RuntimeError)
    network[3].register_forward_pre_hook(lambda _module, inputs: fail() if len(inputs[0]) == 4 else None)
    check_untouched(
        network,
        there,
        lambda: nb.backward(DML(), network, points(21), microbatch_size=7, smoothness=R_c, recompute=recompute),
        RuntimeError,
    )


@pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
def test_a_batch_that_is_no_number_does_not_reach_the_running_statistics(marginal: str) -> None:
    """A caller that skips a bad batch can continue, and the running p(z) has no NaN."""
    network, objective, x = batch_norm_network(), DML(), points(20)
    nb.backward(objective, network, x, marginal="running")
    state = snapshot(network) | snapshot(objective)
    x[3, 2] = torch.nan
    with pytest.raises(ValueError, match="`logits`"):
        nb.backward(objective, network, x, microbatch_size=7, marginal=marginal)  # type: ignore[arg-type]
    for name, value in (snapshot(network) | snapshot(objective)).items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=0)


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_running_average_is_what_it_was(n_before: int) -> None:
    network, running = mlp(), RunningPrior(0.5)
    for _ in range(n_before):
        running.update(0, torch.full((4,), 0.25, dtype=torch.float64))
    fail = FailsAt(3, RuntimeError)
    network[0].register_forward_pre_hook(lambda *_: fail())
    state = snapshot(running)
    with pytest.raises(RuntimeError, match="in the middle"):
        nb.backward(DML(), network, points(20), microbatch_size=7, marginal=running)
    after = running.state_dict()
    assert after.keys() == state.keys()
    assert all(torch.equal(after[name], value) for name, value in state.items())
    nb.backward(DML(), mlp(), points(20), microbatch_size=7, marginal=running)
    assert int(running.get_buffer("n_updates_0")) == n_before + 3


# Without failure


def test_gradients_that_were_there_stay_the_same_tensors() -> None:
    """An optimiser or a communication hook may hold the gradient tensors."""
    network, x = mlp(), points(30)
    _, gradient = whole_batch(DML(), network, x)
    for p in network.parameters():
        p.grad = torch.ones_like(p)
    before = [p.grad for p in network.parameters()]
    nb.backward(DML(), network, x, microbatch_size=7)
    assert all(p.grad is old for p, old in zip(network.parameters(), before, strict=True))
    torch.testing.assert_close(grads(network), gradient + 1.0, rtol=0, atol=1e-10)


def test_a_parameter_that_is_not_used_keeps_its_gradient() -> None:
    network = mlp()
    network.unused = nn.Parameter(torch.ones(2))
    network.spare = nn.Parameter(torch.ones(2))
    network.unused.grad = torch.full((2,), 0.5)
    first = network[0]
    network.forward = lambda x: network[2](network[1](first(x)))
    nb.backward(DML(), network, points(20), microbatch_size=7)
    assert network.unused.grad.tolist() == [0.5, 0.5]
    assert network.spare.grad is None
