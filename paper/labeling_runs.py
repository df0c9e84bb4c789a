"""The runs of appendix H: the paper's network on MNIST, and variants of DML for manifolds that touch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from neuralbayes.bayes import posterior, prior
from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.data.normalize import Normalization
from neuralbayes.data.sources import Images
from neuralbayes.estimators import InformationClusterer
from neuralbayes.features.encoder import is_dead
from neuralbayes.networks.encoders import labeling_network
from neuralbayes.objectives import DML, Objective
from neuralbayes.training.rng import seeded_globally
from paper.experiment import TRAINING, Run, Scale
from paper.images import Source, labels_of
from paper.network_training import NetworkConfig, network_seconds, outputs, train_network
from paper.protocols import judge

NAME, N_STATES = "mnist-dml", 10
SOFTMAX, LOGITS = PROBED = ("output", "logits")
"""Input of the linear classifier: p(z|x), or the logits before the softmax."""

OURS = 1.0
"""Beta of appendix H, relative to the mean over states."""
SUMMED = OURS / N_STATES
"""The same beta relative to the sum over states of theorem 3. Relative to twice the mean, as in the code, it is 0.5."""


class Scaled(Objective):
    """An objective times a factor. `InformationClusterer` weights its objective by 0.1, which is too little for DML.

    Parameters
    ----------
    objective : Objective
    factor : float
    """

    def __init__(self, objective: Objective, factor: float) -> None:
        super().__init__()
        self.objective = objective
        self.factor = factor

    def sample_term(self, p_zx: Tensor, p_z: Tensor) -> Tensor:
        """The objective's sample term times the factor."""
        return self.factor * self.objective.sample_term(p_zx, p_z)

    def prior_term(self, p_z: Tensor) -> Tensor:
        """The objective's prior term times the factor."""
        return self.factor * self.objective.prior_term(p_z)


@dataclass(frozen=True)
class Kind:
    """A network and its objective.

    Attributes
    ----------
    title : str
    objective : callable, optional
        Creates the objective; None for an untrained network.
    of : {"logits", "posterior"}, optional
        Argument of R_c, for the paper's network. None: :class:`neuralbayes.InformationClusterer`, which merges four
        states per cluster.
    """

    title: str
    objective: Callable[[], Objective] | None = None
    of: Literal["logits", "posterior"] | None = None


KINDS: dict[str, Kind] = {
    "random": Kind("random network"),
    "logits": Kind("paper's network, R_c on logits", DML, "logits"),
    "posterior": Kind("paper's network, R_c on p(z|x)", DML, "posterior"),
    "alpha": Kind("paper's network, DML(alpha=2)", lambda: DML(alpha=2.0), "posterior"),
    "prior": Kind('paper\'s network, DML(weights="prior")', lambda: DML(weights="prior"), "posterior"),
    "merged": Kind("states merged, DML() times 10", lambda: Scaled(DML(), 10.0)),
    "merged-alpha": Kind("states merged, DML(alpha=0.4) times 10", lambda: Scaled(DML(alpha=0.4), 10.0)),
    "merged-prior": Kind('states merged, DML(alpha=1, weights="prior")', lambda: DML(alpha=1.0, weights="prior")),
}
"""The paper's network with R_c on the logits (the authors' code) or on the softmax (the text), and variants of DML."""

Arm = tuple[str, float]
"""A kind and the weight of R_c."""


@dataclass(frozen=True)
class LabelingRun(Run):
    """A network with ten outputs on images of digits.

    Attributes
    ----------
    train, test : Source
    kind : str
        One of `KINDS`.
    width : float
        Number of channels relative to the paper's.
    epochs, batch_size, microbatch_size : int
    beta : float
        Weight of R_c.
    probe_epochs : int, optional
    """

    train: Source
    test: Source
    kind: str
    width: float
    epochs: int
    batch_size: int
    microbatch_size: int
    beta: float = OURS
    probe_epochs: int | None = None

    @property
    def label(self) -> str:
        beta = "" if self.beta == OURS else f" beta={self.beta:g}"
        return f"{self.train.name} {self.kind}{beta} seed={self.seed}"

    @property
    def data_names(self) -> tuple[str, ...]:
        return (self.train.name,)

    @property
    def config(self) -> NetworkConfig:
        """Settings of the training of the paper's network."""
        of = KINDS[self.kind].of or "logits"
        return NetworkConfig(
            self.batch_size, self.epochs, seed=self.seed, beta=self.beta, of=of, microbatch_size=self.microbatch_size
        )

    @property
    def steps(self) -> int:
        """Training steps of the clusterer."""
        return max(20, self.epochs * len(self.train) // self.batch_size)


PAPERS: tuple[Arm, ...] = tuple((kind, beta) for kind in ("logits", "posterior") for beta in (OURS, SUMMED))
MENDED: tuple[Arm, ...] = (("alpha", OURS), ("prior", OURS))
MERGED: tuple[Arm, ...] = (("merged", OURS), ("merged-alpha", OURS), ("merged-prior", OURS))


@dataclass(frozen=True)
class LabelingScale:
    """Size of the experiment at one scale.

    Attributes
    ----------
    merged_epochs, merged_batch : int
        Epochs and batch size of the clusterer. The default gives its own 6,000 steps of 250 images.
    """

    data: str
    width: float
    epochs: int
    batch_size: int
    microbatch_size: int
    seeds: int
    n_train: int | None = None
    n_test: int | None = None
    side: int | None = None
    probe_epochs: int | None = None
    merged_epochs: int = 25
    merged_batch: int = 250
    arms: tuple[Arm, ...] = (("random", OURS), *PAPERS, *MENDED, *MERGED)


SCALES: dict[Scale, LabelingScale] = {
    "smoke": LabelingScale(
        "digits",
        0.1,
        1,
        60,
        60,
        2,
        n_train=120,
        n_test=160,
        side=24,
        probe_epochs=4,
        merged_epochs=1,
        arms=(("random", OURS), ("logits", OURS), ("posterior", SUMMED), ("merged-alpha", OURS)),
    ),
    "laptop": LabelingScale("mnist", 0.3, 8, 1000, 500, 3),
    "paper": LabelingScale("mnist", 1.0, 90, 5000, 500, 3),  # the paper's 1,080 updates, on 60,000 images
}


def runs(scale: Scale, seeds: int | None) -> list[LabelingRun]:
    """Every arm with every seed."""
    c = SCALES[scale]
    own = (c.width, c.epochs, c.batch_size, c.microbatch_size)
    clusterer = (1.0, c.merged_epochs, c.merged_batch, c.merged_batch)
    return [
        LabelingRun(
            NAME,
            seed,
            Source(c.data, "train", c.n_train, c.side),
            Source(c.data, "test", c.n_test, c.side),
            kind,
            *(clusterer if (kind, beta) in MERGED else own),
            beta=beta,
            probe_epochs=c.probe_epochs,
        )
        for seed in range(c.seeds if seeds is None else seeds)
        for kind, beta in c.arms
    ]


def run_one(run: LabelingRun, folder: Path) -> dict[str, Any]:
    """Train, and evaluate the ten outputs as clusters and as features."""
    train, test = run.train.load(), run.test.load()
    fit = _clusterer if KINDS[run.kind].objective is not None and KINDS[run.kind].of is None else _network
    logits, of_test = fit(run, train, test, folder)
    p_zx = posterior(logits)
    seen = {SOFTMAX: (p_zx, posterior(of_test)), LOGITS: (logits, of_test)}
    return {
        "probes": {
            name: judge(
                (a.numpy(), labels_of(train)),
                (b.numpy(), labels_of(test)),
                head="linear",
                max_epochs=run.probe_epochs,
            )
            for name, (a, b) in seen.items()
        },
        "clusters": round(clustering_accuracy(of_test.argmax(dim=1).numpy(), labels_of(test)), 5),
        "dead": int(is_dead(prior(p_zx)).sum()),
        "largest": round(float(prior(p_zx).max()), 4),
        "objective": round(float(DML()(logits)), 4),
    }


def _network(run: LabelingRun, train: Images, test: Images, folder: Path) -> tuple[Tensor, Tensor]:
    """Logits of the paper's network for the training and the test images."""
    normalization = Normalization.fit(train.source, per="dimension", progress=False)
    x, x_test = (normalization(images.source.read(np.arange(len(images)))) for images in (train, test))
    make = KINDS[run.kind].objective
    with seeded_globally(run.seed):
        network: nn.Module = labeling_network(N_STATES, x.shape[1], run.width)
        if make is None:
            update_bn(torch.split(x[:1000], 100), network)  # batch statistics, as after training
            network.eval()
        else:
            train_network(network, make(), x, run.config, out=folder / TRAINING)
    return outputs(network, x), outputs(network, x_test)


def _clusterer(run: LabelingRun, train: Images, test: Images, folder: Path) -> tuple[Tensor, Tensor]:
    """log p(cluster|x) of the estimator. An interrupted fit starts again, which takes minutes."""
    pixels, of_test = (images.source.read(np.arange(len(images))) for images in (train, test))
    make = KINDS[run.kind].objective
    clusterer = InformationClusterer(
        N_STATES,
        n_states=4 * N_STATES,
        objective=None if make is None else make(),
        max_iter=run.steps,
        random_state=run.seed,
    ).fit(pixels)

    def logits(images: np.ndarray[Any, Any]) -> Tensor:
        return outputs(clusterer.module_, torch.from_numpy(images).movedim(-1, 1).float() / 255).float()

    return logits(pixels), logits(of_test)


def cost(run: LabelingRun) -> float:
    kind = KINDS[run.kind]
    if kind.objective is None:
        return 0.0
    if kind.of is None:
        return run.steps * MERGED_SECONDS
    return run.epochs * len(run.train) * _seconds_per_image(replace(run, seed=0, kind="logits", beta=OURS))


MERGED_SECONDS = 0.04
"""Approximate time of a step of the clusterer."""


@cache
def _seconds_per_image(run: LabelingRun) -> float:
    height, width, channels = run.train.shape
    network = labeling_network(N_STATES, channels, run.width)
    return network_seconds(network, DML(), (channels, height, width), run.config)
