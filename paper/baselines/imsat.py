"""IMSAT (Hu et al. 2017): informative clusters that are robust to the worst small perturbation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from neuralbayes.features.encoder_training import EncoderConfig, Learner, train_encoder
from neuralbayes.training.config import Step, TrainingConfig, train_in_folder
from numpy.typing import NDArray
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from neuralbayes.clusters.smooth_step import smooth_step
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import Images, ImageSource
from neuralbayes.distributed import default_fabric
from neuralbayes.features.tables import BLOCK, RowsEncoder, mean_variance_scale
from neuralbayes.networks.encoders import mlp
from neuralbayes.objectives import MIM
from neuralbayes.system.files import write_json
from neuralbayes.training import Callback
from neuralbayes.training.inference import in_blocks
from neuralbayes.training.rng import seeded_globally
from paper.baselines.headed import HeadedEncoder


@dataclass(frozen=True)
class ImsatTerms:
    """Terms of the objective, with the weights of the IMSAT paper; see :class:`ImsatConfig`."""

    n_clusters: int = 10
    information_weight: float = 0.1
    prior_weight: float = 4.0
    radius: float = 0.25
    n_neighbors: int = 10
    n_iterations: int = 1
    step: float = 4.0

    def __post_init__(self) -> None:
        for name, least in (("n_clusters", 2), ("n_neighbors", 1), ("n_iterations", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"`{name}` must be at least {least}, got {getattr(self, name)!r}")
        for name in ("information_weight", "prior_weight", "radius", "step"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0):
                raise ValueError(f"`{name}` must be finite and positive, got {value!r}")


@dataclass(frozen=True)
class ImsatConfig(EncoderConfig, ImsatTerms):
    """Settings for clustering images. The weights are those of the IMSAT paper.

    Attributes
    ----------
    pooled : bool
        Cluster by the average of the last state over its positions, instead of all of it.
    n_clusters : int
    information_weight : float
        lambda, the weight of the information relative to the smoothness.
    prior_weight : float
        mu, the weight of H(z) in the information.
    radius : float
        Length of the perturbations, relative to the distance to the `n_neighbors`-th neighbour of each sample.
    n_neighbors : int
    n_iterations : int
        Number of power iterations to find the worst perturbation.
    step : float
        Step length of the power iteration, relative to the perturbation. The authors' code uses a length of 10, which
        for MNIST is about 4.
    encoder, normalize, augment, batch_size, epochs, patience, learning_rate, weight_decay, schedule, seed
        As in :class:`neuralbayes.PretrainConfig`; batch size, epochs and learning rate are those of the authors' code.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> baselines.ImsatConfig(encoder="small", n_clusters=20).information_weight
    0.1
    """

    method: ClassVar[str] = "imsat"

    batch_size: int = 250
    epochs: int = 50
    learning_rate: float = 2e-3
    pooled: bool = True

    def __post_init__(self) -> None:
        EncoderConfig.__post_init__(self)
        ImsatTerms.__post_init__(self)


@dataclass(frozen=True)
class ImsatRowsConfig(TrainingConfig, ImsatTerms):
    """Settings for clustering rows of numbers. The defaults are those of the IMSAT paper for MNIST.

    Attributes
    ----------
    hidden : tuple of int
        Units of each hidden layer, with batch normalisation.
    standardize : bool
        Divide each column by its own standard deviation, or all by a common one, which keeps the geometry.
    n_clusters, information_weight, prior_weight, radius, n_neighbors, n_iterations, step
        As in :class:`paper.baselines.ImsatConfig`.
    batch_size, epochs, patience, learning_rate, weight_decay, schedule, seed
        As in :class:`neuralbayes.PretrainConfig`.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> baselines.ImsatRowsConfig(n_clusters=3, epochs=20).hidden
    (1200, 1200)
    """

    method: ClassVar[str] = "imsat-rows"

    batch_size: int = 250
    epochs: int = 50
    learning_rate: float = 2e-3
    hidden: tuple[int, ...] = (1200, 1200)
    standardize: bool = False

    def __post_init__(self) -> None:
        TrainingConfig.__post_init__(self)
        ImsatTerms.__post_init__(self)
        if not self.hidden or min(self.hidden) < 1:
            raise ValueError(f"`hidden` must be positive integers, one per layer, got {self.hidden!r}")


class RowsClusterer(RowsEncoder):
    """A network whose softmax output is the cluster of a row.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from neuralbayes.data.toys import make_blobs
    >>> X, _ = make_blobs(300, random_state=0)
    >>> clusterer = baselines.imsat_rows(X, baselines.ImsatRowsConfig(n_clusters=3, hidden=(50,), epochs=1))
    >>> clusterer.predict_proba(X).shape, clusterer.predict(X).shape
    ((300, 3), (300,))
    """

    def prepare(self, X: NDArray[Any]) -> Tensor:
        """Normalise rows to the input of the network, in float32."""
        return torch.from_numpy(((X - self.mean) / self.std).astype(np.float32))

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return p(z|x) of each row: (n, n_features) -> (n, n_clusters)."""
        return in_blocks(lambda some: self.network(self.prepare(X[some])).softmax(dim=1), len(X), block=BLOCK)

    def predict(self, X: NDArray[Any]) -> NDArray[np.int64]:
        """Return the most probable cluster of each row: (n,)."""
        labels: NDArray[np.int64] = self.predict_proba(X).argmax(axis=1)
        return labels


def imsat(
    images: Images | ImageSource | NDArray[np.uint8],
    config: ImsatConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> HeadedEncoder:
    r"""Cluster images with a linear layer on the last state of an encoder, trained by IMSAT.

    .. math:: \min \; R_{\text{VAT}} - \lambda \, [\mu H(z) - H(z|x)]

    Parameters
    ----------
    images : Images, ImageSource or ndarray of shape (n, H, W, C), uint8
        At least two images.
    config : ImsatConfig
    out, callbacks, verbose
        As in :func:`neuralbayes.pretrain`.

    Returns
    -------
    HeadedEncoder
        ``predict`` returns the cluster of an image.

    Notes
    -----
    Method of Hu, Miyato, Tokui, Matsumoto and Sugiyama, "Learning Discrete Representations via Information Maximizing
    Self-Augmented Training", ICML 2017 (arXiv:1702.08720). The bracket is minus :class:`neuralbayes.MIM` of version 1
    with alpha = mu - 1, as the Neural Bayes paper says in its section on related work. Differences:

    - Images are passed as pixels to the encoder of this library; the IMSAT paper clusters features of a pretrained
      network.
    - Neighbours are searched among all normalised images, so the time grows with the square of their number.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> images = nb.datasets.load("digits").train.images[:40].repeat(3, axis=1).repeat(3, axis=2)  # of 24x24 pixels
    >>> encoder = baselines.imsat(images, baselines.ImsatConfig(encoder="tiny", n_clusters=5, epochs=1))
    >>> encoder.predict_proba(images).shape  # p(z|x)
    (40, 5)
    """

    def learner(source: ImageSource, normalization: Normalization) -> Learner[HeadedEncoder]:
        encoder = HeadedEncoder(config.encoder, source.shape, normalization, config.n_clusters, config.pooled)
        rows = in_blocks(lambda some: normalization(source.read(some)).flatten(1), len(source), block=1000)
        return Learner(encoder, encoder.classifier, _step(config), per_image=radii(rows, config))

    return train_encoder(images, config, learner, out=out, callbacks=callbacks, verbose=verbose)


def imsat_rows(
    X: NDArray[Any],
    config: ImsatRowsConfig,
    *,
    out: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    verbose: bool = False,
) -> RowsClusterer:
    """Cluster rows of numbers with an MLP: IMSAT as published, for vectors.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features), n_samples >= 2
        Finite numbers.
    config : ImsatRowsConfig
    out : str or Path, optional
        Run folder for config.json, metrics.jsonl, checkpoints and result.json. An interrupted run continues from its
        last checkpoint.
    callbacks : sequence of Callback
    verbose : bool, default=False

    Returns
    -------
    RowsClusterer
        ``predict`` returns the cluster of a row.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from neuralbayes.data.toys import make_blobs
    >>> X, y = make_blobs(300, random_state=0)
    >>> clusterer = baselines.imsat_rows(X, baselines.ImsatRowsConfig(n_clusters=3, hidden=(50,), epochs=20))
    >>> nb.clustering_accuracy(clusterer.predict(X), y)
    1.0
    """
    X = np.asarray(X)
    if X.ndim != 2 or len(X) < 2 or not np.isfinite(X).all():
        raise ValueError(f"`X` must be finite, of shape (n_samples, n_features) with n_samples >= 2, got {X.shape}")
    folder = None if out is None else Path(out)
    fabric = default_fabric()
    mean, _, std = mean_variance_scale(X, config.standardize)
    with seeded_globally(config.seed):
        network = mlp((X.shape[1], *config.hidden, config.n_clusters), batch_norm=True)
        clusterer = RowsClusterer(network, mean, std)
        rows = clusterer.prepare(X)
        radius = radii(rows.numpy(), config)
        result = train_in_folder(
            network,
            _step(config),
            lambda indices: (rows[indices], radius[indices]),
            len(rows),
            config,
            folder,
            callbacks=callbacks,
            verbose=verbose,
            samples="rows",
            fabric=fabric,
        )
    network.cpu().eval().requires_grad_(False)
    if folder is not None and fabric.is_global_zero:
        write_json(folder / "result.json", result)
    return clusterer


def radii(rows: NDArray[np.float32], terms: ImsatTerms) -> Tensor:
    """Radius of the perturbation of each row: `terms.radius` times the distance to its `n_neighbors`-th neighbour,
    (n,).

    If there are fewer rows, the farthest one counts.
    """
    if len(rows) < 2:
        raise ValueError(f"`images` must be at least 2 to have neighbours, got {len(rows)}")
    n_neighbors = min(terms.n_neighbors, len(rows) - 1)
    distances, _ = NearestNeighbors(n_neighbors=n_neighbors).fit(rows).kneighbors()
    return torch.from_numpy(terms.radius * distances[:, -1]).float()


def _step(terms: ImsatTerms) -> Step:
    objective = MIM(alpha=terms.prior_weight - 1.0, version=1)
    return smooth_step(objective, terms.information_weight, n_iterations=terms.n_iterations, step=terms.step)
