"""TURTLE (Gadetsky, Jiang and Brbic, ICML 2024) as an objective of this library, on frozen features.

Labels p(z|x) are good if a linear classifier learns them easily from the features. A classifier q_w is trained anew for
a few steps on the present labels; its loss is then minimised over the labels, with the entropy of p(z) against the
collapse into one cluster.

    minimise over p:  E_x[ -sum_z p(z|x) log q_w(z|x) ] - gamma H(z),    w: M steps on cross-entropy to p(z|x)

The first term is `sample_term`, the second `prior_term`. As in the authors' code, p(z|x) is a linear layer with
weight normalisation, the gradient does not go through the steps of w, which starts anew each time, and both are
trained by Adam at a rate of 1e-3.

At that rate a few steps of w teach it nothing unless features are large. Theirs, of CLIP and DINOv2, are as the
networks give them, with lengths of ten and more. Columns are standardised here, which gives rows of any
network such lengths; on rows of length 1 p(z|x) hardly leaves its start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

import neuralbayes as nb
from neuralbayes.training import Batches, train

GAMMA, INNER_STEPS, RATE = 10.0, 10, 1e-3  # the authors' settings
N_STEPS, BATCH = 1500, 3000  # theirs are 6,000 steps of 10,000


class Turtle(nb.Objective):
    """How badly a linear classifier has learnt p(z|x), less gamma H(z).

    Parameters
    ----------
    gamma : float
        Weight of the entropy of p(z).
    """

    log_q: Tensor  # (n, n_states): what the classifier says of the batch

    def __init__(self, gamma: float = GAMMA) -> None:
        super().__init__()
        self.gamma = gamma

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return -(p_zx * self.log_q).sum(dim=1)

    def prior_term(self, p_z: Tensor) -> Tensor:
        return self.gamma * (p_z * p_z.log()).sum(dim=0)


def turtle(X: NDArray[Any], n_clusters: int, seed: int) -> NDArray[np.int64]:
    """Labels of the rows: a linear layer to p(z|x), trained by :class:`Turtle` on standardised columns."""
    x = torch.from_numpy(StandardScaler().fit_transform(X).astype(np.float32))
    torch.manual_seed(seed)
    network = nn.utils.parametrizations.weight_norm(nn.Linear(x.shape[1], n_clusters))
    objective = Turtle()

    def step(module: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        logits = module(batch)
        objective.log_q = learnt(batch, logits.detach().softmax(dim=1))
        loss: Tensor = objective(logits)  # not nb.backward, which may ask for other numbers of samples
        loss.backward()  # type: ignore[no-untyped-call]
        return {"loss": loss}

    train(
        network,
        step,
        Batches(len(x), min(BATCH, len(x)), seed=seed, drop_last=True),
        fetch=lambda indices: x[indices],
        optimizer=torch.optim.Adam(network.parameters(), lr=RATE),
        max_steps=N_STEPS,
    )
    with torch.no_grad():
        return np.asarray(network(x).argmax(dim=1))


def learnt(x: Tensor, labels: Tensor) -> Tensor:
    """Log-probabilities of a linear classifier after a few steps of Adam on soft labels, from a new start."""
    classifier = nn.Linear(x.shape[1], labels.shape[1])
    optimizer = torch.optim.Adam(classifier.parameters(), lr=RATE)
    for _ in range(INNER_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(classifier(x), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        log_q: Tensor = classifier(x).log_softmax(dim=1)
        return log_q
