"""Compare clusterers on features of pretrained networks, with a given number of classes.

The data are photographs, the 10,000 test images of CIFAR-10 with 1,280 features of EfficientNet-lite0, and sentences,
CLINC150 with embeddings of MiniLM. benchmarks/embed.py writes both to FOLDER.

    python benchmarks/features.py FOLDER --seeds 3

It uses one thread. Each result is added to results/real/features.json, and a second run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from real_data import FOLDER, METHODS, OURS, Array
from records import Record, Results, one_thread, parser, timed
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_mutual_info_score
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.training import Batches, train

SETS = {"CIFAR-10": ("cifar_features.npy", "cifar_labels.npy"), "CLINC150": ("clinc_emb.npy", "clinc_labels.npy")}
GAMMA, INNER_STEPS, RATE = 10.0, 10, 1e-3  # of TURTLE's authors
N_STEPS, BATCH = 1500, 3000  # they use 6,000 steps with batches of 10,000


def mixture(X: Array, k: int, seed: int) -> Array:
    """Gaussian mixture with diagonal covariances on 64 principal components; there are too few rows for full ones."""
    points = PCA(64, random_state=seed).fit_transform(X)
    return np.asarray(GaussianMixture(k, covariance_type="diag", n_init=3, random_state=seed).fit_predict(points))


def umap_points(X: Array, seed: int) -> Array:
    """Embed the rows with UMAP as in BERTopic: 15 neighbours by cosine, 5 dimensions."""
    umap = import_module("umap").UMAP(
        n_neighbors=15, n_components=5, min_dist=0.0, metric="cosine", random_state=seed, n_jobs=1
    )
    return np.asarray(umap.fit_transform(X))


def umap_k_means(X: Array, k: int, seed: int) -> Array:
    return METHODS["k-means"](umap_points(X, seed), k, seed)


def umap_hdbscan(X: Array, k: int, seed: int) -> Array:
    """HDBSCAN on UMAP. k only sets the minimum cluster size, a fifth of the rows per class; noise is -1."""
    size = max(10, len(X) // (5 * k))
    found = import_module("hdbscan").HDBSCAN(min_cluster_size=size, core_dist_n_jobs=1)
    return np.asarray(found.fit_predict(umap_points(X, seed)))


def evoc(X: Array, k: int, seed: int) -> Array:
    """EVoC: the layer whose number of clusters is closest to k; noise is -1."""
    found = import_module("evoc").EVoC(random_state=seed)
    found.fit(np.ascontiguousarray(X, np.float32))
    layers = [np.asarray(layer) for layer in found.cluster_layers_]
    return min(layers, key=lambda labels: abs(int(labels.max()) + 1 - k))


class Turtle(nb.Objective):
    """TURTLE (Gadetsky, Jiang and Brbic, ICML 2024): labels are good if a linear classifier learns them easily.

    The loss is the cross-entropy of a linear classifier q that has learnt p(z|x), minus gamma H(z), which prevents a
    collapse into one cluster. In each step, a new q is trained for a few steps on the current p(z|x), and the gradient
    does not pass through them.

    Parameters
    ----------
    gamma : float
        Weight of the entropy of p(z).
    """

    log_q: Tensor  # (n, n_states): log-probabilities of the classifier for the batch

    def __init__(self, gamma: float = GAMMA) -> None:
        super().__init__()
        self.gamma = gamma

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return -(p_zx * self.log_q).sum(dim=1)

    def prior_term(self, p_z: Tensor) -> Tensor:
        return self.gamma * (p_z * p_z.log()).sum(dim=0)


def turtle(X: Array, k: int, seed: int, n_steps: int = N_STEPS) -> Array:
    """Label the rows with a linear layer with weight normalisation for p(z|x), trained with :class:`Turtle`.

    Columns are standardised: the authors' features have lengths of ten and more, and with rows of length 1, w learns
    nothing in a few steps at their rate.
    """
    x = torch.from_numpy(StandardScaler().fit_transform(X).astype(np.float32))
    torch.manual_seed(seed)
    network = nn.utils.parametrizations.weight_norm(nn.Linear(x.shape[1], k))
    objective = Turtle()

    def step(module: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        logits = module(batch)
        objective.log_q = learnt(batch, logits.detach().softmax(dim=1))
        loss: Tensor = objective(logits)  # not nb.backward, which may use other numbers of samples
        loss.backward()  # type: ignore[no-untyped-call]
        return {"loss": loss}

    train(
        network,
        step,
        Batches(len(x), min(BATCH, len(x)), seed=seed, drop_last=True),
        fetch=lambda indices: x[indices],
        optimizer=torch.optim.Adam(network.parameters(), lr=RATE),
        max_steps=n_steps,
    )
    with torch.no_grad():
        return np.asarray(network(x).argmax(dim=1))


def learnt(x: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities of a new linear classifier after a few steps of Adam on soft labels."""
    classifier = nn.Linear(x.shape[1], labels.shape[1])
    optimizer = torch.optim.Adam(classifier.parameters(), lr=RATE)
    for _ in range(INNER_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(classifier(x), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        log_q: Tensor = classifier(x).log_softmax(dim=1)
        return log_q


CLUSTERERS: dict[str, Callable[[Array, int, int], Array]] = {
    OURS: METHODS[OURS],
    "k-means": METHODS["k-means"],
    "mixture, 64 components": mixture,
    "UMAP + k-means": umap_k_means,
    "UMAP + HDBSCAN": umap_hdbscan,
    "EVoC": evoc,
    "TURTLE": turtle,
}


def measure(X: Array, y: Array, method: str, seed: int) -> Record:
    """Accuracy, AMI and processor seconds; noise is wrong for the accuracy and one cluster for the AMI."""
    if method in ("UMAP + k-means", "UMAP + HDBSCAN", "EVoC"):  # the first call compiles code, which takes seconds
        CLUSTERERS[method](X[:600], 10, seed)
    labels, seconds = timed(partial(CLUSTERERS[method], X, int(y.max()) + 1, seed))
    known = labels >= 0
    right = nb.clustering_accuracy(labels[known], y[known]) * known.mean() if known.any() else 0.0
    return {
        "accuracy": float(right),
        "ami": float(adjusted_mutual_info_score(y, labels)),
        "clusters": len(np.unique(labels[known])),
        "noise": float(1 - known.mean()),
        "processor_seconds": seconds,
    }


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    arguments.add_argument("--only", nargs="+", default=CLUSTERERS, choices=CLUSTERERS, metavar="METHOD")
    given = arguments.parse_args()
    packages = ("neuralbayes", "torch", "numpy", "scikit-learn", "umap-learn", "hdbscan", "evoc")
    results = Results(FOLDER, packages, ["features"], "python benchmarks/features.py FOLDER")
    with one_thread():
        for name in given.sets:
            X, y = (np.load(given.folder / part) for part in SETS[name])
            for seed in range(given.seeds):
                for method in given.only:
                    key: Record = {"set": name, "method": method, "seed": seed}
                    results.measure("features", key, partial(measure, X.astype(np.float32), y, method, seed))


if __name__ == "__main__":
    main()
