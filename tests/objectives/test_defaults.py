"""Default values equal the documented ones: the numbers of the paper."""

from neuralbayes import MIM, RunningPrior, Smoothness


def test_defaults_are_those_of_the_paper() -> None:
    R_c = Smoothness()
    found = (R_c.beta, R_c.of, R_c.scale, R_c.fraction, R_c.zeta, R_c.center, R_c.coefficients)
    assert found == (1.0, "pooled", 0.1, 1.0, "batch", False, "normal")
    assert (MIM().alpha, MIM().version, MIM().target_prior) == (2.0, 2, None)
    assert RunningPrior().momentum == 0.9
