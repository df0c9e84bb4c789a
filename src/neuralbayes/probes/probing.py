"""`probe`: evaluate the features of an encoder on labelled images or rows, with or without a test part."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.dataset import Split
from neuralbayes.data.sources import ArraySource, Images, ImageSource, SubsetSource, as_source
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.probes.held_out import divided
from neuralbayes.probes.protocol import Head, ProbeResult, Protocol, probe_parts


def probe(
    encoder: Any,
    X: Any,
    y: Any = None,
    *,
    test: Any = None,
    state: str = "relu4",
    head: Head = "mlp",
    protocol: Protocol = "validation",
    seeds: int = 3,
    max_epochs: int | None = None,
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
        Classifier: one hidden layer of 200 units, as in the paper; multinomial logistic regression; or the 20 nearest
        neighbours by cosine. The first two are trained with Adam, learning rate 0.001, batch size 128, no weight decay.
    protocol : {"validation", "paper"}, default="validation"
        "validation" selects the epoch on a held-out tenth of the training samples and reports the accuracy on all test
        samples. "paper" follows the authors' code: it trains on all training samples and reports the accuracy of the
        best epoch on the first 128 test samples. That is several points better than the accuracy on new images.
    seeds : int, default=3
        Number of repetitions with different weights, order and validation samples. Nearest neighbours are deterministic
        and run once.
    max_epochs : int, optional
        By default 100, as in the paper. With "validation", training stops after 5 epochs and 500 updates without
        improvement. With few samples it may take more epochs, up to 5,000 updates.
    cache : path, optional
        Folder in which to cache the features of an `ImageEncoder`, by weights and images.
    verbose : bool, default=False

    Returns
    -------
    ProbeResult
        Classes are numbered in the order of their names, unless they are already numbers from 0.

    Notes
    -----
    Features are standardised with the mean and standard deviation of the training samples. The paper does not mention
    this; with Adam at a fixed learning rate, it makes encoders of different scales comparable.

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
    samples, labels, name = _labelled(X, y, "X")
    if test is None:
        rows, held_out = divided(labels, name)
        parts = [(_some(samples, rows), labels[rows]), (_some(samples, held_out), labels[held_out])]
    else:
        other, classes = test if isinstance(test, tuple) and len(test) == 2 else (test, None)
        parts = [(samples, labels), _labelled(other, classes, "test")[:2]]
    coded = _numbered([labels for _, labels in parts])
    own = encoder if isinstance(encoder, ImageEncoder) else None
    if encoder is not None and own is None:
        parts = [(np.asarray(encoder.transform(some)), labels) for some, labels in parts]
    fit, judge = (
        (some, numbers) if isinstance(some, np.ndarray) else Images("images", split, some, numbers)
        for split, (some, _), numbers in zip(("train", "test"), parts, coded, strict=True)
    )
    return probe_parts(
        fit,
        judge,
        encoder=own,
        state=state,
        head=head,
        protocol=protocol,
        seeds=seeds,
        max_epochs=max_epochs,
        cache=cache,
        verbose=verbose,
    )


def _labelled(X: Any, y: Any, name: str) -> tuple[NDArray[Any] | ImageSource, NDArray[Any], str]:
    """Rows or a source of images, the classes, and their names."""
    called = f"`{name}`"
    if isinstance(X, Split):
        X = Images(called, "train", ArraySource(X.images, channels_first=False), X.labels)
    if isinstance(X, str | Path):
        from neuralbayes.data.images import load_images

        X = load_images(X)
    samples: NDArray[Any] | ImageSource
    if isinstance(X, Images):
        samples, known, called = X.source, X.labels, X.name
    else:
        rows = np.asarray(X) if not isinstance(X, ImageSource) and np.ndim(X) == 2 else None
        samples, known = (as_source(X), None) if rows is None else (rows, None)
    if y is None and known is None:
        raise ValueError(
            f"the classes of `{name}` must be given, or be known to it: put pictures into one folder for each class"
        )
    labels = np.asarray(known if y is None else y)
    if labels.shape != (len(samples),):
        raise ValueError(f"`y` must have a class for each of {len(samples)} samples, got shape {labels.shape}")
    if labels.dtype.kind == "f" or (labels.dtype.kind == "O" and any(label != label for label in labels)):
        raise ValueError(f"`y` must hold classes, whole numbers or names without a missing one, got {labels.dtype}")
    return samples, labels, called


def _some(samples: NDArray[Any] | ImageSource, rows: NDArray[np.int64]) -> NDArray[Any] | ImageSource:
    return samples[rows] if isinstance(samples, np.ndarray) else SubsetSource(samples, rows)


def _numbered(parts: list[NDArray[Any]]) -> list[NDArray[np.int64]]:
    """Encode classes as numbers from 0, consistently in all parts. Numbers are kept unless one is negative."""
    if all(part.dtype.kind in "iu" and part.min(initial=0) >= 0 for part in parts):
        return [part.astype(np.int64) for part in parts]
    _, numbers = np.unique(np.concatenate([part.astype(str) for part in parts]), return_inverse=True)
    return list(np.split(numbers.astype(np.int64), np.cumsum([len(part) for part in parts])[:-1]))
