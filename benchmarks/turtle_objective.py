"""TURTLE (Gadetsky, Jiang and Brbic, ICML 2024) as an objective of this library, on frozen features.

Labels p(z|x) are good if a linear classifier learns them easily from the features. In each step, a new classifier q_w
is trained for a few steps on the current labels. Its loss is then minimised over the labels. The entropy of p(z)
prevents a collapse into one cluster.

    minimise over p:  E_x[ -sum_z p(z|x) log q_w(z|x) ] - gamma H(z),    w: M steps on cross-entropy to p(z|x)

The first term is `sample_term`, the second `prior_term`. As in the authors' code, p(z|x) is a linear layer with
weight normalisation. The gradient does not pass through the steps of w, which starts from new weights each time. Adam
trains both at a learning rate of 1e-3.

At that rate, w learns nothing in a few steps unless the features are large. The authors use raw features of CLIP and
DINOv2, whose rows have lengths of ten and more. Here, columns are standardised, which gives rows of any network such
lengths. With rows of length 1, p(z|x) hardly changes during training.
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
N_STEPS, BATCH = 1500, 3000  # the authors use 6,000 steps with batches of 10,000


class Turtle(nb.Objective):
    """Cross-entropy of a linear classifier that has learnt p(z|x), minus gamma H(z).

    Parameters
    ----------
    gamma : float
        Weight of the entropy of p(z).
    """

    log_q: Tensor  # (n, n_states): log-probabilities of the classifier for the batch

    def __init__(self, gamma: float = GAMMA) -> None:
        super().__init__()
        self.gamma = gamma

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        return -(p_zx * self.log_q).sum(dim=1)

    def prior_term(self, p_z: Tensor) -> Tensor:
        return self.gamma * (p_z * p_z.log()).sum(dim=0)


def turtle(X: NDArray[Any], n_clusters: int, seed: int) -> NDArray[np.int64]:
    """Label the rows with a linear layer for p(z|x), trained with :class:`Turtle` on standardised columns."""
    x = torch.from_numpy(StandardScaler().fit_transform(X).astype(np.float32))
    torch.manual_seed(seed)
    network = nn.utils.parametrizations.weight_norm(nn.Linear(x.shape[1], n_clusters))
    objective = Turtle()

    def step(module: nn.Module, batch: Tensor) -> dict[str, Tensor]:
        logits = module(batch)
        objective.log_q = learnt(batch, logits.detach().softmax(dim=1))
        loss: Tensor = objective(logits)  # not nb.backward, which may use other numbers of samples
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
    """Log-probabilities of a new linear classifier after a few steps of Adam on soft labels."""
    classifier = nn.Linear(x.shape[1], labels.shape[1])
    optimizer = torch.optim.Adam(classifier.parameters(), lr=RATE)
    for _ in range(INNER_STEPS):
        optimizer.zero_grad()
        nn.functional.cross_entropy(classifier(x), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    with torch.no_grad():
        log_q: Tensor = classifier(x).log_softmax(dim=1)
        return log_q
