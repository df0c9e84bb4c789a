"""IMSAT (Hu et al. 2017): informative clusters that are robust to the worst small perturbation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from neuralbayes.bayes import mutual_information
from neuralbayes.distributed import seeded_globally
from neuralbayes.gradients.passes import frozen_buffers
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import MIM
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from neuralbayes.training.inference import in_blocks
from paper.baselines.training import TrainingConfig, train_in_folder


@dataclass(frozen=True)
class ImsatRowsConfig(TrainingConfig):
    """Settings of IMSAT. The defaults are those of the IMSAT paper for MNIST.

    `information_weight` is lambda, and `prior_weight` is mu, the weight of H(z). Perturbations have the length `radius`
    relative to the distance to the `n_neighbors`-th neighbour of a sample; `n_iterations` power iterations find the
    worst, with a `step` relative to the perturbation (in the authors' code of length 10, which for MNIST is about 4).
    """

    method: ClassVar[str] = "imsat-rows"

    batch_size: int = 250
    epochs: int = 50
    learning_rate: float = 2e-3
    n_clusters: int = 10
    information_weight: float = 0.1
    prior_weight: float = 4.0
    radius: float = 0.25
    n_neighbors: int = 10
    n_iterations: int = 1
    step: float = 4.0
    hidden: tuple[int, ...] = (1200, 1200)


@dataclass(frozen=True, eq=False)
class RowsClusterer:
    """A network whose softmax output is the cluster of a row, with the normalisation of its rows."""

    network: nn.Sequential
    mean: NDArray[np.float64]
    std: float  # one for all columns, which keeps the geometry

    def prepare(self, X: NDArray[Any]) -> Tensor:
        """Normalise rows to the input of the network, in float32."""
        return torch.from_numpy(((X - self.mean) / self.std).astype(np.float32))

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return p(z|x) of each row: (n, n_features) -> (n, n_clusters)."""
        return in_blocks(lambda some: self.network(self.prepare(X[some])).softmax(dim=1), len(X), block=4096)

    def predict(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Return the most probable cluster of each row: (n,)."""
        labels: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return labels


def imsat_rows(X: NDArray[Any], config: ImsatRowsConfig) -> RowsClusterer:
    r"""Cluster finite rows of numbers, (n_samples, n_features), with an MLP.

    .. math:: \min \; R_{\text{VAT}} - \lambda \, [\mu H(z) - H(z|x)]

    Notes
    -----
    Method of Hu, Miyato, Tokui, Matsumoto and Sugiyama, "Learning Discrete Representations via Information Maximizing
    Self-Augmented Training", ICML 2017 (arXiv:1702.08720). The bracket is minus :class:`neuralbayes.MIM` of version 1
    with alpha = mu - 1, as the Neural Bayes paper says in its section on related work.

    Examples
    --------
    >>> from neuralbayes.data.toys import make_blobs
    >>> X, _ = make_blobs(300, random_state=0)
    >>> clusterer = imsat_rows(X, ImsatRowsConfig(n_clusters=3, hidden=(50,), epochs=20))
    >>> clusterer.predict_proba(X).shape
    (300, 3)
    """
    scaler = StandardScaler().fit(X)
    with seeded_globally(config.seed):
        network = mlp((X.shape[1], *config.hidden, config.n_clusters), batch_norm=True)
        clusterer = RowsClusterer(network, scaler.mean_, float(np.sqrt(scaler.var_.mean())) or 1.0)
        rows = clusterer.prepare(X)
        radius = radii(rows.numpy(), config)

        def fetch(indices: Tensor) -> tuple[Tensor, Tensor]:
            return rows[indices], radius[indices]

        train_in_folder(network, imsat_step(config), fetch, len(rows), config, out=None)
    network.cpu().eval().requires_grad_(False)
    return clusterer


def radii(rows: NDArray[np.float32], config: ImsatRowsConfig) -> Tensor:
    """`radius` times the distance of each row to its `n_neighbors`-th neighbour, or the farthest: (n,)."""
    n_neighbors = min(config.n_neighbors, len(rows) - 1)
    distances, _ = NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors()
    return torch.from_numpy(config.radius * distances[:, -1]).float()


def imsat_step(config: ImsatRowsConfig) -> Callable[[nn.Module, tuple[Tensor, Tensor]], dict[str, Tensor]]:
    """A training step on a batch of samples and their radii."""
    information = MIM(alpha=config.prior_weight - 1.0, version=1)

    def step(network: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        x, radius = batch
        logits = network(x)
        with frozen_buffers(network):  # running statistics come from the unchanged samples only
            change = virtual_adversarial(
                network, x, radius, clean=logits, n_iterations=config.n_iterations, step=config.step
            )
        loss = change + config.information_weight * information(logits)
        torch.autograd.backward(loss)
        return {"loss": loss, "change": change, "mi": mutual_information(logits.detach(), from_logits=True)}

    return step
