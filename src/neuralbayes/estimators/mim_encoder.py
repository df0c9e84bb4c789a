"""Unsupervised features as a scikit-learn transformer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.validation import check_is_fitted
from torch import nn

from neuralbayes import features
from neuralbayes.bayes import mutual_information
from neuralbayes.data.normalize import Normalization, Per
from neuralbayes.data.sources import ImageSource
from neuralbayes.estimators.inputs import Rows, as_fitted, as_images, as_rows
from neuralbayes.estimators.saving import Arrays, SavingMixin, filled, is_array, is_count, is_list
from neuralbayes.features.encoder import MAX_FEATURES, STATES, WIDTHS, ImageEncoder, state_use
from neuralbayes.objectives import Objective, WeightedSum
from neuralbayes.system.devices import torch_device, working_copy

Array = NDArray[Any]

WATCHED = 2000  # rows or images for measuring the information
COLLAPSED = 0.01  # information, as a fraction of log n_states, below which a layer has collapsed


class MIMEncoder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SavingMixin, BaseEstimator):  # type: ignore[misc]
    """Learn features of rows or images without labels, by maximising I(x; z) on every hidden layer of a network.

    The units of a layer are the states of a latent variable z, and their softmax is p(z|x). They are trained with MIM
    and a smoothness term (section 3 of the paper). Rows use fully connected layers, images the convolutional layers of
    the paper. You can replace MIM by any other :class:`Objective`.

    Parameters
    ----------
    hidden : tuple of int, default=(256, 256)
        Units of each layer, for rows.
    encoder : {"paper", "small", "tiny"}, default="small"
        Width of the encoder of images: 200-500-700-1000 channels, a quarter, or a twelfth.
    layer : int, default=-1
        Layer whose states are the features. Negative numbers count from the last. All layers are trained, so you can
        select another one after `fit` with ``set_params(layer=0)``.
    objective : Objective or WeightedSum, default=None
        Objective to minimise on every layer. None means :class:`MIM` with `alpha` and `version`.
    alpha : float, default=2.0
        Extra weight of using all states equally often; above -1.
    beta : float, default=None
        Weight of the smoothness term. None means 0.2 for rows and 0.5 for images. A larger weight makes features of
        similar rows more similar and less informative.
    version : {1, 2}, default=2
        Version of the objective; see :class:`MIM`.
    batch_size : int, default=100
        Minimum number of samples per step. p(z) is computed over the batch, for images as a running mean over batches.
    max_epochs : int, default=None
        Passes over the data. None means 20 for rows and 12 for images.
    learning_rate : float, default=None
        Initial learning rate of Adam, with a cosine schedule. None means 3e-3 for rows and 1e-2 for images.
    standardize : bool, default=True
        For rows, divide each column by its own standard deviation, or, if False, all columns by a common one. For
        images, remove the correlations between neighbouring pixels, or, if False, only scale each channel to variance
        1.
    random_state : int, RandomState instance or None, default=None
    device : str, default="auto"
        Device: "cpu", "cuda", "cuda:1" or "mps". "auto" uses the best one available.
    verbose : bool, default=False
        Show progress.

    Attributes
    ----------
    module_ : torch.nn.Module
        The network, on the CPU. It expects inputs normalised by `mean_`, `std_` and `whitening_`, the kernel that
        whitens images.
    mean_, std_ : ndarray of shape (n_features_in_,), or for images (C, 1, 1)
        For images, statistics of intensities in [0, 1].
    n_states_ : list of int
        Number of states of each layer.
    mutual_information_ : ndarray of shape (n_layers,)
        I(x; z) of each layer in nats, on up to 2000 training samples. At most log n_states.
    loss_curve_ : list of float
        Mean objective of each epoch.
    image_shape_ : list of int, or None
        [H, W, C], or None for rows.

    See Also
    --------
    neuralbayes.pretrain : Train on images with all settings, checkpoints and a run folder.

    Notes
    -----
    Images are trained with the "laptop" preset of :func:`neuralbayes.pretrain`. For rows, the smoothness term is
    relative to the length of a row and the number of units, so `beta` means the same for all tables.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from neuralbayes import MIMEncoder
    >>> X, y = load_wine(return_X_y=True)
    >>> encoder = MIMEncoder(hidden=(32, 16), random_state=0).fit(X)
    >>> encoder.transform(X).shape
    (178, 16)
    """

    module_: Any
    mean_: Array
    std_: Array
    whitening_: Array | None
    encoder_: str | None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "hidden": [tuple, list],
        "encoder": [StrOptions(set(WIDTHS))],
        "layer": [Integral],
        "objective": [Objective, WeightedSum, None],
        "alpha": [Interval(Real, -1, None, closed="neither")],
        "beta": [Interval(Real, 0, None, closed="left"), None],
        "version": [Options(Integral, {1, 2})],
        "batch_size": [Interval(Integral, 2, None, closed="left")],
        "max_epochs": [Interval(Integral, 1, None, closed="left"), None],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), None],
        "standardize": ["boolean"],
        "random_state": ["random_state"],
        "device": [str],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        hidden: Sequence[int] = (256, 256),
        *,
        encoder: str = "small",
        layer: int = -1,
        objective: Objective | WeightedSum | None = None,
        alpha: float = 2.0,
        beta: float | None = None,
        version: Literal[1, 2] = 2,
        batch_size: int = 100,
        max_epochs: int | None = None,
        learning_rate: float | None = None,
        standardize: bool = True,
        random_state: int | np.random.RandomState | None = None,
        device: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.hidden = hidden
        self.encoder = encoder
        self.layer = layer
        self.objective = objective
        self.alpha = alpha
        self.beta = beta
        self.version = version
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.standardize = standardize
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Rows, y: object = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or images
            Images are an array of shape (n, H, W), (n, H, W, C) or (n, C, H, W), uint8 or floating point in [0, 1], or
            anything that :func:`neuralbayes.pretrain` accepts, with at least 22x22 pixels. Memory-mapped arrays are not
            copied.
        y : ignored
        """
        self._forget()
        images = as_images(X)
        losses = features.LossCurve()
        rng = check_random_state(self.random_state)
        given = {"alpha": self.alpha, "beta": self.beta, "version": self.version, "epochs": self.max_epochs}
        given |= {"learning_rate": self.learning_rate, "seed": int(rng.randint(2**31 - 1))}
        settings = {name: value for name, value in given.items() if value is not None}
        if images is None:
            self._fit_rows(X, settings, losses, rng)
        else:
            self._fit_images(images, settings, losses)
        self.loss_curve_ = losses.values
        self.n_iter_ = len(self.loss_curve_)
        if (self.mutual_information_ < COLLAPSED * np.log(self.n_states_)).all():
            warnings.warn(
                "The features carry no information: every layer has collapsed, or all rows of X are alike. Look at X, "
                "then try a smaller beta, a larger alpha, another objective or another learning_rate.",
                ConvergenceWarning,
                stacklevel=3,  # points to the caller of `fit`, past its decorator
            )
        return self

    def transform(self, X: Rows) -> Array:
        """The states of the selected layer, after ReLU: (n_samples, n_features_out).

        For rows, in the precision of `X`. For images, in float32, averaged over windows if there are more than 4096.
        """
        return self._states(X, MAX_FEATURES)

    def predict_proba(self, X: Rows) -> Array:
        """p(z|x), the softmax of the selected layer, which is averaged over the positions of images first."""
        p_zx: Array = softmax(self._states(X, 1), axis=1)
        return p_zx

    def _fit_rows(self, X: Any, settings: dict[str, Any], losses: features.LossCurve, rng: Any) -> None:
        X = as_rows(self, X, reset=True)
        if not self.hidden or not all(isinstance(n, Integral) and n >= 2 for n in self.hidden):
            raise ValueError(f"`hidden` must be integers of at least 2, one per layer, got {self.hidden!r}")
        self._check_layer(len(self.hidden))
        given = settings | {"batch_size": self.batch_size, "standardize": self.standardize}
        trained = features.train_rows(X, self.hidden, callbacks=(losses,), **given, **self._training())
        watched = X if len(X) <= WATCHED else X[np.sort(rng.choice(len(X), WATCHED, replace=False))]
        states = [torch.from_numpy(trained.states(watched, layer)) for layer in range(len(self.hidden))]
        self.module_, self.mean_, self.std_ = trained.network, trained.mean, trained.std
        self.n_states_ = [int(n) for n in self.hidden]
        self.mutual_information_ = np.array([float(mutual_information(s, from_logits=True)) for s in states])
        self.image_shape_, self.encoder_, self.whitening_ = None, None, None

    def _fit_images(self, images: ImageSource, settings: dict[str, Any], losses: features.LossCurve) -> None:
        self._check_layer(len(STATES))
        if len(images) < 2:
            raise ValueError(f"X must hold at least 2 images, got {len(images)}")
        size = features.even_batches(len(images), self.batch_size)
        config = replace(
            features.PRESETS["laptop"],
            encoder=self.encoder,
            batch_size=size,
            microbatch_size=size,
            normalize="whiten" if self.standardize else "channel",
            **settings,
        )
        trained = features.pretrain(images, config, callbacks=(losses,), **self._training()).cpu()
        use = state_use(trained, images, WATCHED)
        self.module_ = trained.requires_grad_(False)
        self.mean_, self.std_ = trained.normalization.mean, trained.normalization.std
        self.whitening_ = trained.normalization.whitening
        self.n_states_ = [len(use[name].p_z) for name in STATES]
        self.mutual_information_ = np.array([use[name].information for name in STATES])
        self.image_shape_, self.encoder_ = list(trained.shape), trained.size
        self.n_features_in_ = math.prod(trained.shape)

    def _training(self) -> dict[str, Any]:
        return {"objective": self.objective, "device": self.device, "verbose": bool(self.verbose)}

    def _states(self, X: Rows, max_size: int) -> Array:
        check_is_fitted(self)
        layer = self._check_layer(len(self.n_states_))
        samples, device = as_fitted(self, X, self.image_shape_), torch_device(self.device)
        if isinstance(samples, np.ndarray):
            return features.RowsEncoder(self.module_, self.mean_, self.std_).states(samples, layer, device)
        states: Array = working_copy(self.module_, device).features(samples, STATES[layer], max_size=max_size)
        return states

    def _part(self, name: str, arrays: Arrays, network: nn.Module | None) -> Any:
        if len(self.n_states_) > len(arrays):
            raise ValueError(f"'n_states_' must be of layers with weights, got {len(self.n_states_)} layers")
        with torch.device("meta"), torch.random.fork_rng():  # drawn before the weights are loaded
            if self.image_shape_ is None or self.encoder_ is None:
                return filled(features.rows_network(self.n_features_in_, self.n_states_), arrays)
            height, width, channels = self.image_shape_
            per: Per = "channel" if self.whitening_ is None else "whiten"
            normalization = Normalization(per, self.mean_, self.std_, self.whitening_)
            return filled(ImageEncoder(self.encoder_, (height, width, channels), normalization), arrays)

    def _checks(self) -> dict[str, bool]:
        per_feature = (self.n_features_in_,) if self.image_shape_ is None else (self.image_shape_[2], 1, 1)
        return super()._checks() | {
            "module_": isinstance(self.module_, nn.Module),
            "encoder_": self.encoder_ is None or self.encoder_ in WIDTHS,
            "mean_": is_array(self.mean_, "f", *per_feature),
            "std_": is_array(self.std_, "f", *per_feature),
            "whitening_": self.whitening_ is None or is_array(self.whitening_, "f", None, None, None, None),
            "n_states_": is_list(self.n_states_, is_count),
            "mutual_information_": is_array(self.mutual_information_, "f", len(self.n_states_)),
            "loss_curve_": is_list(self.loss_curve_),
            "n_iter_": is_count(self.n_iter_),
        }

    def _check_layer(self, n_layers: int) -> int:
        if not -n_layers <= self.layer < n_layers:
            raise ValueError(f"`layer` must be from {-n_layers} to {n_layers - 1}, got {self.layer!r}")
        return int(self.layer)

    @property
    def _n_features_out(self) -> int:
        if self.image_shape_ is None:
            return int(self.n_states_[self.layer])
        return int(self._states(np.zeros((1, *self.image_shape_), np.uint8), MAX_FEATURES).shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
