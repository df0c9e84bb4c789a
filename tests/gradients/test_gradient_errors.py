"""Bad input to `backward`: the error names the argument, what it must be and what it got."""

import numpy as np
import pytest
import torch
from gradient_cases import mlp, points
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, Objective

every_marginal = pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
with_and_without_pieces = pytest.mark.parametrize("size", [None, 2])


class Returns(nn.Module):
    """Returns a given output, with as many samples as its input."""

    def __init__(self, value: object) -> None:
        super().__init__()
        self.value = value
        self.weight = nn.Parameter(torch.ones(()))

    def forward(self, x: Tensor) -> object:
        return self.value[: len(x)] * self.weight if isinstance(self.value, Tensor) else self.value


# The network


@every_marginal
@with_and_without_pieces
@pytest.mark.parametrize("shape", [(5,), (5, 1)], ids=["rank-1", "one-state"])
def test_logits_of_a_wrong_shape(marginal: str, size: int | None, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"`logits` must have shape \(n_samples, n_states, \*spatial\) .* got \("):
        nb.backward(MIM(), Returns(torch.ones(shape)), torch.ones(5, 3), marginal=marginal, microbatch_size=size)


@every_marginal
@with_and_without_pieces
@pytest.mark.parametrize("make", [MIM, DML])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_logits_that_are_no_numbers(make: type[Objective], marginal: str, size: int | None, bad: float) -> None:
    logits = torch.randn(6, 4)
    logits[1, 2] = bad
    with pytest.raises(ValueError, match="`logits` must be finite, got NaN or infinity"):
        nb.backward(make(), Returns(logits), torch.ones(6, 1), marginal=marginal, microbatch_size=size)


def test_integer_logits() -> None:
    with pytest.raises(TypeError, match=r"`logits` must be of a floating dtype, got torch\.int64"):
        nb.backward(MIM(), Returns([torch.ones(5, 3, dtype=torch.int64)]), torch.ones(5, 3))


def test_a_network_that_is_no_module() -> None:
    with pytest.raises(TypeError, match=r"`network` must be a torch\.nn\.Module, .* got function"):
        nb.backward(MIM(), lambda x: x, torch.ones(5, 3))  # type: ignore[arg-type]


# The batch


def test_an_empty_batch() -> None:
    with pytest.raises(ValueError, match=r"`batch` must have at least one sample, got shape \(0, 5\)"):
        nb.backward(MIM(), mlp(), points(0))


@pytest.mark.parametrize("batch", [[[1.0, 2.0]], None, torch.tensor(1.0)], ids=["list", "none", "scalar"])
def test_a_batch_that_is_none(batch: Tensor) -> None:
    with pytest.raises(TypeError, match=r"`batch` must be a tensor of shape \(n_samples, \*features\), got"):
        nb.backward(MIM(), mlp(), batch)


@pytest.mark.parametrize("size", [0, -3, True, 2.5, "7", np.int64(0), np.bool_(True), np.float64(7.0)], ids=repr)
def test_a_micro_batch_size_that_cannot_be(size: int) -> None:
    with pytest.raises(ValueError, match="`microbatch_size` must be an integer of at least 1, got"):
        nb.backward(MIM(), mlp(), points(10), microbatch_size=size)


BAD_WEIGHTS = {
    "too-few": torch.ones(9),
    "wrong-rank": torch.ones(10, 1),
    "negative": torch.arange(10.0) - 1.0,
    "zero-sum": torch.zeros(10),
    "nan": torch.full((10,), torch.nan),
    "infinite": torch.full((10,), torch.inf),
}


@pytest.mark.parametrize("weight", BAD_WEIGHTS.values(), ids=BAD_WEIGHTS)
@with_and_without_pieces
def test_sample_weights_that_cannot_be(weight: Tensor, size: int | None) -> None:
    with pytest.raises(ValueError, match="`sample_weight` must"):
        nb.backward(MIM(), mlp(), points(10), sample_weight=weight, microbatch_size=size)


# The objective


@pytest.mark.parametrize("objective", [nn.Identity(), MIM, "mim", None], ids=["module", "class", "name", "none"])
def test_an_objective_that_is_none(objective: Objective) -> None:
    with pytest.raises(TypeError, match="`objective` must be an Objective or a WeightedSum, got"):
        nb.backward(objective, mlp(), points(10))


class ForgotTheStates(Objective):
    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return p_zx / p_z


class ForgotTheSamples(Objective):
    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return (p_zx / p_z).sum()


class ForgotThePrior(Objective):
    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return p_zx[:, 0]

    def prior_term(self, p_z: Tensor) -> Tensor:
        return p_z.log()


@every_marginal
@with_and_without_pieces
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (ForgotTheStates, r"`ForgotTheStates\.sample_term` must .* got \(\d+, 4\)"),
        (ForgotTheSamples, r"`ForgotTheSamples\.sample_term` must .* got \(\)"),
        (ForgotThePrior, r"`ForgotThePrior\.prior_term` must .* got \(4,\)"),
    ],
    ids=["sample_term-of-states", "sample_term-summed", "prior_term"],
)
def test_a_users_term_of_a_wrong_shape(make: type[Objective], message: str, marginal: str, size: int | None) -> None:
    with pytest.raises(ValueError, match=message):
        nb.backward(make(), mlp(), points(10), marginal=marginal, microbatch_size=size)


# The rest


@pytest.mark.parametrize("marginal", ["batch", "", None, 0.9], ids=repr)
def test_an_unknown_marginal(marginal: str) -> None:
    with pytest.raises(ValueError, match='`marginal` must be "minibatch", "running", "exact" or a RunningPrior, got'):
        nb.backward(MIM(), mlp(), points(10), marginal=marginal)  # type: ignore[arg-type]


def test_a_process_group_without_processes() -> None:
    with pytest.raises(ValueError, match=r"`process_group` was given, but torch\.distributed is not initialised"):
        nb.backward(MIM(), mlp(), points(10), process_group=object())  # type: ignore[arg-type]


def test_an_objective_with_parameters_to_train_is_refused() -> None:
    class Learned(nb.DML):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

    with pytest.raises(ValueError, match="`objective` must have no parameters of its own"):
        nb.backward(Learned(), nn.Linear(3, 2), torch.zeros(4, 3))


def test_a_smoothness_that_is_none_is_refused() -> None:
    with pytest.raises(TypeError, match="`smoothness` must be a Smoothness, got float"):
        nb.backward(nb.DML(), nn.Linear(3, 2), torch.zeros(4, 3), smoothness=2.0)


@every_marginal
def test_a_network_that_loses_a_sample_of_a_piece(marginal: str) -> None:
    class Shorter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = mlp()

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = self.network(x[1:])
            return result

    with pytest.raises(ValueError, match=r"`network` must return .* with n_samples = 5, got Tensor of \(4, 4\)"):
        nb.backward(MIM(), Shorter(), points(10), microbatch_size=5, marginal=marginal)
