r"""A loss, added to the objective, for rows with known clusters and for pairs that belong together or apart.

The loss of a row with a target is the cross-entropy to that target. Two rows share a cluster with probability
:math:`s = \sum_k p(k|x_i) \, p(k|x_j)`. A pair that must share a cluster has the loss :math:`-\log s`, and a pair that
must not has :math:`-\log(1 - s)` (Hsu et al. 2019, "Multi-class classification without multi-class labels").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from neuralbayes.clusters.known import UNKNOWN, Hints

SHARE = 4
"""Each batch is extended by a quarter of its size in rows with targets, and by as many pairs of each kind."""


@dataclass(frozen=True, eq=False)
class Anchors:
    """The targets and pairs that a network must respect, as indices of rows.

    Attributes
    ----------
    rows : Tensor of shape (n_anchors,)
    target : Tensor of shape (n_anchors, n_clusters)
        Distributions over the clusters.
    must, cannot : Tensor of shape (n_pairs, 2)
    """

    rows: Tensor
    target: Tensor
    must: Tensor
    cannot: Tensor

    @classmethod
    def of(cls, hints: Hints, n_clusters: int, votes: Tensor | None = None) -> Anchors | None:
        """Collect known rows, links, and votes (n_rows, n_clusters) for all rows; None if the hints are only weights.

        With votes, known rows are repeated until they make up about half of the rows to draw from.
        """
        if hints.known is None or hints.group is None or hints.cannot is None:
            return None
        rows = np.flatnonzero(hints.known != UNKNOWN)
        order = np.argsort(hints.group, kind="stable")
        order = order[hints.known[order] == UNKNOWN]
        same = hints.group[order[1:]] == hints.group[order[:-1]]
        target = torch.eye(n_clusters)[hints.known[rows]]
        if votes is not None:
            rows = np.tile(rows, len(votes) // max(1, len(rows)))
            target = torch.cat([torch.eye(n_clusters)[hints.known[rows]], votes])
            rows = np.concatenate([rows, np.arange(len(votes))])
        return cls(
            torch.from_numpy(rows),
            target,
            torch.from_numpy(np.stack([order[:-1][same], order[1:][same]], axis=1)),
            torch.from_numpy(hints.cannot),
        )

    def draw(self, batch_size: int) -> Anchors:
        """Draw some of the rows and of each kind of pairs at random."""
        few = max(1, batch_size // SHARE)
        rows, must, cannot = (torch.randperm(len(all_of))[:few] for all_of in (self.rows, self.must, self.cannot))
        return Anchors(self.rows[rows], self.target[rows], self.must[must], self.cannot[cannot])

    def indices(self) -> Tensor:
        """Indices of the rows whose logits `loss` takes."""
        return torch.cat([self.rows, self.must.flatten(), self.cannot.flatten()])

    def loss(self, logits: Tensor) -> Tensor:
        """Sum of the mean losses of the rows and of each kind of pairs: a scalar."""
        n_rows, n_must = len(self.rows), self.must.numel()
        total = logits.new_zeros(())
        if n_rows:
            total = total + nn.functional.cross_entropy(logits[:n_rows], self.target.to(logits))
        of_pairs = logits[n_rows:].softmax(dim=1)
        for p, together in ((of_pairs[:n_must], True), (of_pairs[n_must:], False)):
            if len(p):
                shared = (p[::2] * p[1::2]).sum(dim=1)
                total = total - (shared if together else 1.0 - shared).clamp_min(1e-6).log().mean()
        return total


Fetch = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Held:
    """Anchors with their samples.

    Attributes
    ----------
    anchors : Anchors
    fetch : callable
        Maps indices to samples in the form that the network takes.
    """

    anchors: Anchors
    fetch: Fetch

    def beside(self, function: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
        """Compute the logits of a batch and the loss of some anchors in one pass, so they share batch statistics."""
        some = self.anchors.draw(len(x))
        more = self.fetch(some.indices()).to(x)
        logits = function(torch.cat([x, more]))
        return logits[: len(x)], some.loss(logits[len(x) :])
