"""Methods for benchmarks/field.py. Each takes images and a seed, and returns labels of train and test."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from paper import baselines
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.networks.encoders import mlp
from neuralbayes.system.devices import InBfloat16, bfloat16_is_faster
from neuralbayes.training import Batches, train

Array = NDArray[Any]
Labels = tuple[Array, Array]

N_COMPONENTS = 64
RAREST = 0.1
"""Share of the rarest class to keep in a set of unequal classes."""
SPECTRAL_ROWS, GEMCLUS_ROWS = 10_000, 10_000
"""Maximum number of rows to fit these methods to; their cost is quadratic."""
NEAREST = 5


@dataclass(frozen=True)
class Data:
    """Images to cluster and images to score, (n, H, W, C) in uint8, with their classes (n,)."""

    train: Array
    train_classes: Array
    test: Array
    test_classes: Array

    @property
    def n_clusters(self) -> int:
        return int(self.train_classes.max()) + 1

    @cached_property
    def rows(self) -> tuple[Array, Array]:
        """Pixels in [0, 1] of train and test."""
        train, test = (x.reshape(len(x), -1) / np.float32(255) for x in (self.train, self.test))
        return train, test

    @cached_property
    def coordinates(self) -> tuple[Array, Array]:
        """Input of the peers: principal components, as many as ours."""
        pca = PCA(N_COMPONENTS, random_state=0).fit(self.rows[0])
        return pca.transform(self.rows[0]), pca.transform(self.rows[1])


def ours(data: Data, seed: int) -> Labels:
    clusterer = nb.InformationClusterer(data.n_clusters, random_state=seed).fit(data.train)
    return clusterer.labels_, clusterer.predict(data.test)


def ours_disjoint(data: Data, seed: int) -> Labels:
    """ManifoldLabeler, although the data need not have disjoint manifolds."""
    labeler = nb.ManifoldLabeler(data.n_clusters, random_state=seed).fit(data.coordinates[0])
    return labeler.labels_, labeler.predict(data.coordinates[1])


def k_means(data: Data, seed: int) -> Labels:
    fitted = KMeans(data.n_clusters, n_init=10, random_state=seed).fit(data.coordinates[0])
    return fitted.labels_, fitted.predict(data.coordinates[1])


def gaussian_mixture(data: Data, seed: int) -> Labels:
    fitted = GaussianMixture(data.n_clusters, reg_covar=1e-4, random_state=seed).fit(data.coordinates[0])
    return fitted.predict(data.coordinates[0]), fitted.predict(data.coordinates[1])


def spectral(data: Data, seed: int) -> Labels:
    train, test = data.coordinates
    few = np.random.RandomState(seed).permutation(len(train))[:SPECTRAL_ROWS]
    fitted = SpectralClustering(data.n_clusters, affinity="nearest_neighbors", random_state=seed).fit(train[few])
    return nearest(train[few], fitted.labels_, train), nearest(train[few], fitted.labels_, test)


def umap_mixture(data: Data, seed: int) -> Labels:
    train, test = _umap(data, seed)
    fitted = GaussianMixture(data.n_clusters, random_state=seed, n_init=5).fit(train)
    return fitted.predict(train), fitted.predict(test)


def umap_hdbscan(data: Data, seed: int) -> Labels:
    """HDBSCAN with the best of five minimum cluster sizes; noise gets the label of its nearest neighbours.

    The best size gives the number of clusters that is closest to the right one.
    """
    import hdbscan

    train, test = _umap(data, seed)
    tried = []
    for share in (0.002, 0.005, 0.01, 0.02, 0.04):
        size = max(5, int(share * len(train)))
        fitted = hdbscan.HDBSCAN(min_cluster_size=size).fit(train)
        tried.append((abs(fitted.labels_.max() + 1 - data.n_clusters), np.sum(fitted.labels_ < 0), fitted.labels_))
    labels = min(tried, key=lambda one: one[:2])[2]
    inside = labels >= 0
    if not inside.any():
        return np.zeros(len(train), np.int64), np.zeros(len(test), np.int64)
    return nearest(train[inside], labels[inside], train), nearest(train[inside], labels[inside], test)


def gemclus(data: Data, seed: int) -> Labels:
    from gemclus.mlp import MLPMMD

    train, test = data.coordinates
    few = np.random.RandomState(seed).permutation(len(train))[:GEMCLUS_ROWS]
    batch = 500 if len(few) > 2000 else None
    epochs = 1000 if batch is None else 50
    fitted = MLPMMD(data.n_clusters, batch_size=batch, max_iter=epochs, n_hidden_dim=100, random_state=seed).fit(
        train[few].astype(np.float64)
    )
    return fitted.predict(train.astype(np.float64)), fitted.predict(test.astype(np.float64))


def imsat(data: Data, seed: int) -> Labels:
    """IMSAT with the settings of its authors."""
    config = baselines.ImsatRowsConfig(n_clusters=data.n_clusters, seed=seed)
    fitted = baselines.imsat_rows(data.rows[0], config)
    return fitted.predict(data.rows[0]), fitted.predict(data.rows[1])


def dec(data: Data, seed: int) -> Labels:
    """Deep embedded clustering (Xie et al. 2016): an autoencoder, k-means on its code, then self-training.

    The network is that of the paper, d-500-500-2000-10, but without layer-wise pretraining. It uses bfloat16 if that is
    faster, like InformationClusterer.
    """
    train_rows, test_rows = (torch.from_numpy(np.asarray(x, np.float32)) for x in data.rows)
    torch.manual_seed(seed)
    sizes = (train_rows.shape[1], 500, 500, 2000, 10)
    encoder, decoder = mlp(sizes), mlp(sizes[::-1])
    autoencoder = nn.Sequential(encoder, decoder)

    def reconstruct(network: nn.Module, x: Tensor) -> dict[str, Tensor]:
        loss = (network(x) - x).square().mean()
        loss.backward()
        return {"loss": loss}

    _train(autoencoder, reconstruct, train_rows, max(30, 30_000 // len(train_rows)), seed)
    with torch.no_grad():
        start = KMeans(data.n_clusters, n_init=20, random_state=seed).fit(encoder(train_rows).numpy())
    clusters = _Soft(encoder, torch.from_numpy(start.cluster_centers_).float())
    target = torch.empty(len(train_rows), data.n_clusters)

    def sharpen(network: nn.Module, batch: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
        x, wanted = batch
        q = network(x)
        loss = (wanted * (wanted.clamp_min(1e-12) / q.clamp_min(1e-12)).log()).sum(dim=1).mean()
        loss.backward()
        return {"loss": loss}

    for _ in range(20):
        with torch.no_grad():
            q = clusters(train_rows)
            target = q.square() / q.sum(dim=0)
            target /= target.sum(dim=1, keepdim=True)
        _train(clusters, sharpen, (train_rows, target), 1, seed)
    with torch.no_grad():
        return clusters(train_rows).argmax(dim=1).numpy(), clusters(test_rows).argmax(dim=1).numpy()


class _Soft(nn.Module):
    """Kernel of Student's t between a code and each centre, normalised over the centres: (n, d) -> (n, n_clusters)."""

    def __init__(self, encoder: nn.Module, centers: Tensor) -> None:
        super().__init__()
        self.encoder = encoder
        self.centers = nn.Parameter(centers)

    def forward(self, x: Tensor) -> Tensor:
        q = 1.0 / (1.0 + torch.cdist(self.encoder(x), self.centers).square())
        return q / q.sum(dim=1, keepdim=True)


def _train(network: nn.Module, step: Any, rows: Any, epochs: int, seed: int) -> None:
    n_rows = len(rows[0]) if isinstance(rows, tuple) else len(rows)
    half = n_rows > 10_000 and bfloat16_is_faster()
    train(
        InBfloat16(network) if half else network,
        step,
        Batches(n_rows, min(256, n_rows), seed=seed),
        fetch=lambda indices: tuple(part[indices] for part in rows) if isinstance(rows, tuple) else rows[indices],
        optimizer=torch.optim.Adam(network.parameters(), lr=1e-3),
        max_epochs=epochs,
    )


def _umap(data: Data, seed: int) -> tuple[Array, Array]:
    """Embed train and test with UMAP in at most ten dimensions."""
    from umap import UMAP

    train, test = data.coordinates
    embedding = UMAP(
        n_neighbors=min(30, len(train) - 1), n_components=min(10, train.shape[1]), min_dist=0.0, random_state=seed
    ).fit(train)
    return embedding.embedding_, embedding.embedding_ if test is train else embedding.transform(test)


def nearest(points: Array, labels: Array, others: Array) -> Array:
    """Label each of `others` by a majority vote of its nearest points."""
    return np.asarray(KNeighborsClassifier(min(NEAREST, len(points))).fit(points, labels).predict(others))


METHODS: dict[str, Callable[[Data, int], Labels]] = {
    "InformationClusterer": ours,
    "ManifoldLabeler": ours_disjoint,
    "IMSAT": imsat,
    "DEC": dec,
    "GMM on UMAP": umap_mixture,
    "HDBSCAN on UMAP": umap_hdbscan,
    "spectral clustering": spectral,
    "Gaussian mixture": gaussian_mixture,
    "k-means": k_means,
    "GemClus": gemclus,
}
