"""Mistakes that researchers make: each has an error or a warning that names it and says what to do."""

import warnings

import pytest
import torch
from gradient_cases import OBJECTIVES
from torch import Tensor, nn

import neuralbayes as nb

X = torch.randn(12, 5, generator=torch.Generator().manual_seed(0))


def network() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(5, 3)


class CentredByBatch(nb.Objective):
    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return (p_zx - p_zx.mean(dim=0)).square().sum(dim=1)


class Kernel(nb.Objective):
    """A term of pairs of samples, as in a maximum mean discrepancy."""

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return (-torch.cdist(p_zx.flatten(1), p_zx.flatten(1)).square()).exp().mean(dim=1)


class Neighbour(nb.Objective):
    """Compares each sample with the one before."""

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return (p_zx * p_zx.roll(1, dims=0)).sum(dim=1)


@pytest.mark.parametrize("objective", [CentredByBatch, Kernel, Neighbour])
@pytest.mark.parametrize("microbatch_size", [None, 4])
def test_a_term_that_couples_samples_is_refused_with_the_remedy(objective, microbatch_size):
    module, made = network(), objective()
    for _ in range(2):  # also when it is tried again
        with pytest.raises(
            ValueError, match=rf"`{objective.__name__}.sample_term` must .*objective\(network\(batch\)\)"
        ):
            nb.backward(made, module, X, microbatch_size=microbatch_size)
    assert module.weight.grad is None


@pytest.mark.parametrize("name", OBJECTIVES)
def test_terms_of_single_samples_are_not_refused(name):
    for shape in ((5, 3), (6, 4, 2, 2), (2, 50)):
        OBJECTIVES[name]().check_independence(torch.randn(shape))


class Noisy(nb.Objective):
    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return (p_zx * torch.rand_like(p_zx)).sum(dim=1)


def test_a_term_that_draws_random_numbers_is_not_taken_for_a_coupled_one():
    nb.backward(Noisy(), network(), X, microbatch_size=4)


def test_the_check_draws_no_numbers_of_the_caller():
    drawn = []
    for checked in (True, False):
        torch.manual_seed(3)
        if checked:
            Noisy().check_independence(torch.zeros(4, 3))
        drawn.append(torch.rand(3))
    assert torch.equal(*drawn)


class Forgetful(nb.Objective):
    def __init__(self) -> None:
        self.strength = 2.0

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return p_zx[:, 0]


class ForgetfulWithPart(nb.Objective):
    def __init__(self) -> None:
        self.part = nn.Identity()


def test_a_missing_call_of_the_base_class_is_named():
    with pytest.raises(TypeError, match=r"Forgetful.__init__` must call `super\(\).__init__\(\)`"):
        nb.backward(Forgetful(), network(), X)
    with pytest.raises(TypeError, match=r"Forgetful.__init__` must call `super\(\).__init__\(\)`"):
        Forgetful()(X)
    with pytest.raises((TypeError, AttributeError), match=r"__init__"):
        ForgetfulWithPart()


@pytest.mark.parametrize("microbatch_size", [None, 4])
def test_a_batch_of_another_precision_than_the_network_is_named(microbatch_size):
    with pytest.raises(TypeError, match=r"`batch` must have the dtype .*float32, got torch.float64"):
        nb.backward(nb.MIM(), network(), X.double(), microbatch_size=microbatch_size)
    with pytest.raises(TypeError, match=r"`batch` must have the dtype .*float64, got torch.float32"):
        nb.backward(nb.MIM(), network().double(), X, microbatch_size=microbatch_size)


def test_a_network_that_converts_its_input_is_not_bothered():
    module = nn.Sequential(nn.Identity(), network())
    module[0].register_forward_hook(lambda _module, _inputs, output: output.float())
    nb.backward(nb.MIM(), module, X.double())


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_a_call_without_gradients_is_named(context):
    with context(), pytest.raises(ValueError, match=r"`backward` must run with gradients.*no_grad"):
        nb.backward(nb.MIM(), network(), X)


def test_probabilities_given_as_logits_are_warned_of_once():
    module = nn.Sequential(network(), nn.Softmax(dim=1))
    objective = nb.MIM()
    with pytest.warns(UserWarning, match="`logits` look like probabilities"):
        nb.backward(objective, module, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nb.backward(objective, module, X)
        nb.backward(nb.MIM(), network(), X)
    with pytest.warns(UserWarning, match="`logits` look like probabilities"):
        nb.MIM()(X.softmax(dim=1))


def test_logits_that_are_all_positive_are_no_probabilities():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nb.MIM()(X.abs() + 0.1)
        nb.MIM()(torch.zeros(4, 3))
