"""`backward(..., smoothness=...)`: beta * R_c on each micro-batch, with the network of the clean pass."""

import copy

import pytest
import torch
from gradient_cases import (
    CountInPlace,
    SharedBatchNorm,
    batch_norm_network,
    convolutional_batch_norm_network,
    grads,
    mlp,
    plain_dropout_network,
    points,
    spectral_norm_network,
    whole_batch,
)
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes import DML, MIM, Smoothness, smoothness
from neuralbayes.objectives.base import Outputs


class Recorded(Smoothness):
    """Remember the state of the generator before each use, so the same numbers can be drawn again."""

    states: list[Tensor]

    def forward(
        self, network: object, x: Tensor, clean: Outputs | None = None, sample_weight: Tensor | None = None
    ) -> Tensor:
        self.states = [*getattr(self, "states", []), torch.get_rng_state()]
        return super().forward(network, x, clean, sample_weight)  # type: ignore[arg-type]


def penalty(network: nn.Module, x: Tensor, scale: float, fraction: float, beta: float = 1.0) -> float:
    """beta * R_c as `backward` reports it: the difference of the losses with and without."""
    losses = []
    for R_c in (Smoothness(beta, "logits", scale, fraction), None):
        torch.manual_seed(11)
        losses.append(nb.backward(DML(), copy.deepcopy(network), x, smoothness=R_c).item())
    return losses[0] - losses[1]


# Value and gradient


@pytest.mark.parametrize("marginal", ["exact", "minibatch", "running"])
@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("recompute", [False, True])
def test_value_and_gradient_are_the_weighted_sum_over_micro_batches(
    marginal: str, fraction: float, recompute: bool
) -> None:
    """R_c is a mean over samples, so micro-batches count with the weight of their samples."""
    network, x = mlp(), points(20)
    weight = torch.rand(20, dtype=torch.float64)
    options = {"microbatch_size": 7, "sample_weight": weight, "recompute": recompute}
    without = nb.backward(MIM(), network, x, marginal=marginal, **options)
    gradient = grads(network)
    network.zero_grad()

    R_c = Recorded(beta=3.0, of="posterior", fraction=fraction)
    loss = nb.backward(MIM(), network, x, marginal=marginal, smoothness=R_c, **options)
    ours = grads(network)
    network.zero_grad()

    total = torch.zeros((), dtype=torch.float64)
    pieces = zip(x.tensor_split(3), weight.tensor_split(3), R_c.states, strict=True)
    for piece, piece_weight, state in pieces:
        torch.set_rng_state(state)
        term = smoothness(lambda x: network(x).softmax(1), piece, fraction=fraction, sample_weight=piece_weight)
        total = total + 3.0 * term * piece_weight.sum() / weight.sum()
    total.backward()
    torch.testing.assert_close(ours, gradient + grads(network), rtol=0, atol=1e-10)
    assert loss.item() == pytest.approx(without.item() + total.item(), abs=1e-10)


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("make", [mlp, batch_norm_network, SharedBatchNorm, CountInPlace])
def test_gradient_is_that_of_finite_differences(make: type[nn.Module], fraction: float, recompute: bool) -> None:
    """The gradient passes through both branches and, with a fraction, through the statistics of perturbed samples."""
    network, x = make(), points(20)
    options = {"microbatch_size": 7, "recompute": recompute, "smoothness": Smoothness(2.0, "logits", fraction=fraction)}

    def loss() -> float:
        torch.manual_seed(3)
        return nb.backward(DML(), copy.deepcopy(network), x, **options).item()

    torch.manual_seed(3)
    measured = copy.deepcopy(network)
    nb.backward(DML(), measured, x, **options)
    eps = 1e-6
    for p, q in zip(network.parameters(), measured.parameters(), strict=True):
        assert q.grad is not None
        direction = torch.randn_like(p)
        p.data.add_(eps * direction)
        up = loss()
        p.data.sub_(2 * eps * direction)
        down = loss()
        p.data.add_(eps * direction)
        slope = float((q.grad * direction).sum())
        assert slope == pytest.approx((up - down) / (2 * eps), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("make", [plain_dropout_network, spectral_norm_network])
def test_recomputation_changes_no_gradient_of_networks_that_draw_or_iterate(make: type[nn.Module]) -> None:
    found = []
    for recompute in (False, True):
        network, x = make(), points(20)
        torch.manual_seed(3)
        nb.backward(DML(), network, x, microbatch_size=7, smoothness=Smoothness(2.0), recompute=recompute)
        found.append(torch.cat([grads(network), *(b.flatten() for b in network.buffers())]))
    torch.testing.assert_close(*found, rtol=1e-11, atol=1e-11)


def test_without_beta_nothing_is_perturbed() -> None:
    network, x = mlp(), points(20)
    _, gradient = whole_batch(DML(), network, x)
    calls: list[int] = []
    network.register_forward_hook(lambda *_: calls.append(1))
    nb.backward(DML(), network, x, smoothness=Smoothness(beta=0.0))
    torch.testing.assert_close(grads(network), gradient, rtol=0, atol=1e-12)
    assert len(calls) == 1


def test_the_clean_pass_is_reused() -> None:
    network, x = mlp(), points(20)
    sizes: list[int] = []
    network.register_forward_hook(lambda _module, inputs, _output: sizes.append(len(inputs[0])))
    nb.backward(DML(), network, x, smoothness=Smoothness(fraction=0.25))
    assert sizes == [20, 5]


def test_a_micro_batch_without_weight_has_no_smoothness() -> None:
    network, x = mlp(), points(14)
    weight = torch.ones(14, dtype=torch.float64)
    weight[7:] = 0.0
    x[7:] = 1e300  # would give NaN if it counted
    loss = nb.backward(MIM(), network, x, microbatch_size=7, smoothness=Smoothness(), sample_weight=weight)
    assert bool(torch.isfinite(loss))
    assert bool(torch.isfinite(grads(network)).all())


# The network of the clean pass: R_c only stays bounded for small steps if both branches share it


@pytest.mark.parametrize("fraction", [1.0, 0.5])
@pytest.mark.parametrize(
    "make",
    [
        mlp,
        batch_norm_network,
        convolutional_batch_norm_network,
        SharedBatchNorm,
        plain_dropout_network,
        spectral_norm_network,
        CountInPlace,
    ],
)
def test_smoothness_has_a_limit_as_the_step_goes_to_0(make: type[nn.Module], fraction: float) -> None:
    """With other dropout, other statistics or changed buffers, R_c would grow as 1 / zeta^2, here a million times."""
    if fraction < 1.0 and make is plain_dropout_network:
        pytest.skip("refused, see below")
    network, x = make(), points(40)
    small, smaller = penalty(network, x, 1e-2, fraction), penalty(network, x, 1e-5, fraction)
    assert smaller == pytest.approx(small, rel=0.2)


class Drawing(nn.Module):
    """A network that draws random numbers in one of several ways."""

    def __init__(self, way: str) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.way = way
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.1 if way == "attention" else 0.0, batch_first=True)
        self.first, self.last = nn.Linear(5, 12), nn.Linear(4, 4)
        self.module = {"module": nn.Dropout(0.1), "rrelu": nn.RReLU()}.get(way, nn.Identity())
        self.double()

    def forward(self, x: Tensor) -> Tensor:
        h = self.module(self.first(x)).reshape(len(x), 3, 4)
        h = self.attention(h, h, h, need_weights=False)[0].mean(1)
        if self.way == "function":
            h = nn.functional.dropout(h, 0.1, self.training)
        if self.way == "noise":
            h = h + 0.1 * torch.randn_like(h)
        if self.way == "choice":
            h = h * (1.0 + 0.1 * int(torch.randint(2, ())))
        result: Tensor = self.last(h)
        return result


@pytest.mark.parametrize("way", ["module", "function", "attention", "rrelu", "noise", "choice"])
@pytest.mark.parametrize("size", [None, 7])
def test_a_part_of_the_batch_is_refused_where_the_network_draws_random_numbers(way: str, size: int | None) -> None:
    """The part would have its own masks, and R_c would measure the difference between masks."""
    network = Drawing(way)
    with pytest.raises(ValueError, match=r"`smoothness\.fraction` must be 1 .* random numbers.* dropout.* got 0\.5"):
        nb.backward(DML(), network, points(40), microbatch_size=size, smoothness=Smoothness(fraction=0.5))
    assert all(p.grad is None for p in network.parameters())


@pytest.mark.parametrize(
    "dropout", [nn.Dropout(0.0), nn.Dropout(0.5).eval(), nn.Dropout(1.0)], ids=["p=0", "evaluation", "p=1"]
)
def test_dropout_that_draws_nothing_is_accepted(dropout: nn.Module) -> None:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(5, 12), dropout, nn.Linear(12, 4)).double()
    small, smaller = penalty(network, points(40), 1e-2, 0.5), penalty(network, points(40), 1e-5, 0.5)
    assert smaller == pytest.approx(small, rel=1e-3, abs=1e-12)
