"""Accuracy of a small classifier on fixed features, under an honest protocol or the paper's."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.probes.features import LabeledData, LabeledFeatures, labeled_features
from neuralbayes.probes.heads import BATCH_SIZE, Part, Scaler, nearest_neighbors, predict, train_head
from neuralbayes.training.progress import progress

Head = Literal["linear", "mlp", "knn"]
Protocol = Literal["validation", "paper"]
HEADS = ("linear", "mlp", "knn")
PROTOCOLS = ("validation", "paper")

PAPER_IMAGES = 128
"""Number of test images in the authors' code, always the first ones: the paper's accuracies are multiples of 1/128."""

EPOCHS = 100  # the paper's
VALIDATION = 0.1  # fraction of the training images that selects the epoch
# With few images an epoch has too few updates to learn anything, so "validation" counts updates too.
PATIENCE, PATIENCE_UPDATES = 5, 500
MIN_UPDATES = 5000


@dataclass(frozen=True)
class ProbeResult:
    """Result of a probe.

    Attributes
    ----------
    head : {"linear", "mlp", "knn"}
    protocol : {"validation", "paper"}
    accuracies : tuple of float
        Accuracy of each seed's classifier on the `n_test` images.
    epochs : tuple of int
        The selected epoch of each seed, counted from 1; 0 for nearest neighbours, which are not trained.
    curves : tuple of tuple of float
        Accuracy of each seed after each epoch, on the images that select the epoch: the validation images, or the
        paper's 128. Empty for nearest neighbours.
    confusion : tuple of tuple of int
        Entry (i, j) is how often an image of class i was classified as class j, summed over seeds.
    n_features, n_train, n_test : int
        `n_test` is the number of evaluated test images: all, or the paper's 128.
    feature_seconds, head_seconds : float
        Time to compute the features (the original time, if they were cached), and to train and test all heads.

    Examples
    --------
    >>> import numpy as np
    >>> import neuralbayes as nb
    >>> y = np.arange(400) % 2
    >>> x = np.random.default_rng(0).normal(size=(400, 8)) + 3 * y[:, None]
    >>> result = nb.probe(None, x[:300], y[:300], test=(x[300:], y[300:]), head="knn")
    >>> result.mean, result.confusion
    (1.0, ((50, 0), (0, 50)))
    """

    head: str
    protocol: str
    accuracies: tuple[float, ...]
    epochs: tuple[int, ...]
    curves: tuple[tuple[float, ...], ...]
    confusion: tuple[tuple[int, ...], ...]
    n_features: int
    n_train: int
    n_test: int
    feature_seconds: float
    head_seconds: float

    @property
    def mean(self) -> float:
        """Mean accuracy over seeds."""
        return statistics.fmean(self.accuracies)

    @property
    def std(self) -> float:
        """Standard deviation of the accuracy over seeds; 0 for a single seed."""
        return statistics.stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All attributes, as JSON types."""
        return {"mean": self.mean, "std": self.std} | asdict(self)


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
) -> ProbeResult:
    """Train a classifier on fixed features and test it.

    Parameters
    ----------
    train, test : Images, Split, or tuple (features of shape (n, d) or images, labels)
        Results of `neuralbayes.datasets.load` or `neuralbayes.load_images`, or pairs of arrays.
    encoder : ImageEncoder, optional
        Encoder to evaluate. Without it, the pixels or the given features are used.
    state, head, protocol, seeds, max_epochs, cache, verbose
        As in :func:`neuralbayes.probe`.

    Returns
    -------
    ProbeResult

    Examples
    --------
    >>> import numpy as np
    >>> y = np.arange(400) % 2
    >>> x = np.random.default_rng(0).normal(size=(400, 8)) + 3 * y[:, None]
    >>> result = probe_parts((x[:300], y[:300]), (x[300:], y[300:]), head="knn")
    >>> result.mean, result.n_test
    (1.0, 100)
    """
    _check(head, protocol, seeds, max_epochs)
    folder = None if cache is None else Path(cache)
    fit, judge = (
        labeled_features(data, name, encoder=encoder, state=state, cache=folder, verbose=verbose)
        for data, name in ((train, "train"), (test, "test"))
    )
    if fit.x.shape[1] != judge.x.shape[1]:
        raise ValueError(f"`test` must have {fit.x.shape[1]} features as `train` has, got {judge.x.shape[1]}")
    if len(fit.y) < 2:
        raise ValueError(f"`train` must have at least 2 rows, got {len(fit.y)}")
    start = time.perf_counter()
    steps = math.ceil(len(fit.y) / BATCH_SIZE)
    if max_epochs is None:
        max_epochs = EPOCHS if protocol == "paper" else max(EPOCHS, math.ceil(MIN_UPDATES / steps))
    patience = None if protocol == "paper" else max(PATIENCE, math.ceil(PATIENCE_UPDATES / steps))
    accuracies, epochs, curves, confusion = _judged(fit, judge, head, seeds, max_epochs, patience, verbose)
    return ProbeResult(
        head=head,
        protocol=protocol,
        accuracies=accuracies,
        epochs=epochs,
        curves=curves,
        confusion=tuple(tuple(row) for row in confusion.tolist()),
        n_features=fit.x.shape[1],
        n_train=len(fit.y),
        n_test=int(confusion.sum()) // len(accuracies),
        feature_seconds=round(fit.seconds + judge.seconds, 3),
        head_seconds=round(time.perf_counter() - start, 3),
    )


def _judged(
    fit: LabeledFeatures,
    judge: LabeledFeatures,
    head: str,
    seeds: int,
    max_epochs: int,
    patience: int | None,
    verbose: bool,
) -> tuple[tuple[float, ...], tuple[int, ...], tuple[tuple[float, ...], ...], Tensor]:
    """Accuracy, epoch and curve of each seed, and the confusion of all, (n_classes, n_classes).

    Without `patience`, this is the paper's protocol.
    """
    train, test = _whole(fit), _whole(judge)
    if patience is None:
        test = Part(test.x, test.y, test.rows[:PAPER_IMAGES])
    n_classes = int(max(train.y.max(), test.y.max())) + 1
    scaler = Scaler.fit(train.x)
    truth = test.y[test.rows]
    accuracies, epochs = [], []
    curves: list[list[float]] = []
    confusion = torch.zeros(n_classes, n_classes, dtype=torch.long)
    n_runs = 1 if head == "knn" else seeds
    total = n_runs if head == "knn" else n_runs * max_epochs
    with progress(total, description=f"epochs of {head}, at most", enabled=verbose) as display:

        def on_epoch(accuracy: float, n_rows: int) -> None:
            curves[-1].append(accuracy)
            display.advance(samples=n_rows, metrics={"accuracy": accuracy})

        for seed in range(n_runs):
            curves.append([])
            if head == "knn":
                predicted, epoch = nearest_neighbors(train, test, scaler, n_classes), 0
            else:
                predicted, epoch = _trained(train, test, scaler, n_classes, head, seed, max_epochs, patience, on_epoch)
            accuracies.append(float((predicted == truth).double().mean()))
            epochs.append(epoch)
            confusion += torch.bincount(truth * n_classes + predicted, minlength=n_classes**2).view(n_classes, -1)
    return tuple(accuracies), tuple(epochs), tuple(map(tuple, curves)), confusion


def _trained(
    train: Part,
    test: Part,
    scaler: Scaler,
    n_classes: int,
    head: str,
    seed: int,
    max_epochs: int,
    patience: int | None,
    on_epoch: Callable[[float, int], None],
) -> tuple[Tensor, int]:
    """Predictions of a newly trained classifier for the rows of `test`, and its epoch."""
    train, watched = (train, test) if patience is None else _split(train, seed)
    network, epoch = train_head(
        head,
        train,
        watched,
        scaler,
        n_classes,
        seed=seed,
        max_epochs=max_epochs,
        patience=patience,
        on_epoch=on_epoch,
    )
    return predict(network, test, scaler), epoch


def _split(part: Part, seed: int) -> tuple[Part, Part]:
    """Rows for training, and a tenth of the rows, at least one, to select the epoch."""
    order = torch.randperm(len(part), generator=torch.Generator().manual_seed(seed))
    n_held = max(1, round(VALIDATION * len(part)))
    return Part(part.x, part.y, part.rows[order[n_held:]]), Part(part.x, part.y, part.rows[order[:n_held]])


def _whole(features: LabeledFeatures) -> Part:
    return Part(torch.from_numpy(features.x), torch.from_numpy(features.y), torch.arange(len(features.y)))


def _check(head: str, protocol: str, seeds: int, max_epochs: int | None) -> None:
    if head not in HEADS:
        raise ValueError(f"`head` must be one of {', '.join(HEADS)}, got {head!r}")
    if protocol not in PROTOCOLS:
        raise ValueError(f"`protocol` must be one of {', '.join(PROTOCOLS)}, got {protocol!r}")
    for name, value in (("seeds", seeds), ("max_epochs", max_epochs)):
        if value is not None and value < 1:
            raise ValueError(f"`{name}` must be at least 1, got {value!r}")
