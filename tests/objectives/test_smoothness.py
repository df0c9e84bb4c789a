"""R_c, Eqs. 11 and 12: squared finite differences along unit directions in the span of the batch."""

import math

import pytest
import torch
from torch import Tensor, nn

from neuralbayes import smoothness
from neuralbayes.objectives.smoothness import span_directions


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def random_batch(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


class Recorder:
    """F(x) = 3x, and its inputs."""

    def __init__(self) -> None:
        self.inputs: list[Tensor] = []

    def __call__(self, x: Tensor) -> Tensor:
        self.inputs.append(x.detach())
        return 3.0 * x


# Values


def test_directions_outside_the_span_of_the_data_cost_nothing() -> None:
    """Eq. 12: the last two coordinates are 0 in every sample, so F may have any slope there."""
    x = random_batch(8, 5)
    x[:, 3:] = 0.0
    assert smoothness(lambda x: 1e6 * x[:, 3:], x).item() == 0.0


@pytest.mark.parametrize("center", [False, True], ids=["as-it-is", "centred"])
@pytest.mark.parametrize("zeta", ["batch", "sample"])
@pytest.mark.parametrize("fraction", [1.0, 0.4])
def test_value_equals_the_slow_loop(center: bool, zeta: str, fraction: float) -> None:
    """Eqs. 11 and 12 sample by sample, from the same random numbers."""
    n, d, scale = 7, 4, 0.3
    x, weight = random_batch(n, d), torch.rand(n, dtype=torch.float64)
    W = random_batch(d, 3)

    def function(x: Tensor) -> Tensor:
        return torch.tanh(x @ W)

    ours = smoothness(
        function, x, scale, fraction=fraction, zeta=zeta, center=center, sample_weight=weight, generator=generator(5)
    )

    g = generator(5)
    m = math.ceil(fraction * n)
    chosen = list(range(n)) if m == n else torch.randperm(n, generator=g)[:m].tolist()
    v = torch.randn(m, n, generator=g, dtype=torch.float64)
    z = torch.randn(m if zeta == "sample" else 1, generator=g, dtype=torch.float64)
    X = x - x.mean(0) if center else x
    total = 0.0
    for j, i in enumerate(chosen):
        delta = sum(v[j, s] * X[s] for s in range(n))
        step = scale * float(z[j if zeta == "sample" else 0])
        difference = function(x[i : i + 1]) - function(x[i : i + 1] + step * delta / delta.norm())
        total += float(weight[i] / weight.sum()) * float(difference.square().sum()) / step**2
    assert ours.item() == pytest.approx(n / m * total, rel=1e-9)


def test_a_batch_of_zeros_has_no_directions_and_no_cost() -> None:
    x = torch.zeros(4, 3)
    network = nn.Linear(3, 2)
    value = smoothness(network, x)
    value.backward()
    assert value.item() == 0.0
    assert network.weight.grad is not None
    assert bool(torch.isfinite(network.weight.grad).all())


# Directions and steps


def test_directions_are_unit_vectors_in_the_span_of_the_batch() -> None:
    x = random_batch(3, 10)
    directions = span_directions(x, 50, center=False, generator=generator())
    torch.testing.assert_close(directions.norm(dim=1), torch.ones(50, dtype=torch.float64))
    assert torch.linalg.matrix_rank(torch.cat([x, directions]), atol=1e-9) == 3


def test_steps_stay_away_from_0() -> None:
    """About 6 of 8000 normal numbers are below 1/1000; without the bound, their differences would be rounding."""
    lengths = []
    for seed in range(4):
        record, x = Recorder(), torch.ones(2000, 1, dtype=torch.float64)
        smoothness(record, x, scale=2.0, zeta="sample", generator=generator(seed))
        lengths.append((record.inputs[1] - x).abs().min())
    assert min(float(length) for length in lengths) == pytest.approx(2e-3, rel=1e-9)


# Less work


def test_a_clean_pass_given_is_used_and_changes_nothing() -> None:
    record, x = Recorder(), random_batch(6, 4)
    without = smoothness(lambda x: 3.0 * x, x, generator=generator())
    given = smoothness(record, x, clean=3.0 * x, generator=generator())
    assert torch.equal(given, without)
    assert len(record.inputs) == 1


@pytest.mark.parametrize(("fraction", "n_perturbed"), [(1.0, 10), (0.5, 5), (0.31, 4), (0.01, 1)])
def test_only_a_fraction_is_perturbed(fraction: float, n_perturbed: int) -> None:
    record, x = Recorder(), random_batch(10, 4)
    smoothness(record, x, clean=3.0 * x, fraction=fraction)
    assert len(record.inputs[0]) == n_perturbed


def test_a_fraction_is_unbiased() -> None:
    """F(x) = x^2 on the line with tiny steps: the term of each sample is 4 x_i^2, and only the choice is random."""
    x = torch.tensor([[1.0], [2.0], [3.0], [4.0], [5.0]], dtype=torch.float64)
    g = generator()
    values = [smoothness(torch.square, x, 1e-7, fraction=0.4, generator=g).item() for _ in range(400)]
    full = 4 * float(x.square().mean())
    spread = torch.tensor(values).std()
    assert float(spread) > 1.0  # the choice matters
    assert sum(values) / 400 == pytest.approx(full, abs=4 * float(spread) / 20)


# Gradient


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_gradient_passes_through_both_branches(fraction: float) -> None:
    """Compared with finite differences in the weights, with the same random numbers each time."""
    x = random_batch(6, 3)
    W = random_batch(3, 2).requires_grad_()

    def penalty(W: Tensor) -> Tensor:
        return smoothness(lambda x: torch.tanh(x @ W), x, fraction=fraction, generator=generator())

    assert torch.autograd.gradcheck(penalty, (W,))
