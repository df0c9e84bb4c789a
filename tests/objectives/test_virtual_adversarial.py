"""Virtual adversarial smoothness: direction, length, value and gradient."""

import math

import pytest
import torch
from torch import nn

from neuralbayes.objectives.virtual_adversarial import divergence, virtual_adversarial


class Recorder:
    """A function that records its inputs."""

    def __init__(self, function):
        self.function = function
        self.inputs = []

    def __call__(self, x):
        self.inputs.append(x.detach())
        return self.function(x)


def perturbation(function, x, radius, **settings):
    """What is added to `x` in the end."""
    recorder = Recorder(function)
    virtual_adversarial(recorder, x, radius, **settings)
    return recorder.inputs[-1] - x


def test_the_divergence_is_the_loop_over_states():
    logits, others = torch.randn(3, 4, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    for i in range(3):
        p, q = logits[i].softmax(0).tolist(), others[i].softmax(0).tolist()
        expected = sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        assert float(divergence(logits, others)[i]) == pytest.approx(expected)


def test_the_direction_is_the_first_eigenvector_of_the_hessian():
    """For logits W x, the Hessian of the divergence at x is W' (diag p - p p') W."""
    weight, x = torch.randn(5, 6, dtype=torch.float64), torch.randn(4, 6, dtype=torch.float64)
    r = perturbation(lambda x: x @ weight.T, x, 1.0, n_iterations=200, step=1e-4)
    for row, found in zip(x, r, strict=True):
        p = (weight @ row).softmax(0)
        hessian = weight.T @ (torch.diag(p) - torch.outer(p, p)) @ weight
        top = torch.linalg.eigh(hessian).eigenvectors[:, -1]
        assert abs(float(found @ top)) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("shape", [(5, 7), (5, 3, 4, 4)])
def test_the_length_is_the_radius_of_each_sample(shape):
    network = nn.Sequential(nn.Flatten(), nn.Linear(math.prod(shape[1:]), 3))
    radius = torch.tensor([0.0, 1e-3, 0.5, 2.0, 30.0])
    x = torch.randn(shape)
    torch.testing.assert_close(perturbation(network, x, radius).flatten(1).norm(dim=1), radius, atol=1e-5, rtol=1e-4)


def test_the_value_is_the_mean_divergence_with_the_clean_output_held_fixed():
    network = nn.Linear(4, 3).double()
    x = torch.randn(6, 4, dtype=torch.float64)
    generator = torch.Generator().manual_seed(1)
    value = virtual_adversarial(network, x, 0.5, generator=generator)
    r = perturbation(network, x, 0.5, generator=generator.manual_seed(1))
    target = network(x).detach()
    torch.testing.assert_close(value, divergence(target, network(x + r)).mean())
    (slope,) = torch.autograd.grad(value, network.weight)
    (expected,) = torch.autograd.grad(divergence(target, network(x + r)).mean(), network.weight)
    torch.testing.assert_close(slope, expected)
    assert network.weight.grad is None  # the search for the direction leaves no gradients on the parameters


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius": -1.0}, "`radius` must be non-negative, got -1.0"),
        ({"radius": torch.tensor([1.0, math.nan])}, "`radius` must be non-negative"),
        ({"radius": 1.0, "n_iterations": 0}, "`n_iterations` must be at least 1, got 0"),
        ({"radius": 1.0, "step": 0.0}, "`step` must be positive, got 0.0"),
    ],
)
def test_a_wrong_parameter_is_named(settings, message):
    with pytest.raises(ValueError, match=message):
        virtual_adversarial(lambda x: x, torch.randn(2, 3), **settings)


def test_a_sharp_softmax_has_a_direction_beside_one_that_is_not():
    """The gradients of the two samples differ by a factor of 1e26, and the square of the smaller one is 0."""
    r = perturbation(lambda x: torch.cat([torch.zeros_like(x), -x], dim=1), torch.tensor([[0.0], [60.0]]), 1.0)
    assert r.abs().flatten().tolist() == pytest.approx([1.0, 1.0])


def test_the_search_starts_where_it_is_told_to():
    function, x = Recorder(torch.tanh), torch.randn(5, 4, dtype=torch.float64)
    start = torch.randn(5, 4, dtype=torch.float64)
    virtual_adversarial(function, x, 2.0, clean=function(x), step=0.5, start=start)
    torch.testing.assert_close(function.inputs[1], x + nn.functional.normalize(start), rtol=0, atol=1e-12)
