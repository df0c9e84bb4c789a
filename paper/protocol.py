"""The paper's probe (section 5.1): a small network, trained with Adam on fixed features, under two protocols.

"validation", the honest one: a held-out tenth of the training images selects the epoch, and the accuracy is that on all
test images. "paper", as in the authors' code: train on all training images, and report the best epoch on the first 128
test images, so that the published accuracies are multiples of 1 / 128.
"""

from __future__ import annotations

import copy
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from neuralbayes.data.images import Images, ImageSource
from neuralbayes.data.named import Split
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.probe import ProbeResult, features_of, labelled

Head = Literal["mlp", "linear"]
Protocol = Literal["validation", "paper"]
PROTOCOLS: tuple[Protocol, ...] = ("validation", "paper")

LabeledData = Images | Split | tuple[NDArray[Any], NDArray[Any]]
"""Images with their labels, or a pair (features or images, labels)."""

PAPER_IMAGES = 128
"""Number of test images in the authors' code, always the first ones."""

HIDDEN = 200  # units of the paper's classifier
BATCH_SIZE = 128
LEARNING_RATE = 1e-3
EPOCHS = 100  # the paper's
VALIDATION = 0.1  # fraction of the training images that selects the epoch
# With few images an epoch has too few updates to learn anything, so "validation" counts updates too.
PATIENCE, PATIENCE_UPDATES = 5, 500
MIN_UPDATES = 5000
BLOCK = 2048  # rows at a time outside training


@dataclass(frozen=True)
class PaperProbeResult(ProbeResult):
    """Result of a probe, without its confusion matrix; `epochs` and `curves` have an entry for each seed."""

    protocol: str
    epochs: tuple[int, ...]  # those selected, from 1
    curves: tuple[tuple[float, ...], ...]  # accuracy after each epoch on the images that select it


def probe_parts(
    train: LabeledData,
    test: LabeledData,
    *,
    encoder: ImageEncoder | None = None,
    state: str = "relu4",
    head: Head = "mlp",
    protocol: Protocol = "validation",
    seeds: int = 3,
    max_epochs: int | None = None,
    cache: str | Path | None = None,
    verbose: bool = False,
) -> PaperProbeResult:
    """Train a classifier on fixed features and test it.

    Parameters
    ----------
    train, test : Images, Split, or tuple (features of shape (n, d) or images, labels)
    encoder : ImageEncoder, optional
        Encoder to evaluate. Without it, the pixels or the given features are used.
    state : str, default="relu4"
    head : {"mlp", "linear"}
        The paper's network with one hidden layer of 200 units, or a linear one.
    protocol : {"validation", "paper"}
    seeds : int, default=3
        Number of repetitions with different weights, order and validation images.
    max_epochs : int, optional
        By default 100, as in the paper. With "validation", training stops after 5 epochs and 500 updates without
        improvement, and takes up to 5,000 updates where 100 epochs have fewer.
    cache, verbose
        As in :func:`neuralbayes.probe`, for the features.

    Examples
    --------
    >>> y = np.arange(400) % 2
    >>> x = np.random.default_rng(0).normal(size=(400, 8)) + 3 * y[:, None]
    >>> result = probe_parts((x[:300], y[:300]), (x[300:], y[300:]), protocol="paper", max_epochs=9, seeds=1)
    >>> result.mean, result.n_test
    (1.0, 100)
    """
    if protocol not in PROTOCOLS:
        raise ValueError(f"`protocol` must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    start = time.perf_counter()
    (samples, labels), (test_samples, test_labels) = opened(train, "train"), opened(test, "test")
    folder = None if cache is None else Path(cache)
    x, test_x = (
        torch.from_numpy(features_of(encoder, part, name, state=state, cache=folder, verbose=verbose))
        for name, part in (("train", samples), ("test", test_samples))
    )
    y, test_y = torch.from_numpy(labels), torch.from_numpy(test_labels)
    if len(y) < 2 or x.shape[1] != test_x.shape[1]:
        raise ValueError(f"`train` and `test` must have rows of one length, got {[*x.shape]} and {[*test_x.shape]}")
    encoded = time.perf_counter()

    mean, scale = standardisation(x)
    for features in (x, test_x):
        features.sub_(mean).mul_(scale)
    if protocol == "paper":
        test_x, test_y = test_x[:PAPER_IMAGES], test_y[:PAPER_IMAGES]
    steps = math.ceil(len(y) / BATCH_SIZE)
    n_classes = int(max(y.max(), test_y.max())) + 1
    accuracies, epochs, curves = [], [], []
    for seed in range(seeds):
        if protocol == "paper":
            fitted, watched = torch.arange(len(y)), (test_x, test_y)
            most = patience = max_epochs or EPOCHS
        else:
            order = torch.randperm(len(y), generator=torch.Generator().manual_seed(seed))
            n_held = max(1, round(VALIDATION * len(y)))
            fitted, watched = order[n_held:], (x[order[:n_held]], y[order[:n_held]])
            most = max_epochs or max(EPOCHS, math.ceil(MIN_UPDATES / steps))
            patience = max(PATIENCE, math.ceil(PATIENCE_UPDATES / steps))
        network, epoch, curve = train_head(head, x, y, fitted, watched, n_classes, seed, most, patience)
        accuracies.append(score(network, test_x, test_y)[0])
        epochs.append(epoch)
        curves.append(tuple(curve))
    return PaperProbeResult(
        head=head,
        protocol=protocol,
        accuracies=tuple(accuracies),
        confusion=(),
        epochs=tuple(epochs),
        curves=tuple(curves),
        n_features=x.shape[1],
        n_train=len(y),
        n_test=len(test_y),
        feature_seconds=round(encoded - start, 3),
        head_seconds=round(time.perf_counter() - encoded, 3),
    )


def opened(data: LabeledData, name: str) -> tuple[NDArray[Any] | ImageSource, NDArray[np.int64]]:
    """Features or a source of images, and their labels, integers from 0."""
    X, y = data if isinstance(data, tuple) else (data, None)
    samples, labels, _, _ = labelled(X, y, name)
    if labels.dtype.kind not in "iu" or labels.min(initial=0) < 0:
        raise ValueError(f"the labels of `{name}` must be integers from 0, got {labels.dtype}")
    return samples, labels.astype(np.int64)


def standardisation(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and inverse standard deviation of the columns of x, (n, d), in one pass of blocks."""
    n, mean, squares = 0, torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for part in torch.split(x, BLOCK):
        m = len(part)
        part_variance, part_mean = (v.double() for v in torch.var_mean(part, dim=0, correction=0))
        step = part_mean - mean
        # Chan, Golub and LeVeque 1979: combine the squared deviations of the parts
        squares = squares + m * part_variance + step.square() * (n * m / (n + m))
        n, mean = n + m, mean + step * (m / (n + m))
    std = (squares / n).sqrt()
    # Otherwise a feature that is almost always 0 would be a thousand times as large as the others when it is not.
    alive = std > 0
    floor = 1e-3 * float(std[alive].median()) if alive.any() else 1.0
    return mean.float(), torch.where(alive, 1.0 / std.clamp_min(floor), 0.0).float()


def train_head(
    head: Head,
    x: Tensor,
    y: Tensor,
    rows: Tensor,
    watched: tuple[Tensor, Tensor],
    n_classes: int,
    seed: int,
    max_epochs: int,
    patience: int,
) -> tuple[nn.Module, int, list[float]]:
    """Train a classifier on some `rows`; return it after its best epoch on `watched`, that epoch, and its accuracies.

    `seed` decides the weights and the order of the rows. Training stops after `patience` epochs without improvement.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = make_head(head, x.shape[1], n_classes)
        optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, fused=True)
        best, best_epoch, weights = (-math.inf, -math.inf), 0, network.state_dict()
        last_gain = 0  # in accuracy: the cross-entropy may keep falling for correct samples
        curve: list[float] = []
        for epoch in range(1, max_epochs + 1):
            for some in torch.split(rows[torch.randperm(len(rows))], BATCH_SIZE):
                optimizer.zero_grad()
                torch.autograd.backward(nn.functional.cross_entropy(network(x[some]), y[some]))
                optimizer.step()
            found = score(network, *watched)
            curve.append(found[0])
            last_gain = epoch if found[0] > best[0] else last_gain
            if found > best:
                best, best_epoch, weights = found, epoch, copy.deepcopy(network.state_dict())
            if epoch - last_gain >= patience:
                break
    network.load_state_dict(weights)
    return network, best_epoch, curve


def make_head(head: Head, n_features: int, n_classes: int) -> nn.Module:
    """The paper's classifier with 200 hidden units, or a linear one that starts at 0."""
    if head == "mlp":
        return nn.Sequential(nn.Linear(n_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_classes))
    linear = nn.Linear(n_features, n_classes)
    for parameter in linear.parameters():  # convex: any start works, and noise would have to be unlearnt first
        nn.init.zeros_(parameter)
    return linear


@torch.no_grad()
def score(network: nn.Module, x: Tensor, y: Tensor) -> tuple[float, float]:
    """Accuracy, and minus the cross-entropy, which breaks ties."""
    right, loss = 0.0, 0.0
    for part, labels in zip(torch.split(x, BLOCK), torch.split(y, BLOCK), strict=True):
        logits = network(part)
        right += float((logits.argmax(1) == labels).sum())
        loss += float(nn.functional.cross_entropy(logits, labels, reduction="sum"))
    return right / len(y), -loss / len(y)
