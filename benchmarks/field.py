"""Compare the accuracy and cost of clusterers on images.

    python benchmarks/field.py --only InformationClusterer k-means    minutes; without --only, hours

Each result is added to results/field, and a second run continues. Every fit runs in its own process on one thread, and
its cost is the processor time without loading the data. Classes are only used for scores. A method takes images and a
seed, and returns labels of train and test.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper import baselines, packaged_data
from records import ROOT, Record, Results, one_thread, parser, timed
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import KNeighborsClassifier

import neuralbayes as nb

Array = NDArray[Any]
Labels = tuple[Array, Array]

TIME_LIMIT = 45 * 60.0  # maximum seconds of one fit
SEEDS = 5
FEWER = {"IMSAT": 1, "HDBSCAN on UMAP": 1, "GMM on UMAP": 1, "GemClus": 1, "spectral clustering": 2}
"""Number of seeds for slow methods, unless --seeds says otherwise."""
PACKAGES = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn", "hdbscan", "umap-learn", "gemclus")
SETS = {"MNIST": "mnist", "Fashion-MNIST": "fashion-mnist"}
UNEQUAL = " 1:10"
"""Suffix of the sets whose classes have linearly decreasing shares, down to a tenth."""
ALL = [name + suffix for name in SETS for suffix in ("", UNEQUAL)]

N_COMPONENTS = 64
RAREST = 0.1
"""Share of the rarest class to keep in a set of unequal classes."""
FEW_ROWS = 10_000  # to fit methods of quadratic cost to
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
    """InformationClusterer on images, which it transforms in training."""
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
    few = np.random.RandomState(seed).permutation(len(train))[:FEW_ROWS]
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
    return nearest(train[inside], labels[inside], train), nearest(train[inside], labels[inside], test)


def gemclus(data: Data, seed: int) -> Labels:
    from gemclus.mlp import MLPMMD

    train, test = (part.astype(np.float64) for part in data.coordinates)
    few = np.random.RandomState(seed).permutation(len(train))[:FEW_ROWS]
    model = MLPMMD(data.n_clusters, batch_size=500, max_iter=50, n_hidden_dim=100, random_state=seed)
    fitted = model.fit(train[few])
    return fitted.predict(train), fitted.predict(test)


def imsat(data: Data, seed: int) -> Labels:
    """IMSAT with the settings of its authors."""
    config = baselines.ImsatRowsConfig(n_clusters=data.n_clusters, seed=seed)
    fitted = baselines.imsat_rows(data.rows[0], config)
    return fitted.predict(data.rows[0]), fitted.predict(data.rows[1])


def _umap(data: Data, seed: int) -> tuple[Array, Array]:
    """Embed train and test with UMAP in ten dimensions."""
    from umap import UMAP

    train, test = data.coordinates
    embedding = UMAP(n_neighbors=30, n_components=10, min_dist=0.0, random_state=seed).fit(train)
    return embedding.embedding_, embedding.transform(test)


def nearest(points: Array, labels: Array, others: Array) -> Array:
    """Label each of `others` by a majority vote of its nearest points."""
    return np.asarray(KNeighborsClassifier(NEAREST).fit(points, labels).predict(others))


METHODS: dict[str, Callable[[Data, int], Labels]] = {
    "InformationClusterer": ours,
    "ManifoldLabeler": ours_disjoint,
    "IMSAT": imsat,
    "GMM on UMAP": umap_mixture,
    "HDBSCAN on UMAP": umap_hdbscan,
    "spectral clustering": spectral,
    "Gaussian mixture": gaussian_mixture,
    "k-means": k_means,
    "GemClus": gemclus,
}


def load(name: str) -> Data:
    """Images (n, H, W, C) with their classes, perhaps of unequal size in train and test."""
    data = packaged_data.load(SETS[name.removesuffix(UNEQUAL)])
    parts = [(part.images, np.asarray(part.labels)) for part in (data.train, data.test)]
    if name.endswith(UNEQUAL):
        rng = np.random.default_rng(0)
        share = np.linspace(1.0, RAREST, 10)
        kept = [rng.random(len(y)) < share[y] for _, y in parts]
        parts = [(x[rows], y[rows]) for (x, y), rows in zip(parts, kept, strict=True)]
    return Data(*parts[0], *parts[1])


def measure_here(name: str, method: str, seed: int) -> Record:
    """Fit a method to a set in this process."""
    data = load(name)
    _ = data.rows if method == "IMSAT" else data.coordinates  # computed here, so it does not count as cost
    (train, test), seconds = timed(partial(METHODS[method], data, seed))
    return {
        "accuracy": nb.clustering_accuracy(test.astype(int), data.test_classes),
        "train_accuracy": nb.clustering_accuracy(train.astype(int), data.train_classes),
        "nmi": float(normalized_mutual_info_score(data.test_classes, test)),
        "ari": float(adjusted_rand_score(data.test_classes, test)),
        "found": len(set(train.tolist())),
        "processor_seconds": seconds,
    }


def measure(job: Record) -> Record:
    """Call `measure_here` in a new process; after an error or the time limit, the record only says what failed."""
    command = [sys.executable, __file__, "--one", *map(str, job.values())]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {TIME_LIMIT / 60:.0f} minutes"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]}
    record: Record = json.loads(done.stdout.strip().splitlines()[-1])
    return record


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--seeds", type=int, help=f"default: {SEEDS}, fewer for slow methods")
    arguments.add_argument("--sets", nargs="+", metavar="SET", default=ALL, choices=ALL, help="measure only these")
    arguments.add_argument("--only", nargs="+", metavar="METHOD", default=METHODS, choices=METHODS)
    arguments.add_argument("--one", nargs=3, metavar=("SET", "METHOD", "SEED"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.one:
        name, method, seed = given.one
        with one_thread():
            print(json.dumps(measure_here(name, method, int(seed))))
        return
    results = Results(ROOT / "results" / "field", PACKAGES, ["field"], "python benchmarks/field.py")
    for name in given.sets:
        for method in given.only:
            for seed in range(given.seeds or FEWER.get(method, SEEDS)):
                job: Record = {"set": name, "method": method, "seed": seed}
                results.measure("field", job, partial(measure, job))


if __name__ == "__main__":
    main()
