"""k-means on pixels or on the features of an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans

from neuralbayes.data.sources import Images, ImageSource, as_source
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.probes.features import pixels

Points = Images | ImageSource | NDArray[Any]
"""Images, or features of shape (n, d)."""


@dataclass(frozen=True, eq=False)
class KMeansClusters:
    """Result of k-means.

    Attributes
    ----------
    model : KMeans or MiniBatchKMeans
        The fitted scikit-learn estimator.
    encoder : ImageEncoder or None
    state : str
        The encoder and hidden state of the features.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from neuralbayes.data.toys import make_blobs
    >>> X, _ = make_blobs(300, random_state=0)
    >>> clusters = nb.baselines.kmeans(X, 3)
    >>> clusters.centers.shape, np.array_equal(clusters.predict(X), clusters.labels)
    ((3, 2), True)
    """

    model: KMeans | MiniBatchKMeans
    encoder: ImageEncoder | None
    state: str

    @property
    def labels(self) -> NDArray[np.int64]:
        """Clusters of the fitted points: (n,)."""
        labels: NDArray[np.int32] = self.model.labels_
        return labels.astype(np.int64)

    @property
    def inertia(self) -> float:
        """Sum of squared distances of the fitted points to the centers of their clusters."""
        return float(self.model.inertia_)

    @property
    def centers(self) -> NDArray[np.float32]:
        """Means of the clusters: (n_clusters, n_features)."""
        centers: NDArray[np.float32] = self.model.cluster_centers_
        return centers

    def predict(self, data: Points) -> NDArray[np.int64]:
        """Return the nearest center of each image, or of each row of features: (n,)."""
        labels: NDArray[np.int32] = self.model.predict(_features(data, self.encoder, self.state))
        return labels.astype(np.int64)


def kmeans(
    data: Points,
    n_clusters: int,
    *,
    encoder: ImageEncoder | None = None,
    state: str = "relu4",
    n_init: int = 10,
    batch_size: int | None = None,
    seed: int = 0,
) -> KMeansClusters:
    """Cluster images by k-means on their pixels, on features of an encoder, or on given features.

    Parameters
    ----------
    data : Images, ImageSource, ndarray of images (n, H, W, C), uint8, or ndarray of features (n, d)
    n_clusters : int
    encoder : ImageEncoder, optional
        Encoder of the features. Without it, pixels in [0, 1] or the given features are clustered.
    state : str, default="relu4"
        Hidden state of the encoder.
    n_init : int, default=10
        Number of starts; the best one is kept.
    batch_size : int, optional
        Points per step of mini-batch k-means, which is faster for very many points; Lloyd's algorithm by default.
    seed : int, default=0

    Returns
    -------
    KMeansClusters

    Examples
    --------
    >>> from neuralbayes.clusters.accuracy import clustering_accuracy
    >>> y = np.arange(90) % 3
    >>> x = np.random.default_rng(0).normal(size=(90, 2)) + 20.0 * np.eye(3)[y, :2]
    >>> clustering_accuracy(kmeans(x, 3).labels, y)
    1.0
    """
    x = _features(data, encoder, state)
    for name, value in (("n_clusters", n_clusters), ("n_init", n_init), ("batch_size", batch_size)):
        if value is not None and value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value!r}")
    if n_clusters > len(x):
        raise ValueError(f"`n_clusters` must be at most the number of points, {len(x)}, got {n_clusters}")
    if batch_size is None:
        model = KMeans(n_clusters, n_init=n_init, random_state=seed)
    else:
        model = MiniBatchKMeans(n_clusters, n_init=n_init, batch_size=batch_size, random_state=seed)
    return KMeansClusters(model.fit(x), encoder, state)


def _features(data: Points, encoder: ImageEncoder | None, state: str) -> NDArray[Any]:
    if isinstance(data, np.ndarray) and data.ndim == 2:
        if encoder is not None:
            raise ValueError(f"`data` must be images if an encoder is given, got features of shape {data.shape}")
        return data
    source = as_source(data)
    return pixels(source) if encoder is None else encoder.features(source, state)
