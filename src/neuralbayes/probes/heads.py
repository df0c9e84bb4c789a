"""Classifiers on fixed features: linear, one hidden layer as in the paper, and nearest neighbours."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

HIDDEN = 200  # units of the paper's classifier, section 5.1
BATCH_SIZE = 128
LEARNING_RATE = 1e-3
NEIGHBORS = 20
BLOCK = 2048  # rows standardised at a time, outside training


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardise to mean 0 and variance 1, one batch at a time, without a second copy of the features."""

    mean: Tensor
    scale: Tensor

    @classmethod
    def fit(cls, x: Tensor) -> Scaler:
        """Mean and standard deviation of the columns of `x`, (n, d), in one pass."""
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
        scale = torch.where(alive, 1.0 / std.clamp_min(floor), 0.0)
        return cls(mean.float(), scale.float())

    def __call__(self, x: Tensor) -> Tensor:
        """Standardise a batch in place; the caller must own it."""
        return x.sub_(self.mean).mul_(self.scale)


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of labelled features, without a copy: x (n, d), y (n,), rows (m,)."""

    x: Tensor
    y: Tensor
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, size: int, scaler: Scaler, *, shuffle: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
        """Iterate once over the standardised features and labels of all rows."""
        rows = self.rows[torch.randperm(len(self))] if shuffle else self.rows
        for part in torch.split(rows, size):
            yield scaler(self.x.index_select(0, part)), self.y[part]


def train_head(
    head: str,
    train: Part,
    watched: Part,
    scaler: Scaler,
    n_classes: int,
    *,
    seed: int,
    max_epochs: int,
    patience: int | None,
    on_epoch: Callable[[float, int], None],
) -> tuple[nn.Module, int]:
    """Train a classifier with Adam and return it after its best epoch on `watched`.

    Parameters
    ----------
    head : {"linear", "mlp"}
    train, watched : Part
    scaler : Scaler
    n_classes : int
    seed : int
        Seed of the weights and of the order of the rows.
    max_epochs : int
    patience : int or None
        Epochs without improvement after which to stop.
    on_epoch : callable
        Called with the accuracy on `watched` and the number of rows trained on after each epoch.

    Returns
    -------
    network : nn.Module
    epoch : int
        The best epoch, counted from 1.
    """
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = _network(head, train.x.shape[1], n_classes)
        optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, fused=True)
        best, best_epoch, weights = (-math.inf, -math.inf), 0, network.state_dict()
        last_gain = 0  # in accuracy: the cross-entropy may keep falling for correct samples
        for epoch in range(1, max_epochs + 1):
            for x, y in train.batches(BATCH_SIZE, scaler, shuffle=True):
                optimizer.zero_grad()
                torch.autograd.backward(nn.functional.cross_entropy(network(x), y))
                optimizer.step()
            score = _score(network, watched, scaler)
            on_epoch(score[0], len(train))
            last_gain = epoch if score[0] > best[0] else last_gain
            if score > best:
                best, best_epoch, weights = score, epoch, copy.deepcopy(network.state_dict())
            if patience is not None and epoch - last_gain >= patience:
                break
    network.load_state_dict(weights)
    return network, best_epoch


@torch.no_grad()
def predict(network: nn.Module, part: Part, scaler: Scaler) -> Tensor:
    """The most probable class of each row: (m,)."""
    return torch.cat([network(x).argmax(1) for x, _ in part.batches(BLOCK, scaler)])


@torch.no_grad()
def _score(network: nn.Module, part: Part, scaler: Scaler) -> tuple[float, float]:
    """Accuracy, and minus the cross-entropy, which breaks ties."""
    right, loss = 0.0, 0.0
    for x, y in part.batches(BLOCK, scaler):
        logits = network(x)
        right += float((logits.argmax(1) == y).sum())
        loss += float(nn.functional.cross_entropy(logits, y, reduction="sum"))
    return right / len(part), -loss / len(part)


@torch.no_grad()
def nearest_neighbors(
    train: Part, test: Part, scaler: Scaler, n_classes: int, k: int = NEIGHBORS, *, block: int = BLOCK
) -> Tensor:
    """The most common class among the `k` training rows with the largest cosine to each row of `test`: (m,).

    The training rows are processed in blocks of `block`, so that memory holds neither a second copy of them nor all
    similarities. Ties go to the class with the nearer neighbours.
    """
    k = min(k, len(train))
    tests = torch.cat([nn.functional.normalize(x) for x, _ in test.batches(block, scaler)])
    nearest = torch.full((len(tests), k), -math.inf)
    classes = torch.zeros((len(tests), k), dtype=torch.long)
    for x, y in train.batches(block, scaler):
        similarity = torch.cat([nearest, tests @ nn.functional.normalize(x).T], dim=1)
        nearest, columns = similarity.topk(k, dim=1)
        classes = torch.cat([classes, y.expand(len(tests), -1)], dim=1).gather(1, columns)
    # The sum of k cosines is at most k, so it breaks ties but never outweighs a larger count.
    votes = torch.zeros(len(tests), n_classes)
    return votes.scatter_add_(1, classes, 1.0 + nearest / (2 * k + 1)).argmax(1)


def _network(head: str, n_features: int, n_classes: int) -> nn.Module:
    if head == "linear":
        linear = nn.Linear(n_features, n_classes)
        for parameter in linear.parameters():  # convex: any start works, and noise would have to be unlearnt first
            nn.init.zeros_(parameter)
        return linear
    return nn.Sequential(nn.Linear(n_features, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_classes))
