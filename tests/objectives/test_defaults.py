"""Default values equal the documented ones: the numbers of the paper."""

import pytest
import torch

from neuralbayes import MIM, RunningPrior, Smoothness, smoothness
from neuralbayes.objectives.virtual_adversarial import adversarial_perturbation, virtual_adversarial

X = torch.linspace(-1.0, 1.0, 15, dtype=torch.float64).reshape(5, 3)
WEIGHT = torch.linspace(-2.0, 1.0, 12, dtype=torch.float64).reshape(3, 4).cos()


def network(x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x @ WEIGHT)


def test_smoothness_takes_the_step_of_the_paper() -> None:
    options = {"fraction": 1.0, "zeta": "batch", "center": False, "coefficients": "normal"}
    ours = smoothness(network, X, generator=torch.Generator().manual_seed(1))
    assert torch.equal(ours, smoothness(network, X, 0.1, generator=torch.Generator().manual_seed(1), **options))


def test_the_module_of_smoothness_has_the_same_defaults() -> None:
    R_c = Smoothness()
    found = (R_c.beta, R_c.of, R_c.scale, R_c.fraction, R_c.zeta, R_c.center)
    assert found == (1.0, "pooled", 0.1, 1.0, "batch", False)


def test_mim_is_version_2_with_alpha_2() -> None:
    assert (MIM().alpha, MIM().version, MIM().target_prior) == (2.0, 2, None)


def test_a_running_prior_forgets_a_tenth() -> None:
    assert RunningPrior().momentum == 0.9


@pytest.mark.parametrize("function", [virtual_adversarial, adversarial_perturbation])
def test_one_iteration_with_a_tenth_of_the_radius_looks_for_the_perturbation(function: object) -> None:
    ours = function(network, X, 2.0, generator=torch.Generator().manual_seed(1))
    same = function(network, X, 2.0, n_iterations=1, step=0.1, generator=torch.Generator().manual_seed(1))
    assert torch.equal(ours, same)
