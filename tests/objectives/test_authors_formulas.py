"""The paper's equations as its authors computed them, with their stopped gradients and factors, against ours.

In float64 and without the epsilon of 1e-7 that they add against overflow: value and gradient agree to 1e-10.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from neuralbayes import DML, MIM, WeightedSum, smoothness
from neuralbayes.networks.encoders import convolutional_encoder
from neuralbayes.networks.hidden import HiddenStates

TOLERANCE = 1e-10
EPSILON = 1e-7


def random_logits(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return (2.0 * torch.randn(*shape, dtype=torch.float64, generator=generator)).requires_grad_()


def authors_dml(logits: Tensor, epsilon: float = 0.0) -> Tensor:
    """Theorem 3 with log(1 + quotient) as in Eq. 13; the mean over samples and states, without the factor 1/2."""
    L = logits.softmax(dim=1)
    E = L.mean(dim=0, keepdim=True)
    f = L / E + epsilon
    f_bar = (1 - L) / (1 - E) + epsilon
    return (f * (1 + f_bar / f).log() + f_bar * (1 + f / f_bar).log()).mean()


def posterior_entropy(logits: Tensor) -> Tensor:
    """First term of Eqs. 5 and 7: no gradient through the logarithm."""
    L = logits.softmax(dim=1)
    return -(L * L.detach().log()).sum(dim=1).mean()


def authors_mim_v1(logits: Tensor, alpha: float) -> Tensor:
    """Eq. 5: the second term has the coefficient 1 + alpha and no gradient through the logarithm."""
    E = logits.softmax(dim=1).mean(dim=0)
    return posterior_entropy(logits) + (1 + alpha) * (E * E.detach().log()).sum(dim=0).mean()


def authors_uniform_prior(logits: Tensor) -> Tensor:
    """R_p of Eqs. 6 and 15: summed over states, averaged over positions."""
    E = logits.softmax(dim=1).mean(dim=0)
    K = len(E)
    return -(E.log() / K + (K - 1) / K * (1 - E).log()).sum(dim=0).mean()


def authors_mim_v2(logits: Tensor, alpha: float) -> Tensor:
    """Eqs. 7 and 14."""
    return posterior_entropy(logits) + (1 + alpha) * authors_uniform_prior(logits)


def assert_equal(ours: Callable[[Tensor], Tensor], theirs: Callable[[Tensor], Tensor], logits: Tensor) -> None:
    """Assert equal values and gradients."""
    values = ours(logits), theirs(logits)
    torch.testing.assert_close(*values, rtol=0, atol=TOLERANCE)
    gradients = [torch.autograd.grad(value, logits)[0] for value in values]
    assert float(gradients[0].abs().max()) > 1e-3
    torch.testing.assert_close(*gradients, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("n_states", [2, 3, 10])
def test_their_dml_is_twice_ours(n_states: int) -> None:
    assert_equal(lambda logits: 2 * DML()(logits), authors_dml, random_logits(40, n_states))


def test_their_epsilon_moves_dml_by_no_more_than_its_size() -> None:
    logits = random_logits(40, 10).detach()
    moved = float(authors_dml(logits, EPSILON) - authors_dml(logits))
    assert 0 < abs(moved) < 100 * EPSILON


VECTOR, MAP = (40, 10), (12, 6, 3, 3)


@pytest.mark.parametrize("shape", [VECTOR, MAP], ids=["vector", "map"])
@pytest.mark.parametrize("alpha", [0.0, 4.0])
def test_their_versions_of_mim_are_ours(shape: tuple[int, ...], alpha: float) -> None:
    logits = random_logits(*shape)
    assert_equal(MIM(alpha, version=1), lambda x: authors_mim_v1(x, alpha), logits)
    assert_equal(MIM(alpha, version=2), lambda x: authors_mim_v2(x, alpha), logits)


def test_their_uniform_prior_is_ours() -> None:
    def ours(logits: Tensor) -> Tensor:
        return MIM(alpha=0.0, version=2).of_prior(logits.softmax(dim=1).mean(dim=0))

    assert_equal(ours, authors_uniform_prior, random_logits(*MAP))


def test_their_objective_over_layers_and_scales_is_ours() -> None:
    """Eqs. 14 and 15: the mean over four hidden states and the same pooled by 2, by the gradients of the weights."""
    torch.manual_seed(0)
    encoder = convolutional_encoder((4, 5, 6, 7), in_channels=1).double()
    network = HiddenStates(encoder, ["relu1", "relu2", "relu3", "relu4"], scales=(1, 2))
    outputs = list(network(torch.rand(6, 1, 24, 24, dtype=torch.float64)).values())
    assert len(outputs) == 8
    ours = WeightedSum(MIM(alpha=4.0))(outputs)
    theirs = torch.stack([authors_mim_v2(output, alpha=4.0) for output in outputs]).mean()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)
    weight = encoder.conv1.weight
    gradients = [torch.autograd.grad(value, weight, retain_graph=True)[0] for value in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=0, atol=TOLERANCE)


def test_their_smoothness_is_ours() -> None:
    """R_c: v in {0, 1}, X centred, one zeta per batch; the authors divide by the squared length of the actual step."""
    x = random_logits(30, 5, seed=1).detach()
    weight = random_logits(5, 3, seed=2)

    def network(batch: Tensor) -> Tensor:
        return torch.tanh(batch @ weight)

    generator = torch.Generator().manual_seed(3)
    ours = smoothness(network, x, center=True, coefficients="binary", generator=generator)

    generator = torch.Generator().manual_seed(3)
    v = torch.randint(0, 2, (30, 30), generator=generator).double()
    zeta = 0.1 * torch.randn(1, dtype=torch.float64, generator=generator)
    noise = ((x - x.mean(dim=0)).T @ v.T).T
    step = zeta * noise / noise.norm(dim=1, keepdim=True)
    change = network(x + step) - network(x)
    theirs = (change.square().sum(dim=1) / step.square().sum(dim=1)).mean()
    torch.testing.assert_close(ours, theirs, rtol=0, atol=TOLERANCE)
    gradients = [torch.autograd.grad(value, weight)[0] for value in (ours, theirs)]
    torch.testing.assert_close(*gradients, rtol=0, atol=TOLERANCE)
