r"""p(z|x) of rows: the softmax of a quadratic function of x, or a network.

Both are a parameterization L(x) of p(z|x) as in the paper, with p(z) = E[L(x)]; they differ in what they can learn. The
posterior of a mixture of Gaussians is quadratic,

.. math:: L_k(x) \propto \exp\left( b_k - \tfrac12 \lVert R_k (x - \mu_k) \rVert^2 \right).

It is fitted in milliseconds, needs no PyTorch, and is saved as three arrays.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import nn

Array = NDArray[np.float64]

BLOCK = 2000  # rows that pass through a network at once


@dataclass(frozen=True, eq=False)
class Quadratic:
    """Softmax of a quadratic function.

    Examples
    --------
    >>> line = Quadratic(np.zeros(2), np.array([[-1.0], [1.0]]), np.ones((2, 1, 1)))
    >>> line.logits(np.array([[0.0], [3.0]]))
    array([[-0.5, -0.5],
           [-8. , -2. ]])
    """

    offsets: Array  # (n_states,)
    centers: Array  # (n_states, n_dimensions)
    roots: Array  # (n_states, n_dimensions, n_dimensions)

    kind = "quadratic"

    def __post_init__(self) -> None:
        k, d = self.centers.shape
        if self.offsets.shape != (k,) or self.roots.shape != (k, d, d):
            raise ValueError("`offsets`, `centers` and `roots` must be of the same states and dimensions")
        if not all(np.isfinite(part).all() for part in self.arrays().values()):
            raise ValueError("`offsets`, `centers` and `roots` must be finite")

    def logits(self, points: Array) -> Array:
        """Logarithms of p(z|x), up to a constant of each row: (n, n_dimensions) -> (n, n_states)."""
        result = np.empty((len(points), len(self.offsets)))
        for k, (offset, center, root) in enumerate(zip(self.offsets, self.centers, self.roots, strict=True)):
            result[:, k] = offset - 0.5 * np.square((points - center) @ root.T).sum(axis=1)
        return result

    def divided(self, temperature: float) -> Self:
        """The same posterior with its logits divided by a temperature."""
        return replace(self, offsets=self.offsets / temperature, roots=self.roots / np.sqrt(temperature))

    def raised(self, by: Array) -> Self:
        """The same posterior with a constant (n_states,) added to the logits."""
        return replace(self, offsets=self.offsets + by)

    def module(self) -> nn.Module:
        """The same function as a module of PyTorch."""
        from neuralbayes.networks.states import QuadraticStates

        return QuadraticStates(self.offsets, self.centers, self.roots)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"offsets": self.offsets, "centers": self.centers, "roots": self.roots}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        return cls(arrays["offsets"], arrays["centers"], arrays["roots"])


@dataclass(frozen=True, eq=False)
class Network:
    """A trained network from coordinates to logits, in evaluation mode."""

    network: nn.Module
    device: str = "auto"

    kind = "network"

    def logits(self, points: Array) -> Array:
        import torch

        from neuralbayes.system.devices import device_of, torch_device, working_copy
        from neuralbayes.training.inference import in_blocks

        network = working_copy(self.network, torch_device(self.device))
        place = device_of(network)
        return in_blocks(
            lambda rows: network(torch.from_numpy(points[rows]).float().to(place)).double(), len(points), block=BLOCK
        )

    def divided(self, temperature: float) -> Self:
        network, head = self._copied()
        for parameter in head.parameters():
            parameter.data.div_(temperature)
        return replace(self, network=network)

    def raised(self, by: Array) -> Self:
        network, head = self._copied()
        head.bias.data.add_(head.bias.new_tensor(by))
        return replace(self, network=network)

    def _copied(self) -> tuple[nn.Module, Any]:
        """A copy of the network, and its last layer."""
        network: Any = copy.deepcopy(self.network)
        return network, network.head if hasattr(network, "head") else network[-1]

    def module(self) -> nn.Module:
        return self.network

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: tensor.cpu().numpy() for name, tensor in self.network.state_dict().items()}


# p(z|x): both have the same methods, so that the rest of the library need not know which one it is.
Posterior: TypeAlias = Quadratic | Network


@dataclass(frozen=True)
class Trained:
    """How the training of a network went; the default is for a posterior without one."""

    loss_curve: list[float] = field(default_factory=list)  # mean loss of each tenth, of the start, then of the clusters
    n_iter: int = 1
    n_iter_start: int = 0

    def then(self, other: Trained) -> Trained:
        """This training as the start of another."""
        return Trained(self.loss_curve + other.loss_curve, self.n_iter + other.n_iter, self.n_iter)
