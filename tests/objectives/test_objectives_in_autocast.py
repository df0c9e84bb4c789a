"""Objectives, R_c and virtual adversarial smoothness inside autocast: the same numbers as outside."""

from collections.abc import Callable

import pytest
import torch
from objective_cases import Case, every_objective
from torch import Tensor

from neuralbayes import smoothness
from neuralbayes.objectives.virtual_adversarial import divergence, virtual_adversarial


def rows(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def in_and_out(compute: Callable[[], Tensor]) -> tuple[Tensor, Tensor]:
    """The results of a function inside and outside autocast, with the same random numbers."""
    found = []
    for enabled in (True, False):
        torch.manual_seed(5)
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            found.append(compute())
    return found[0], found[1]


@every_objective
@pytest.mark.parametrize("shape", [(50, 3), (50, 3, 4)], ids=["vector", "positions"])
def test_value_and_gradient_of_an_objective(case: Case, shape: tuple[int, ...]) -> None:
    """The backward pass is inside autocast, too, as in a step of the training loop."""
    logits = rows(*shape)

    def compute() -> Tensor:
        leaf = logits.clone().requires_grad_()
        value = case.objective()(leaf, torch.linspace(0.1, 1.0, 50))
        value.backward()
        return torch.cat([value.detach().reshape(1), leaf.grad.flatten()])

    inside, outside = in_and_out(compute)
    assert inside.dtype == torch.float32
    assert torch.equal(inside, outside)


def kept_in_float32(x: Tensor) -> Tensor:
    """Without a matrix product, so autocast changes nothing."""
    return torch.stack([x.sum(1).tanh(), x.square().sum(1), x[:, 0]], dim=1)


@pytest.mark.parametrize("compute", [smoothness, virtual_adversarial])
@pytest.mark.parametrize("known", [False, True], ids=["computed", "given"])
def test_directions_and_differences_are_the_same(compute: Callable[..., Tensor], known: bool) -> None:
    x = rows(20, 6)
    clean = kept_in_float32(x) if known else None
    inside, outside = in_and_out(lambda: compute(kept_in_float32, x, 0.5, clean=clean))
    assert torch.equal(inside, outside)


@pytest.mark.parametrize("compute", [smoothness, virtual_adversarial])
def test_the_function_is_called_in_the_callers_autocast(compute: Callable[..., Tensor]) -> None:
    seen: list[tuple[bool, torch.dtype]] = []

    def function(x: Tensor) -> Tensor:
        seen.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
        return kept_in_float32(x)

    with torch.autocast("cpu", torch.float16):
        compute(function, rows(20, 6), 0.5)
    assert seen == [(True, torch.float16)] * (3 if compute is virtual_adversarial else 2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_divergence_of_logits_in_half_precision_is_float32(dtype: torch.dtype) -> None:
    """The softmax has six digits, not two."""
    logits, others = rows(20, 4).to(dtype), (rows(20, 4) + 0.1 * rows(20, 4).flip(0)).to(dtype)
    expected = divergence(logits.double(), others.double())
    ours = divergence(logits, others)
    assert ours.dtype == torch.float32
    torch.testing.assert_close(ours.double(), expected, rtol=1e-4, atol=3e-7)


def test_difference_of_outputs_in_half_precision_is_float32() -> None:
    """F(x) = 3x in bfloat16: R_c is computed from these outputs, and its sum is not rounded again."""
    x = rows(20, 6).bfloat16().float()
    with torch.autocast("cpu", torch.bfloat16):
        R_c = smoothness(lambda x: (3.0 * x).bfloat16(), x, scale=10.0)
    assert R_c.dtype == torch.float32
