"""Networks, and the gradient of a whole batch by plain autograd, which `backward` must equal."""

import torch
from objective_cases import Crowding, NegativeInformation
from torch import Tensor, nn

from neuralbayes import DML, MIM, Objective, WeightedSum

OBJECTIVES = {
    "mim-v1": lambda: MIM(version=1),
    "mim-v2": lambda: MIM(version=2),
    "dml": DML,
    "negative-information": NegativeInformation,
    "crowding": Crowding,
}


def mlp(n_states: int = 4, dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, n_states)).to(dtype)


def points(n: int = 100, dtype: torch.dtype = torch.float64) -> Tensor:
    torch.manual_seed(2)
    return 2.0 * torch.randn(n, 5, dtype=dtype)


def images(n: int = 20) -> Tensor:
    torch.manual_seed(2)
    return torch.randn(n, 2, 6, 6, dtype=torch.float64)


class HiddenStatesOfTwoLayers(nn.Module):
    """Logits with positions, pooled logits and a vector; as a list or by name."""

    def __init__(self, as_dict: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.Conv2d(2, 4, 3).double(), nn.Conv2d(4, 3, 3).double()
        self.as_dict = as_dict

    def forward(self, x: Tensor) -> list[Tensor] | dict[str, Tensor]:
        h1 = self.first(x)
        h2 = self.second(h1.tanh())
        states = {"h1": h1, "h1/2": nn.functional.avg_pool2d(h1, 2), "h2": h2.mean((2, 3))}
        return states if self.as_dict else list(states.values())


def batch_norm_network() -> nn.Sequential:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Linear(12, 4), nn.BatchNorm1d(4)).double()


def spectral_norm_network() -> nn.Sequential:
    """Each pass is one power iteration, which changes the weights of the next pass."""
    torch.manual_seed(1)
    layer = nn.utils.parametrizations.spectral_norm(nn.Linear(5, 12))
    with torch.no_grad():
        layer.parametrizations.weight.original.normal_()  # as after an optimiser step, with an outdated iteration
    return nn.Sequential(layer, nn.Tanh(), nn.Linear(12, 4)).double()


class CountInPlace(nn.Module):
    """A buffer that each pass changes in place and that the output depends on."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.linear = nn.Linear(5, 4).double()
        self.register_buffer("scale", torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        self.scale.mul_(1.1)
        return self.linear(x) * self.scale.clone()


class CountByAssignment(CountInPlace):
    """The same with a new tensor each time; `self.buffer = ...` is as common as in-place changes."""

    def forward(self, x: Tensor) -> Tensor:
        self.scale = self.scale * 1.1
        return self.linear(x) * self.scale


class SharedBatchNorm(nn.Module):
    """One batch normalisation in two places, each with its own statistics."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = nn.Linear(5, 4).double(), nn.Linear(4, 4).double()
        self.norm = nn.BatchNorm1d(4).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.second(self.norm(3.0 * self.first(x) + 2.0).tanh()))


def plain_dropout_network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 12), nn.Dropout(0.5), nn.Tanh(), nn.Dropout(0.2), nn.Linear(12, 4)).double()


def convolutional_batch_norm_network() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Unflatten(1, (1, 5)), nn.Conv1d(1, 4, 2), nn.BatchNorm1d(4, affine=False), nn.Tanh(), nn.Conv1d(4, 4, 2)
    ).double()


def grads(network: nn.Module) -> Tensor:
    """The gradients of all parameters as one vector."""
    return torch.cat(
        [torch.zeros_like(p).flatten() if p.grad is None else p.grad.flatten() for p in network.parameters()]
    )


def whole_batch(
    objective: Objective | WeightedSum, network: nn.Module, x: Tensor, sample_weight: Tensor | None = None
) -> tuple[float, Tensor]:
    """Value and gradient of ``objective(network(x))`` by autograd, with the graph of the whole batch in memory."""
    network.zero_grad()
    value = objective(network(x), sample_weight)
    value.backward()
    gradient = grads(network)
    network.zero_grad()
    return value.item(), gradient


def relative_error(a: Tensor, b: Tensor) -> float:
    return float((a - b).norm() / b.norm())
