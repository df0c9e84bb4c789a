"""Unsupervised features of rows: an objective on all hidden states of an MLP (section 3)."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.hidden import HiddenStates
from neuralbayes.objectives import MIM, Objective, Smoothness, WeightedSum
from neuralbayes.training import Batches, Callback, TrainingState, cosine
from neuralbayes.training.fit import fit
from neuralbayes.training.inference import in_blocks

Array = NDArray[Any]

CPU = torch.device("cpu")

SMALL = 5e7  # multiplications in a step below which one thread is faster than several
STEP = 0.05  # standard deviation of the step length of R_c, relative to the length of a row
BLOCK = 4096  # rows per forward pass of a trained network


@dataclass(frozen=True, eq=False)
class RowsEncoder:
    """A trained network, with the mean and standard deviation (n_features,) for normalising rows."""

    network: nn.Sequential
    mean: NDArray[np.float64]
    std: NDArray[np.float64]

    def prepare(self, X: Array) -> Tensor:
        """Normalise rows: subtract in float64, then return their own precision, at least float32."""
        return torch.from_numpy(((X - self.mean) / self.std).astype(np.promote_types(X.dtype, np.float32)))

    def states(self, X: Array, layer: int = -1, device: torch.device = CPU) -> Array:
        """Return a hidden state of each row in the precision of `X`, at least float32: (n, p) -> (n, n_states).

        It is computed on `device`, unless `X` has double precision and the device (mps) does not support it.
        """
        last = [i for i, module in enumerate(self.network) if isinstance(module, nn.ReLU)][layer]
        dtype = torch.float64 if X.dtype == np.float64 else torch.float32
        place = CPU if device.type == "mps" and dtype == torch.float64 else device
        network = copy.deepcopy(self.network[: last + 1]).to(place, dtype)
        return in_blocks(lambda some: network(self.prepare(X[some]).to(place)), len(X), block=BLOCK)


@dataclass(frozen=True, eq=False)
class _Inputs:
    """Prepared rows by their indices, as `data` for :func:`fit`."""

    encoder: RowsEncoder
    X: Array

    def __len__(self) -> int:
        return len(self.X)

    def __call__(self, indices: Tensor, /) -> Tensor:
        return self.encoder.prepare(self.X[indices.numpy()]).float()


def rows_network(n_features: int, hidden: Sequence[int]) -> nn.Sequential:
    """Linear layers with batch normalisation and ReLU: an :func:`mlp` without its last, linear layer."""
    return nn.Sequential(OrderedDict([*mlp((n_features, *hidden, 1), batch_norm=True).named_children()][:-1]))


def train_rows(
    X: Array,
    hidden: Sequence[int],
    *,
    objective: Objective | WeightedSum | None = None,
    alpha: float = 2.0,
    version: Literal[1, 2] = 2,
    beta: float = 0.2,
    batch_size: int = 100,
    epochs: int = 20,
    learning_rate: float = 3e-3,
    standardize: bool = True,
    callbacks: Sequence[Callback] = (),
    seed: int = 0,
    verbose: bool = False,
    device: str = "auto",
) -> RowsEncoder:
    """Learn features of unlabelled rows (n_samples, n_features) with an objective on every hidden state of an MLP.

    `X` has at least two rows and may be memory-mapped, and the objective is copied. The other parameters are those of
    :class:`neuralbayes.MIMEncoder`.
    """
    scaler = StandardScaler().fit(X)
    variance = scaler.var_
    std = scaler.scale_ if standardize else np.full(X.shape[1], np.sqrt(variance.mean()) or 1.0)
    batch_size = even_batches(len(X), batch_size)
    n_products = batch_size * sum(a * b for a, b in pairwise((X.shape[1], *hidden)))
    with torch.random.fork_rng(), threadpool_limits(1 if n_products < SMALL else None):
        torch.manual_seed(seed)
        encoder = RowsEncoder(rows_network(X.shape[1], hidden), scaler.mean_, std)
        states = HiddenStates(encoder.network, [n for n, _ in encoder.network.named_children() if n[:4] == "relu"], [1])
        # Steps are relative to the length of a row and differences to the number of states, so the meaning of `beta`
        # does not depend on the number of columns and units.
        length = float(np.sqrt((variance / std**2).sum())) or 1.0
        smoothness = Smoothness(beta * length**2 / hidden[-1], scale=STEP * length) if beta else None

        inputs = _Inputs(encoder, X)
        fit(
            MIM(alpha, version) if objective is None else copy.deepcopy(objective),
            states,
            inputs,
            max_epochs=epochs,
            batch_size=batch_size,
            smoothness=smoothness,
            optimizer=partial(torch.optim.Adam, lr=learning_rate),
            schedule=cosine(),
            drop_last=True,
            callbacks=callbacks,
            seed=seed,
            verbose=verbose,
            device=device,
        )
        # A few dozen steps are too few for running averages to converge: recompute them with the final weights.
        batches = Batches(len(X), batch_size, seed=seed, drop_last=True)
        update_bn((inputs(batches.indices(i)) for i in range(min(len(batches), 100))), encoder.network)
    encoder.network.eval().requires_grad_(False)
    return encoder


class LossCurve(Callback):
    """Keeps the mean loss of each epoch in `values`."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def on_epoch_end(self, state: TrainingState, metrics: Mapping[str, float]) -> None:
        self.values.append(metrics["loss"])


def even_batches(n_samples: int, batch_size: int) -> int:
    """The batch size, at least the requested one, that divides the samples most evenly.

    Examples
    --------
    >>> even_batches(50, 100), even_batches(199, 100), even_batches(1001, 100)
    (50, 199, 101)
    """
    return -(-n_samples // max(1, n_samples // batch_size))
