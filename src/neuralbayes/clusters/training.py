r"""Train a network to states or clusters under virtual adversarial smoothness.

Every step minimises :math:`R_{VAT} + J`: p(z|x) must not change under the worst small step from x (Miyato et al. 2018),
and J is 0.1 times an objective (by default MIM, version 1, so this is IMSAT of Hu et al. 2017), or the cross-entropy to
votes of other methods.

Rows with known clusters and pairs of rows add a loss, whatever J is. A row with a target has the cross-entropy to it.
Two rows share a cluster with probability :math:`s = \sum_k p(k|x_i) \, p(k|x_j)`. A pair that must share a cluster has
the loss :math:`-\log s`, and a pair that must not has :math:`-\log(1 - s)` (Hsu et al. 2019, "Multi-class
classification without multi-class labels").
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits
from torch import Tensor, nn

from neuralbayes.bayes import mutual_information, sample_mean
from neuralbayes.clusters.known import NO_HINTS, UNKNOWN, Hints
from neuralbayes.clusters.posterior import Trained
from neuralbayes.distributed import default_fabric
from neuralbayes.features.tables import SMALL, even_batches
from neuralbayes.gradients.passes import frozen_buffers
from neuralbayes.networks.encoders import mlp
from neuralbayes.networks.states import WithStates
from neuralbayes.objectives import MIM, Objective
from neuralbayes.objectives.virtual_adversarial import virtual_adversarial
from neuralbayes.training import Batches, StopOnNaN, cosine, train

Array = NDArray[np.float64]
Fetch = Callable[[Tensor], Tensor]  # maps indices to samples in the form that the network takes

RADIUS = 0.4  # length of the worst step in units of the distance to the farthest of the neighbours
SMALL_STEP = 4.0  # length of the trial step that finds the worst direction, in units of the radius
INFORMATION, PRIOR = 0.1, 4.0  # IMSAT's lambda and mu: weights of the objective, and of H(z) in the default objective
HEAD = 1e-4  # initial scale of the last layer: states are almost equally probable for every sample
LEARNING_RATE = 2e-3  # initial learning rate of Adam, which decays to 0 along half a cosine
BATCH_SIZE, SAMPLES_PER_CLUSTER = 250, 4  # samples per step, and the least number of samples per cluster
SHARE = 4  # each batch is extended by a quarter of its size in rows with targets, and by as many pairs of each kind


@dataclass(frozen=True, eq=False)
class Anchors:
    """Rows with targets, and pairs of rows that must or cannot share a cluster, which a network must respect."""

    rows: Tensor  # indices (n_anchors,)
    target: Tensor  # distributions (n_anchors, n_clusters)
    must: Tensor  # pairs of indices (n_pairs, 2)
    cannot: Tensor

    @classmethod
    def of(cls, hints: Hints, n_clusters: int, votes: Tensor | None = None) -> Anchors | None:
        """Collect known rows, links, and votes (n_rows, n_clusters) for all rows; None if the hints are only weights.

        With votes, known rows are repeated until they make up about half of the rows to draw from.
        """
        if not hints.constrain:
            return None
        rows = np.flatnonzero(hints.known != UNKNOWN)
        target = torch.eye(n_clusters)[hints.known[rows]]
        if votes is not None:
            rows = np.tile(rows, len(votes) // max(1, len(rows)))
            target = torch.cat([torch.eye(n_clusters)[hints.known[rows]], votes])
            rows = np.concatenate([rows, np.arange(len(votes))])
        order = np.argsort(hints.group, kind="stable")
        order = order[hints.known[order] == UNKNOWN]
        same = hints.group[order[1:]] == hints.group[order[:-1]]
        must = np.stack([order[:-1][same], order[1:][same]], axis=1)
        return cls(torch.from_numpy(rows), target, torch.from_numpy(must), torch.from_numpy(hints.cannot))

    def draw(self, batch_size: int) -> Anchors:
        """Draw some of the rows and of each kind of pairs at random."""
        few = max(1, batch_size // SHARE)
        rows, must, cannot = (torch.randperm(len(every))[:few] for every in (self.rows, self.must, self.cannot))
        return Anchors(self.rows[rows], self.target[rows], self.must[must], self.cannot[cannot])

    def indices(self) -> Tensor:
        """Indices of the rows whose logits `loss` takes."""
        return torch.cat([self.rows, self.must.flatten(), self.cannot.flatten()])

    def loss(self, logits: Tensor) -> Tensor:
        """Sum of the mean losses of the rows and of each kind of pairs: a scalar."""
        sizes = [len(self.rows), self.must.numel(), self.cannot.numel()]
        of_rows, of_must, of_cannot = torch.split(logits, sizes)
        total = logits.new_zeros(())
        if len(of_rows):
            total = total + nn.functional.cross_entropy(of_rows, self.target.to(logits))
        if len(of_must):
            total = total - _shared(of_must).clamp_min(1e-6).log().mean()
        if len(of_cannot):
            total = total - (1.0 - _shared(of_cannot)).clamp_min(1e-6).log().mean()
        return total


def _shared(logits: Tensor) -> Tensor:
    """Probability that two rows share a cluster: logits of a, b, a, b, ... (2 n_pairs, n_clusters) -> (n_pairs,)."""
    p_zx = logits.softmax(dim=1)
    return (p_zx[::2] * p_zx[1::2]).sum(dim=1)


def smooth_step(
    network: nn.Module,
    batch: tuple[Tensor, ...],
    *,
    objective: Objective,
    fetch: Fetch | None = None,
    anchors: Anchors | None = None,
) -> dict[str, Tensor]:
    r"""Compute the gradient of :math:`R_{VAT} + 0.1 J(\text{logits})`, as a step of `train`.

    A batch has x, the length of each worst step (n,), and optionally versions of x (n, n_versions, *features), such as
    images moved a little. The worst step then starts from one of them, drawn at random. `fetch` maps the indices of
    `anchors`, whose loss is added, to samples. The metrics are "loss", without the anchors, "change" (R_VAT) and "mi".
    """
    x, radius, *versions = batch
    logits, of_anchors = _logits(network, x, fetch, anchors)
    change = _change(network, _one_of(x, versions), radius, logits)
    loss = change + INFORMATION * objective(logits)
    torch.autograd.backward(loss + of_anchors)
    return {"loss": loss, "change": change, "mi": mutual_information(logits.detach(), from_logits=True)}


def imitation_step(
    network: nn.Module, batch: tuple[Tensor, ...], *, fetch: Fetch | None = None, anchors: Anchors | None = None
) -> dict[str, Tensor]:
    """Like :func:`smooth_step`, with the cross-entropy to targets (n, n_states), the third of a batch, as J."""
    x, radius, target = batch
    logits, of_anchors = _logits(network, x, fetch, anchors)
    change = _change(network, x, radius, logits)
    loss = change + nn.functional.cross_entropy(logits, target)
    torch.autograd.backward(loss + of_anchors)
    return {"loss": loss, "change": change}


def _logits(network: nn.Module, x: Tensor, fetch: Fetch | None, anchors: Anchors | None) -> tuple[Tensor, Tensor]:
    """Logits of a batch, and the loss of some anchors; one pass for both, so that they share batch statistics."""
    if anchors is None or fetch is None:
        return network(x), x.new_zeros(())
    some = anchors.draw(len(x))
    logits = network(torch.cat([x, fetch(some.indices()).to(x)]))
    return logits[: len(x)], some.loss(logits[len(x) :])


def _change(network: nn.Module, near: Tensor, radius: Tensor, logits: Tensor) -> Tensor:
    """Mean change of p(z|x), given by its logits, under the worst step from inputs that are near x."""
    with frozen_buffers(network):  # running statistics come from the unchanged samples only
        start = torch.randn(near.shape, device=near.device, dtype=near.dtype)
        return virtual_adversarial(network, near, radius, clean=logits, n_iterations=1, step=SMALL_STEP, start=start)


def _one_of(x: Tensor, versions: list[Tensor]) -> Tensor:
    """Draw one version of each sample, (n, n_versions, *features) -> (n, *features), or take x if there are none."""
    if not versions:
        return x
    uniform = torch.special.ndtr(torch.randn(len(x), device=x.device, dtype=x.dtype))
    chosen = (uniform * versions[0].shape[1]).long().clamp_max(versions[0].shape[1] - 1)
    return versions[0][torch.arange(len(x), device=x.device), chosen]


def train_from_votes(
    network: nn.Module,
    points: Array,
    farthest: Array,
    shares: Array,
    *,
    steps: int | None = None,
    objective: Objective | None = None,
    hints: Hints = NO_HINTS,
    anchors: Anchors | None = None,
    device: str = "auto",
    verbose: bool = False,
) -> Trained:
    """Train a network on votes for a quarter of the steps, then with the objective; leave it in evaluation mode.

    From points (n_rows, n_dimensions), the distance to the farthest neighbour of each (n_rows,), which determines the
    length of adversarial steps, and the `shares` of the votes for each cluster (n_rows, n_clusters). Their mean is the
    target of p(z) of the default objective. By default, `anchors` are from the hints and the votes.
    """
    inputs, radius, target = (torch.from_numpy(x).float() for x in (points, RADIUS * farthest, shares))
    n_rows, n_clusters = target.shape
    anchors = anchors or Anchors.of(hints, n_clusters, target)
    if objective is None:
        objective = default_objective(sample_mean(target, None if hints.weight is None else torch.tensor(hints.weight)))
    batch_size = max(BATCH_SIZE, SAMPLES_PER_CLUSTER * n_clusters)
    if steps is None:
        steps = int(np.clip(16 * n_rows // batch_size, 360, 600))  # 16 epochs
    fetch = inputs.__getitem__
    run = partial(train_steps, network, fetch, hints=hints, device=device, verbose=verbose, batch_size=batch_size)
    imitate = partial(imitation_step, fetch=fetch, anchors=anchors)
    improve = partial(smooth_step, objective=objective, fetch=fetch, anchors=anchors)
    first = run((radius, target), imitate, steps=steps // 4, description="step of the start")
    return first.then(run((radius,), improve, steps=steps - steps // 4, description="step of the clusters"))


def train_steps(
    network: nn.Module,
    fetch: Fetch,
    tensors: tuple[Tensor, ...],
    step: Callable[[nn.Module, tuple[Tensor, ...]], dict[str, Tensor]],
    *,
    steps: int,
    batch_size: int = BATCH_SIZE,
    hints: Hints = NO_HINTS,
    device: str = "auto",
    verbose: bool = False,
    description: str,
) -> Trained:
    """Train on batches of samples and their entries in `tensors`, and leave the network in evaluation mode.

    Samples are drawn in proportion to the weights of the hints; the other hints are for the step.
    """
    if not steps:
        return Trained([], 0)
    pool = hints.pool()
    rows = torch.arange(len(tensors[0])) if pool is None else torch.as_tensor(pool)
    size, seed = even_batches(len(rows), batch_size), int(torch.randint(2**31, ()))
    state = train(
        network,
        step,
        Batches(len(rows), size, seed=seed, drop_last=True),
        fetch=lambda drawn: (fetch(rows[drawn]), *(tensor[rows[drawn]] for tensor in tensors)),
        optimizer=torch.optim.Adam(network.parameters(), lr=LEARNING_RATE),
        schedule=cosine(),
        max_steps=steps,
        log_every=1,
        callbacks=(StopOnNaN(),),
        fabric=default_fabric(device=device),
        verbose=verbose,
        description=description,
    )
    network.cpu().eval()
    losses = [line["loss"] for line in state.history]
    return Trained([float(np.mean(tenth)) for tenth in np.array_split(losses, min(10, len(losses)))], state.step)


def default_objective(sizes: Tensor | None = None) -> MIM:
    """MIM, version 1, with a target p(z) proportional to `sizes` (n_states,), or uniform without them."""
    if sizes is not None:
        sizes = sizes.clamp_min(1e-4)
        sizes = sizes / sizes.sum()
    return MIM(PRIOR - 1.0, version=1, target_prior=sizes)


def state_mlp(n_dimensions: int, n_hidden: int, n_states: int) -> nn.Sequential:
    """Make a network for coordinates: two hidden layers with batch normalisation."""
    return mlp((n_dimensions, n_hidden, n_hidden, n_states), batch_norm=True)


def state_network(body: nn.Module | None, some: Tensor, n_states: int, n_hidden: int) -> nn.Module:
    """Make a network whose states are almost equally probable: an MLP, or a copy of the user's own with a linear layer.

    `some` are a few inputs, at least 2.
    """
    network: nn.Module
    if body is None:
        network = state_mlp(some.shape[1], n_hidden, n_states)
        head: Any = network[-1]
    else:
        body = copy.deepcopy(body).train()
        with torch.no_grad(), frozen_buffers(body):
            n_features = body(some).flatten(1).shape[1]
        network = WithStates(body, n_features, n_states)
        head = network.head
        nn.init.zeros_(head.bias)
    with torch.no_grad():
        head.weight.mul_(HEAD)
    return network


@contextmanager
def seeded(rng: np.random.RandomState, n_products: float = math.inf) -> Iterator[None]:
    """Seed torch from `rng` inside the block, and use one thread if a step has few multiplications."""
    with torch.random.fork_rng(), threadpool_limits(1 if n_products < SMALL else None):
        torch.manual_seed(int(rng.randint(2**31 - 1)))
        yield
