"""Default values equal the documented ones: the numbers of the paper."""

import torch

from neuralbayes import MIM, RunningPrior, Smoothness

X = torch.linspace(-1.0, 1.0, 15, dtype=torch.float64).reshape(5, 3)
WEIGHT = torch.linspace(-2.0, 1.0, 12, dtype=torch.float64).reshape(3, 4).cos()


def test_the_module_of_smoothness_has_the_same_defaults() -> None:
    R_c = Smoothness()
    found = (R_c.beta, R_c.of, R_c.scale, R_c.fraction, R_c.zeta, R_c.center)
    assert found == (1.0, "pooled", 0.1, 1.0, "batch", False)


def test_mim_is_version_2_with_alpha_2() -> None:
    assert (MIM().alpha, MIM().version, MIM().target_prior) == (2.0, 2, None)


def test_a_running_prior_forgets_a_tenth() -> None:
    assert RunningPrior().momentum == 0.9
