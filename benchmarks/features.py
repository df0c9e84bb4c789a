"""Compare clusterers on features of pretrained networks, with a given number of classes.

The data are photographs, the 10,000 test images of CIFAR-10 with 1,280 features of EfficientNet-lite0, and sentences,
CLINC150 with embeddings of MiniLM. benchmarks/embed.py writes both to FOLDER.

    python benchmarks/features.py FOLDER --seeds 3

It uses one thread. Each result is added to results/real/features.json, and a second run continues.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from records import Record, Results
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits
from turtle_objective import turtle

import neuralbayes as nb
from neuralbayes.clusters.accuracy import clustering_accuracy

ROOT = Path(__file__).parents[1]
SETS = {"CIFAR-10": ("cifar_features.npy", "cifar_labels.npy"), "CLINC150": ("clinc_emb.npy", "clinc_labels.npy")}
Array = NDArray[Any]


def ours(X: Array, k: int, seed: int) -> Array:
    return np.asarray(nb.InformationClusterer(k, random_state=seed).fit(X).labels_)


def k_means(X: Array, k: int, seed: int) -> Array:
    return np.asarray(KMeans(k, n_init=10, random_state=seed).fit_predict(X))


def mixture(X: Array, k: int, seed: int) -> Array:
    """Gaussian mixture with diagonal covariances on 64 principal components; there are too few rows for full ones."""
    points = PCA(64, random_state=seed).fit_transform(X)
    return np.asarray(GaussianMixture(k, covariance_type="diag", n_init=3, random_state=seed).fit_predict(points))


def umap_points(X: Array, seed: int) -> Array:
    """Embed the rows with UMAP as in BERTopic: 15 neighbours by cosine, 5 dimensions."""
    return np.asarray(
        import_module("umap")
        .UMAP(n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed, n_jobs=1)
        .fit_transform(X)
    )


def umap_hdbscan(X: Array, k: int, seed: int) -> Array:
    """HDBSCAN on UMAP. k only sets the minimum cluster size, a fifth of the rows per class; noise is -1."""
    size = max(10, len(X) // (5 * k))
    found = import_module("hdbscan").HDBSCAN(min_cluster_size=size, core_dist_n_jobs=1)
    return np.asarray(found.fit_predict(umap_points(X, seed)))


def umap_k_means(X: Array, k: int, seed: int) -> Array:
    return k_means(umap_points(X, seed), k, seed)


def evoc(X: Array, k: int, seed: int) -> Array:
    """EVoC: the layer whose number of clusters is closest to k; noise is -1."""
    found = import_module("evoc").EVoC(random_state=seed)
    found.fit(np.ascontiguousarray(X, np.float32))
    layers = [np.asarray(layer) for layer in found.cluster_layers_]
    return min(layers, key=lambda labels: abs(int(labels.max()) + 1 - k))


METHODS: dict[str, Callable[[Array, int, int], Array]] = {
    "InformationClusterer": ours,
    "k-means": k_means,
    "mixture, 64 components": mixture,
    "UMAP + k-means": umap_k_means,
    "UMAP + HDBSCAN": umap_hdbscan,
    "EVoC": evoc,
    "TURTLE": turtle,
}


@cache
def load(folder: Path, name: str) -> tuple[Array, Array]:
    X, y = (np.load(folder / part) for part in SETS[name])
    return X.astype(np.float32), y


def measure(results: Results, folder: Path, name: str, method: str, seed: int) -> None:
    """Record accuracy, AMI and processor seconds; noise is wrong for the accuracy and one cluster for the AMI."""
    key: Record = {"set": name, "method": method, "seed": seed}
    if results.has("features", key):
        return
    X, y = load(folder, name)
    if method in ("UMAP + k-means", "UMAP + HDBSCAN", "EVoC"):  # the first call compiles code, which takes seconds
        METHODS[method](X[:600], 10, seed)
    start = time.process_time()
    labels = METHODS[method](X, int(y.max()) + 1, seed)
    seconds = time.process_time() - start
    known = labels >= 0
    right = clustering_accuracy(labels[known], y[known]) * known.mean() if known.any() else 0.0
    record = {
        **key,
        "accuracy": float(right),
        "ami": float(adjusted_mutual_info_score(y, labels)),
        "clusters": len(np.unique(labels[known])),
        "noise": float(1 - known.mean()),
        "processor_seconds": seconds,
    }
    results.add("features", record)
    print({name: round(value, 4) if isinstance(value, float) else value for name, value in record.items()}, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=[], help="names of sets and methods to measure")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn", "umap-learn", "hdbscan", "evoc")
    results = Results(ROOT / "results" / "real", packages, ["features"], "python benchmarks/features.py FOLDER")
    sets = [name for name in SETS if name in arguments.only] or SETS
    methods = [name for name in METHODS if name in arguments.only] or METHODS
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(arguments.seeds):
            for name in sets:
                for method in methods:
                    measure(results, arguments.folder, name, method, seed)


if __name__ == "__main__":
    main()
