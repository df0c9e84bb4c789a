"""Compare two rules for merging states of small images: accuracy, agreement between seeds, and number of clusters.

    python benchmarks/image_states.py --seeds 5

Each network is trained to states only, and both rules merge the same states. The agreement is the mean adjusted Rand
index between the clusters of two seeds. It needs no classes. The accuracy does, and uses all images of a set.
"""

from __future__ import annotations

import argparse
import itertools
import platform
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from field_sets import RAREST
from numpy.typing import NDArray
from paper.packaged_data import load
from records import Results
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn.functional import interpolate

import neuralbayes as nb
from neuralbayes.clusters.images import choose_number, default_states, default_steps, fit_images
from neuralbayes.clusters.merging import Merging, merge_states, merge_versions
from neuralbayes.training.inference import in_blocks

Array = NDArray[Any]
FOLDER = Path(__file__).parents[1] / "results" / "field"
FILE = "image_states"
PACKAGES = ("neuralbayes", "torch", "numpy", "scipy", "scikit-learn")
N_CLASSES, MOST_CLUSTERS = 10, 20
N_SMALL, SIDE = 9000, 16
"""Number of training images of MNIST, and the side to which they are scaled down."""

RULES: dict[str, Callable[[Array], Merging]] = {"ratio": merge_states, "H - V": merge_versions}


def digits() -> tuple[Array, Array]:
    """The training images of digits, 8 x 8."""
    train = nb.datasets.load("digits").train
    return train.images, np.asarray(train.labels)


def small_mnist() -> tuple[Array, Array]:
    """Some training images of MNIST, scaled down to 16 x 16."""
    train = load("mnist").train
    some = np.random.RandomState(5).permutation(len(train.images))[:N_SMALL]
    pixels = torch.from_numpy(train.images[some]).movedim(-1, 1).float()
    small = interpolate(pixels, size=(SIDE, SIDE), mode="area")
    return small.movedim(1, -1).round().byte().numpy(), np.asarray(train.labels)[some]


def unequal(images: Array, classes: Array) -> tuple[Array, Array]:
    """Keep a smaller share of each class than of the one before, down to a tenth."""
    share = np.linspace(1.0, RAREST, N_CLASSES)[classes]
    kept = np.random.default_rng(0).random(len(classes)) < share
    return images[kept], classes[kept]


SETS: dict[str, Callable[[], tuple[Array, Array]]] = {
    "digits": digits,
    "digits 1:10": lambda: unequal(*digits()),
    "small MNIST": small_mnist,
    "small MNIST 1:10": lambda: unequal(*small_mnist()),
}


def train(images: Array, seed: int) -> tuple[Array, Array]:
    """Train a network to states; return p(z, z') of images and their versions, and p(z|x)."""

    def read(indices: Array) -> Tensor:
        return torch.from_numpy(images[indices]).movedim(-1, 1).float() / 255

    n_images = len(images)
    n_states = default_states(N_CLASSES, n_images)
    # With as many clusters as states, nothing is merged and all steps train the states.
    steps = default_steps(n_images) // 2
    rng = np.random.RandomState(seed)
    found = fit_images(read, n_images, n_states, n_states=n_states, max_iter=steps, rng=rng)
    p_zx = in_blocks(lambda rows: found.network(read(rows)).softmax(dim=1), n_images, block=2000)
    return found.joint, p_zx[:, np.argsort(found.network.membership.argmax(dim=0).numpy())]


def measure(results: Results, name: str, seeds: int) -> None:
    """Record both rules on one set for all seeds."""
    images, classes = SETS[name]()
    labels: dict[str, list[Array]] = {rule: [] for rule in RULES}
    rows: list[dict[str, Any]] = []
    for seed in range(seeds):
        start = time.process_time()
        joint, p_zx = train(images, seed)
        seconds = time.process_time() - start
        for rule, merge in RULES.items():
            merging = merge(joint)
            found = (p_zx @ np.eye(N_CLASSES)[merging.clusters(N_CLASSES)]).argmax(axis=1)
            labels[rule].append(found)
            rows.append(
                {
                    "set": name,
                    "rule": rule,
                    "seed": seed,
                    "accuracy": nb.clustering_accuracy(found, classes),
                    "number": choose_number(merging, MOST_CLUSTERS, by_information=rule == "H - V")[0],
                    "processor_seconds": seconds,
                }
            )
            print(rows[-1], flush=True)
    agreement = {
        rule: float(np.mean([adjusted_rand_score(a, b) for a, b in itertools.combinations(found, 2)]))
        for rule, found in labels.items()
    }
    for row in rows:
        results.add(FILE, {**row, "agreement": agreement[row["rule"]]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5, help="number of networks per set, at least 2")
    parser.add_argument("--only", nargs="+", choices=SETS, help="measure only these sets")
    arguments = parser.parse_args()
    if arguments.seeds < 2:
        parser.error("--seeds must be at least 2, because the rules are compared between seeds")
    versions = {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}
    results = Results(FOLDER, versions, [FILE], "python benchmarks/image_states.py")
    with threadpool_limits(1):
        for name in arguments.only or SETS:
            if not results.has(FILE, {"set": name, "seed": 0}):
                measure(results, name, arguments.seeds)


if __name__ == "__main__":
    main()
