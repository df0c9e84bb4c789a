"""How good features are: train a small classifier of scikit-learn on them and test it."""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

from neuralbayes.data.images import Images, ImageSource, as_source, load_images
from neuralbayes.data.named import Split
from neuralbayes.data.sources import ArraySource, subset
from neuralbayes.features.cache import cached_features
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.networks import FeatureNetwork, digest_of
from neuralbayes.training.inference import in_blocks
from neuralbayes.training.progress import watched

Head = Literal["mlp", "linear", "knn"]
HEADS = ("mlp", "linear", "knn")

HELD_OUT = 0.2  # of each class, if there are no test samples
NEIGHBORS = 20
BATCH = 128
EPOCHS, PATIENCE = 100, 5
# With few samples an epoch has too few updates to learn anything, so updates count too.
UPDATES, PATIENCE_UPDATES = 5000, 500

Samples = NDArray[Any] | ImageSource


@dataclass(frozen=True)
class ProbeResult:
    """Result of a probe.

    Attributes
    ----------
    head : {"mlp", "linear", "knn"}
    accuracies : tuple of float
        Accuracy on the test samples, one for each seed.
    confusion : tuple of tuple of int
        Entry (i, j) is how often a sample of class i was classified as class j, summed over seeds.
    n_features, n_train, n_test : int
    feature_seconds, head_seconds : float
        Time to compute the features, and to train and test all classifiers.
    """

    head: str
    accuracies: tuple[float, ...]
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


def probe(
    encoder: Any,
    X: Any,
    y: Any = None,
    *,
    test: Any = None,
    state: str = "relu4",
    head: Head = "mlp",
    seeds: int = 3,
    cache: str | Path | None = None,
    verbose: bool = False,
) -> ProbeResult:
    """Evaluate the features of an encoder: train a classifier on them and test it.

    Parameters
    ----------
    encoder : ImageEncoder, fitted transformer, or None
        Encoder to evaluate: a result of :func:`neuralbayes.pretrain`, or any estimator with a method `transform`, such
        as :class:`neuralbayes.MIMEncoder`. None probes the rows or pixels themselves.
    X : images, or array of shape (n, d)
        Rows, or images in any form that :func:`neuralbayes.pretrain` accepts: a folder, paths, arrays, tensors, a data
        set.
    y : array-like of shape (n,), optional
        The class of each sample, as a number or a name. Not needed if `X` contains the classes: a folder with one
        subfolder per class, a named data set, or a result of :func:`neuralbayes.load_images`.
    test : tuple (X, y), Images or Split, optional
        Test samples. By default, a fifth of each class of `X` is held out, always the same samples.
    state : str, default="relu4"
        Hidden state of an `ImageEncoder`.
    head : {"mlp", "linear", "knn"}, default="mlp"
        Classifier: one hidden layer of 200 units, as in the paper, trained with Adam until a tenth of the training
        samples is classified no better; logistic regression; or the 20 nearest neighbours by cosine, weighted by it.
    seeds : int, default=3
        Number of repetitions of "mlp" with different weights and validation samples. The others are deterministic and
        run once.
    cache : path, optional
        Folder in which to keep the features of an `ImageEncoder`, by its weights and the content of each image.
    verbose : bool, default=False
        Show progress.

    Returns
    -------
    ProbeResult
        Classes are numbered in the order of their names, unless they are already numbers from 0.

    Notes
    -----
    Features are standardised with the mean and standard deviation of the training samples. The protocol of the paper's
    authors, which reports the best epoch on 128 test images, is in the folder ``paper`` of the repository.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> encoder = nb.MIMEncoder(hidden=(32, 16), random_state=0).fit(X)
    >>> result = nb.probe(encoder, X, y, head="linear")
    >>> result.n_train, result.n_test, result.mean > 0.8
    (142, 36, True)
    """
    if encoder is not None and not hasattr(encoder, "transform") and not isinstance(encoder, ImageEncoder):
        raise TypeError(
            "`encoder` must be an ImageEncoder, have a method `transform`, or be None for the samples themselves, got "
            f"{type(encoder).__name__}; the call is probe(encoder, X, y, test=(X, y))"
        )
    if head not in HEADS:
        raise ValueError(f"`head` must be one of {', '.join(HEADS)}, got {head!r}")
    if seeds < 1:
        raise ValueError(f"`seeds` must be at least 1, got {seeds!r}")
    samples, classes, name, class_names = labelled(X, y, "X")
    if test is None:
        rows, held_out = held_out_part(classes, name, class_names)
        take = samples.__getitem__ if isinstance(samples, np.ndarray) else partial(subset, samples)
        parts = [(take(part), classes[part]) for part in (rows, held_out)]
    else:
        test_X, test_y = test if isinstance(test, tuple) and len(test) == 2 else (test, None)
        parts = [(samples, classes), labelled(test_X, test_y, "test")[:2]]
    train_y, held_y = class_numbers([of_part for _, of_part in parts])
    start = time.perf_counter()
    folder = None if cache is None else Path(cache)
    train, held = (
        features_of(encoder, part, name, state, folder, verbose)
        for name, (part, _) in zip(("X", "test"), parts, strict=True)
    )
    if train.shape[1] != held.shape[1]:
        raise ValueError(f"`test` must have {train.shape[1]} features as `X` has, got {held.shape[1]}")
    encoded = time.perf_counter()

    scaler = StandardScaler(copy=False).fit(train)  # features are our own
    train, held = scaler.transform(train), scaler.transform(held)
    numbers = np.arange(max(train_y.max(), held_y.max()) + 1)
    confusions = []
    heads = [_classifier(head, train_y, train.shape[1], seed) for seed in range(seeds if head == "mlp" else 1)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the last iteration is as good as the paper's last epoch
        for classifier in watched(heads, f"classifiers ({head})", len(heads), verbose):
            predicted = classifier.fit(train, train_y).predict(held)
            confusions.append(confusion_matrix(held_y, predicted, labels=numbers))
    return ProbeResult(
        head=head,
        accuracies=tuple(float(np.trace(counts) / counts.sum()) for counts in confusions),
        confusion=tuple(map(tuple, np.sum(confusions, axis=0).tolist())),
        n_features=train.shape[1],
        n_train=len(train),
        n_test=len(held),
        feature_seconds=round(encoded - start, 3),
        head_seconds=round(time.perf_counter() - encoded, 3),
    )


def _classifier(head: Head, y: NDArray[np.int64], n_features: int, seed: int) -> Any:
    if head == "knn":
        return KNeighborsClassifier(min(NEIGHBORS, len(y)), metric="cosine", weights="distance")
    if head == "linear":
        # A prior that keeps logits at the same size for any number of features; on seven sets, accuracy was within a
        # point of the best weight. A finer tolerance takes several times as long for nothing.
        return LogisticRegression(C=10.0 / n_features, tol=1e-3, max_iter=1000)
    counts = np.bincount(y)[np.unique(y)]
    n, n_classes = len(y), len(counts)
    # The validation part needs a sample of each class, and so does the rest.
    n_held = max(n_classes, math.ceil(0.1 * n)) if counts.min() >= 2 and n > 2 * n_classes else 0
    steps = math.ceil(n / BATCH)
    return MLPClassifier(
        (200,),
        batch_size=min(BATCH, n - n_held),
        early_stopping=n_held > 0,
        validation_fraction=(n_held - 0.5) / n if n_held else 0.1,  # which scikit-learn rounds up
        max_iter=max(EPOCHS, math.ceil(UPDATES / steps)),
        n_iter_no_change=max(PATIENCE, math.ceil(PATIENCE_UPDATES / steps)),
        random_state=seed,
    )


def features_of(
    encoder: Any, samples: Samples, name: str, state: str, cache: Path | None, verbose: bool
) -> NDArray[np.float32]:
    """A hidden state of an `ImageEncoder`, the result of `transform`, or the rows or pixels themselves: (n, d)."""
    if isinstance(encoder, ImageEncoder):
        if isinstance(samples, np.ndarray):
            raise ValueError(f"`{name}` must be images if an encoder is given, got rows of shape {samples.shape}")
        if cache is None:
            return encoder.features(samples, state, verbose=verbose)
        weights = encoder.state_dict() | {k: torch.from_numpy(v) for k, v in encoder.normalization.to_arrays().items()}
        identity = digest_of(weights, (encoder.normalization.to_dict(), state))
        network = FeatureNetwork(state, "pictures", identity, lambda images: encoder.features(images, state))
        return cached_features(network, samples, cache / f"{state}-{identity[:12]}.safetensors", verbose=verbose)
    if encoder is None and not isinstance(samples, np.ndarray):
        size = math.prod(samples.shape)
        return in_blocks(lambda some: samples.read(some).reshape(-1, size) / np.float32(255), len(samples), block=1000)
    found = np.array(samples if encoder is None else encoder.transform(samples), dtype=np.float32)
    if found.ndim != 2 or 0 in found.shape or not np.isfinite(found).all():
        raise ValueError(f"the features of `{name}` must be finite, of shape (n, d), and not empty, got {found.shape}")
    return found


def labelled(X: Any, y: Any, name: str) -> tuple[Samples, NDArray[Any], str, Sequence[str] | None]:
    """Rows or a source of images, the class of each, a name for messages, and the names of the classes."""
    called, class_names = f"`{name}`", None
    if isinstance(X, Split):
        X = Images(called, "train", ArraySource(X.images, channels_first=False), X.labels)
    if isinstance(X, str | Path):
        X = load_images(X)
    samples: Samples
    if isinstance(X, Images):
        samples, known, called, class_names = X.source, X.labels, X.name, X.class_names
    else:
        rows = np.asarray(X) if not isinstance(X, ImageSource) and np.ndim(X) == 2 else None
        samples, known = (as_source(X), None) if rows is None else (rows, None)
    if y is None and known is None:
        raise ValueError(
            f"the classes of `{name}` must be given, or be known to it: put pictures into one folder for each class"
        )
    classes = np.asarray(known if y is None else y)
    if classes.shape != (len(samples),):
        raise ValueError(f"`y` must have a class for each of {len(samples)} samples, got shape {classes.shape}")
    if classes.dtype.kind == "f" or (classes.dtype.kind == "O" and any(one != one for one in classes)):
        raise ValueError(f"`y` must hold classes, whole numbers or names without a missing one, got {classes.dtype}")
    return samples, classes, called, class_names


def class_numbers(parts: Sequence[NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Classes as numbers from 0, alike in all parts. Numbers are kept unless one is negative."""
    if all(part.dtype.kind in "iu" and part.min(initial=0) >= 0 for part in parts):
        return [part.astype(np.int64) for part in parts]
    _, numbers = np.unique(np.concatenate([part.astype(str) for part in parts]), return_inverse=True)
    return list(np.split(numbers.astype(np.int64), np.cumsum([len(part) for part in parts])[:-1]))


def held_out_part(
    classes: NDArray[Any], name: str, class_names: Sequence[str] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the training and the held-out samples, in ascending order: the same for the same classes."""
    found, counts = np.unique(classes, return_counts=True)
    if counts.min(initial=2) < 2:
        rare = found[counts.argmin()]
        raise ValueError(
            "there must be at least two samples of each class to divide them into a train and a test part, but "
            f"{name} has one of class {rare if class_names is None else repr(class_names[rare])}"
        )
    n_test = max(len(found), math.ceil(HELD_OUT * len(classes)))
    if len(classes) - n_test < len(found):
        raise ValueError(
            f"{name} must have more samples to be divided into a train and a test part: {len(classes)} for "
            f"{len(found)} classes are too few"
        )
    train, test = train_test_split(np.arange(len(classes)), test_size=n_test, stratify=classes, random_state=0)
    return np.sort(train), np.sort(test)
