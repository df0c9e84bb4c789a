"""beta * R_c on the outputs of a network, and the options of both forms."""

import math

import pytest
import torch
from torch import Tensor, nn

from neuralbayes import MIM, RunningPrior, Smoothness, smoothness


def random_batch(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


# What is kept smooth


class Two(nn.Module):
    def forward(self, x: Tensor) -> list[Tensor]:
        return [x.flatten(1), x.sin()]


@pytest.mark.parametrize(
    ("of", "F"),
    [
        ("pooled", lambda x: x.sin().mean((2, 3))),
        ("logits", lambda x: x.sin()),
        ("posterior", lambda x: x.sin().softmax(1)),
        (lambda outputs: outputs[0], lambda x: x.flatten(1)),
    ],
    ids=["pooled", "logits", "posterior", "callable"],
)
def test_what_is_kept_smooth_of_the_last_output(of: str, F: object) -> None:
    """Appendix B pools the last hidden state, section 4.2 uses L(x), and the authors' DML uses the logits."""
    x = random_batch(6, 3, 2, 2)
    options = {"scale": 0.2, "fraction": 0.5, "zeta": "sample", "center": True, "coefficients": "binary"}
    torch.manual_seed(3)
    ours = Smoothness(beta=2.0, of=of, **options)(Two(), x)
    torch.manual_seed(3)
    assert ours.item() == pytest.approx(2.0 * smoothness(F, x, **options).item(), rel=1e-12)


def test_outputs_of_the_clean_pass_are_reused() -> None:
    x, network = random_batch(6, 3, 2, 2), Two()
    calls = []
    network.register_forward_hook(lambda *_: calls.append(1))
    torch.manual_seed(3)
    own = Smoothness(of="logits")(network, x)
    torch.manual_seed(3)
    given = Smoothness(of="logits")(network, x, clean=Two()(x))
    assert torch.equal(own, given)
    assert len(calls) == 3  # two without, one with


# Errors


@pytest.mark.parametrize(
    ("x", "got"),
    [
        (torch.zeros(3), r"\(3,\) of torch.float32"),
        (torch.zeros(0, 3), r"\(0, 3\)"),
        (torch.zeros(3, 2, dtype=torch.int64), "int64"),
    ],
)
def test_a_batch_that_cannot_be_perturbed_is_refused(x: Tensor, got: str) -> None:
    with pytest.raises(ValueError, match=f"`x` must be a floating tensor of shape .* got .*{got}"):
        smoothness(torch.sin, x)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("scale", 0.0),
        ("scale", -1.0),
        ("scale", math.nan),
        ("fraction", 0.0),
        ("fraction", 1.1),
        ("fraction", math.nan),
        ("zeta", "each"),
        ("coefficients", "uniform"),
        ("beta", -1.0),
        ("beta", math.nan),
        ("beta", math.inf),
        ("of", "features"),
    ],
)
def test_bad_options_are_named(option: str, value: object) -> None:
    if option not in ("beta", "of"):
        with pytest.raises(ValueError, match=f"`{option}` must be .* got {value!r}"):
            smoothness(torch.sin, torch.ones(3, 2), **{option: value})
    with pytest.raises(ValueError, match=f"`{option}` must be .* got {value!r}"):
        Smoothness(**{option: value})


def test_weights_of_samples_reach_the_sum() -> None:
    """A map that stretches only the first sample, which has all the weight."""
    x = torch.eye(4, dtype=torch.float64)
    stretch = torch.tensor([3.0, 0.0, 0.0, 0.0], dtype=torch.float64)[:, None]
    value = Smoothness(of="logits")(lambda batch: stretch * batch, x, sample_weight=torch.tensor([1.0, 0.0, 0.0, 0.0]))
    assert float(value) == pytest.approx(9.0, rel=1e-9)


def test_defaults_are_those_of_the_paper() -> None:
    R_c = Smoothness()
    found = (R_c.beta, R_c.of, R_c.scale, R_c.fraction, R_c.zeta, R_c.center, R_c.coefficients)
    assert found == (1.0, "pooled", 0.1, 1.0, "batch", False, "normal")
    assert (MIM().alpha, MIM().version, MIM().target_prior, RunningPrior().momentum) == (2.0, 2, None, 0.9)
