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


def test_a_map_that_stretches_every_direction_alike() -> None:
    """||3x - 3(x + zeta d)||^2 / zeta^2 = 9 for unit d, for any zeta and d."""
    value = smoothness(lambda x: 3.0 * x, random_batch(8, 5))
    assert value.item() == pytest.approx(9.0, rel=1e-9)


def test_a_constant_is_perfectly_smooth() -> None:
    assert smoothness(lambda x: x.detach() * 0 + 1, random_batch(8, 5)).item() == 0.0


def test_a_linear_map_costs_the_mean_square_of_its_stretches() -> None:
    """||A d||^2 averaged over uniform directions is ||A||_F^2 / n_features: (16 + 4 + 1 + 0) / 4 here."""
    A = torch.diag(torch.tensor([4.0, 2.0, 1.0, 0.0], dtype=torch.float64))
    x = torch.eye(4, dtype=torch.float64).repeat(50, 1)  # a v is isotropic
    g = generator()
    values = torch.stack([smoothness(lambda x: x @ A, x, generator=g) for _ in range(40)])
    standard_error = values.std() / math.sqrt(40)
    assert abs(float(values.mean()) - 21 / 4) < 4 * float(standard_error)
    assert float(standard_error) < 0.1


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


def test_images_and_outputs_of_any_shape() -> None:
    value = smoothness(lambda x: 2.0 * x.flatten(2), random_batch(6, 3, 4, 4))
    assert value.item() == pytest.approx(4.0, rel=1e-9)


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


def test_centred_directions_lie_in_the_span_of_the_centred_batch() -> None:
    x = random_batch(3, 10) + 100.0
    directions = span_directions(x, 50, center=True, generator=generator())
    assert torch.linalg.matrix_rank(torch.cat([x - x.mean(0), directions]), atol=1e-9) == 2


def test_each_sample_has_a_direction_of_its_own() -> None:
    record, x = Recorder(), random_batch(6, 4)
    smoothness(record, x)
    steps = nn.functional.normalize(record.inputs[1] - x, dim=1)
    cosines = (steps @ steps.T).abs().fill_diagonal_(0.0)
    assert float(cosines.max()) < 0.999


@pytest.mark.parametrize("zeta", ["batch", "sample"])
def test_one_step_length_for_the_batch_or_one_for_each_sample(zeta: str) -> None:
    record, x = Recorder(), random_batch(6, 4)
    smoothness(record, x, zeta=zeta)
    lengths = (record.inputs[1] - x).norm(dim=1)
    assert (float(lengths.max() - lengths.min()) < 1e-12) == (zeta == "batch")


def test_step_lengths_have_the_scale_asked_for() -> None:
    """zeta ~ N(0, scale^2): the root mean square over 400 draws is within 10 %, with both signs."""
    record, x = Recorder(), torch.ones(400, 1, dtype=torch.float64)
    smoothness(record, x, scale=0.5, zeta="sample")
    steps = record.inputs[1] - x
    assert float(steps.square().mean().sqrt()) == pytest.approx(0.5, rel=0.1)
    assert float(steps.min()) < 0.0 < float(steps.max())


def test_steps_stay_away_from_0() -> None:
    """About 6 of 8000 normal numbers are below 1/1000; without the bound, their differences would be rounding."""
    lengths = []
    for seed in range(4):
        record, x = Recorder(), torch.ones(2000, 1, dtype=torch.float64)
        smoothness(record, x, scale=2.0, zeta="sample", generator=generator(seed))
        lengths.append((record.inputs[1] - x).abs().min())
    assert min(float(length) for length in lengths) == pytest.approx(2e-3, rel=1e-9)


def test_same_generator_same_value() -> None:
    x = random_batch(6, 4)
    values = [smoothness(torch.tanh, x, generator=generator(seed)).item() for seed in (1, 1, 2)]
    assert values[0] == values[1] != values[2]


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


def test_a_fraction_of_weighted_samples_is_unbiased() -> None:
    """Each term is 9 times the sample's weight."""
    x, weight = random_batch(5, 3), torch.tensor([1.0, 2.0, 3.0, 4.0, 0.0])
    g = generator()
    options = {"fraction": 0.4, "sample_weight": weight, "generator": g}
    values = [smoothness(lambda x: 3.0 * x, x, **options).item() for _ in range(400)]
    assert sum(values) / 400 == pytest.approx(9.0, abs=4 * float(torch.tensor(values).std()) / 20)


def test_weights_are_those_of_a_mean() -> None:
    x = torch.tensor([[1.0], [2.0], [3.0]], dtype=torch.float64)
    value = smoothness(torch.square, x, 1e-7, sample_weight=torch.tensor([1.0, 0.0, 3.0]))
    assert value.item() == pytest.approx((4 * 1 + 3 * 36) / 4, rel=1e-5)


# Gradient


@pytest.mark.parametrize("fraction", [1.0, 0.5])
def test_gradient_passes_through_both_branches(fraction: float) -> None:
    """Compared with finite differences in the weights, with the same random numbers each time."""
    x = random_batch(6, 3)
    W = random_batch(3, 2).requires_grad_()

    def penalty(W: Tensor) -> Tensor:
        return smoothness(lambda x: torch.tanh(x @ W), x, fraction=fraction, generator=generator())

    assert torch.autograd.gradcheck(penalty, (W,))


def test_gradient_is_the_same_with_a_clean_pass_given() -> None:
    x = random_batch(6, 3)
    W = random_batch(3, 2).requires_grad_()

    def function(x: Tensor) -> Tensor:
        return torch.tanh(x @ W)

    (own,) = torch.autograd.grad(smoothness(function, x, generator=generator()), W)
    (given,) = torch.autograd.grad(smoothness(function, x, clean=function(x), generator=generator()), W)
    torch.testing.assert_close(given, own, rtol=0, atol=1e-12)
