"""Bad input to `backward`: the error names the argument, what it must be and what it got."""

from math import inf, nan

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


BAD = {
    "`logits` must be .* torch.int64": {"network": Returns([torch.ones(10, 3, dtype=torch.int64)])},
    "`network` must be a torch.nn.Module, .* got function": {"network": lambda x: x},
    r"`batch` must have at least one sample, got shape \(0, 5\)": {"batch": points(0)},
    "`batch` must be a tensor .* got list": {"batch": [[1.0, 2.0]]},
    "`batch` must be a tensor .* got None": {"batch": None},
    "`batch` must be a tensor .* got Tensor": {"batch": torch.tensor(1.0)},
    "`objective` must be .* got Identity": {"objective": nn.Identity()},
    "`objective` must be .* got type": {"objective": MIM},
    "`objective` must be .* got str": {"objective": "mim"},
    "`marginal` must be .* got 'batch'": {"marginal": "batch"},
    "`marginal` must be .* got 0.9": {"marginal": 0.9},
    "`smoothness` must be a Smoothness, got float": {"smoothness": 2.0},
    r"`process_group` was given, but torch\.distributed": {"process_group": object()},
}
SIZES = [0, -3, True, 2.5, "7", np.int64(0), np.bool_(True), np.float64(7.0)]
WEIGHTS = [torch.ones(9), torch.ones(10, 1), torch.arange(10.0) - 1.0, *(torch.full((10,), w) for w in (0.0, nan, inf))]
CASES = [*BAD.items()]
CASES += [("`microbatch_size` must be an integer of at least 1, got", {"microbatch_size": size}) for size in SIZES]
CASES += [
    ("`sample_weight` must", {"sample_weight": weight, "microbatch_size": size})
    for weight in WEIGHTS
    for size in (None, 2)
]


@pytest.mark.parametrize(("message", "bad"), CASES)
def test_an_argument_that_cannot_be_is_named(message: str, bad: dict[str, object]) -> None:
    arguments = {"objective": MIM(), "network": mlp(), "batch": points(10)} | bad
    with pytest.raises((TypeError, ValueError), match=message):
        nb.backward(**arguments)  # type: ignore[arg-type]


# The objective


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


def test_an_objective_with_parameters_to_train_is_refused() -> None:
    class Learned(nb.DML):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(()))

    with pytest.raises(ValueError, match="`objective` must have no parameters of its own"):
        nb.backward(Learned(), nn.Linear(3, 2), torch.zeros(4, 3))


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
