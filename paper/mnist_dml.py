"""Appendix H: Neural Bayes-DML with ten states on MNIST, and a linear classifier on its ten outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from neuralbayes.bayes import posterior, prior
from neuralbayes.clusters.accuracy import clustering_accuracy
from neuralbayes.data.normalize import Normalization
from neuralbayes.distributed import seeded_globally
from neuralbayes.networks.encoders import convolutional_encoder, orthogonal_, scaled_channels
from neuralbayes.objectives import DML, Smoothness
from neuralbayes.training.fit import fit
from paper.accuracy import accuracies, probe
from paper.claims import Claim, Verdict, every, listed
from paper.experiment import Picture
from paper.images import Source, labels_of
from paper.pictures import Row, draw_rows
from paper.published import APPENDIX_H
from paper.runs import TRAINING, Record, Results, Run, Scale, by
from paper.statistics import difference, estimate, text
from paper.tables import Table

NAME, N_STATES = "mnist-dml", 10
CHANNELS = (100, 100, 200, 500)
TITLE = "Appendix H: labelling MNIST"
AT_FULL_SCALE = "three hours on two cores"
ABOUT = (
    "DML with ten states and the gradient of the whole batch, then a linear classifier on the ten outputs. R_c acts "
    "on the softmax in the paper's text, and on the logits in the authors' code. DML ignores the mass of a state, so "
    "one state with nearly all images scores as well as ten digits."
)
SOFTMAX, LOGITS = PROBED = ("output", "logits")
"""Input of the linear classifier: p(z|x), or the logits before the softmax."""

OURS, SUMMED = 1.0, 0.1
"""Beta of appendix H, relative to the mean over states, and relative to the sum over states of theorem 3."""

AUTHORS_UPDATES = 1080
"""Updates of appendix H: 100 epochs of 54,000 images in batches of 5,000. We train 90 epochs on all 60,000."""

TOLERANCE = 0.01
"""How far below the published accuracy a result still counts as reaching it."""


def labeling_network(
    n_states: int = N_STATES, in_channels: int = 1, width: float = 1.0, batch_norm: bool = True
) -> nn.Sequential:
    """The network of appendix H, C100-P-C100-C200-P-C500, averaged over positions, and a linear layer to logits.

    Batch normalisation is not in appendix H, but in all other experiments with convolutions (section 5.1).

    Examples
    --------
    >>> labeling_network(width=0.2)(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 10])
    """
    channels = scaled_channels(CHANNELS, width)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels[-1], n_states))
    return nn.Sequential(convolutional_encoder(channels, in_channels, batch_norm), orthogonal_(head))


KINDS = {
    "random": "random network",
    "logits": "R_c on logits",
    "posterior": "R_c on p(z|x)",
}
"""With R_c on the logits (the authors' code) or on the softmax (the text). The records have others, which are not the
paper's."""

Arm = tuple[str, float]
"""A kind and the weight of R_c."""

RANDOM: Arm = ("random", OURS)
PAPERS: tuple[Arm, ...] = tuple((kind, beta) for kind in ("logits", "posterior") for beta in (OURS, SUMMED))


@dataclass(frozen=True)
class LabelingRun(Run):
    """A network with ten outputs on images of digits."""

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

    def measure(self, folder: Path) -> dict[str, Any]:
        """Train, and evaluate the ten outputs as clusters and as features."""
        train, test = self.train.load(), self.test.load()
        normalization = Normalization.fit(train.source, per="dimension", progress=False)
        x, x_test = (normalization(images.source.read(np.arange(len(images)))) for images in (train, test))
        logits, of_test = self._logits(x, x_test, folder)
        labels, truth = labels_of(train), labels_of(test)
        p_zx = posterior(logits)
        seen = {SOFTMAX: (p_zx, posterior(of_test)), LOGITS: (logits, of_test)}
        return {
            "probes": {
                name: probe((a.numpy(), labels), (b.numpy(), truth), head="linear", max_epochs=self.probe_epochs)
                for name, (a, b) in seen.items()
            },
            "clusters": round(clustering_accuracy(of_test.argmax(dim=1).numpy(), truth), 5),
            "dead": int((prior(p_zx) < 0.1 / N_STATES).sum()),
            "largest": round(float(prior(p_zx).max()), 4),
            "objective": round(float(DML()(logits)), 4),
        }

    def _logits(self, x: Tensor, x_test: Tensor, folder: Path) -> list[Tensor]:
        """Train; outputs of the network for the training and the test images."""
        with seeded_globally(self.seed):
            network = labeling_network(N_STATES, x.shape[1], self.width)
            if self.kind == "random":
                update_bn(torch.split(x[:1000], 100), network)  # batch statistics, as after training
                network.eval()
            else:
                network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
                fit(
                    DML(),
                    network,
                    x,
                    max_epochs=self.epochs,
                    batch_size=self.batch_size,
                    microbatch_size=self.microbatch_size,
                    smoothness=Smoothness(self.beta, of="posterior" if self.kind == "posterior" else "logits"),
                    out=folder / TRAINING,
                    log_every=20,
                    seed=self.seed,
                )
        with torch.no_grad():
            return [torch.cat([network(piece) for piece in torch.split(part, 2000)]) for part in (x, x_test)]


MNIST = (Source("mnist"), Source("mnist", "test"), 3)

SCALES: dict[Scale, tuple[Source, Source, int, dict[str, Any]]] = {
    "smoke": (
        Source("digits", "train", 120, 24),
        Source("digits", "test", 160, 24),
        2,
        {"width": 0.1, "epochs": 1, "batch_size": 60, "microbatch_size": 60, "probe_epochs": 4},
    ),
    "laptop": (*MNIST, {"width": 0.3, "epochs": 8, "batch_size": 1000, "microbatch_size": 500}),
    "paper": (*MNIST, {"width": 1.0, "epochs": 90, "batch_size": 5000, "microbatch_size": 500}),
}
"""Images, seeds, and the network and its training."""


def runs(scale: Scale, seeds: int | None) -> list[LabelingRun]:
    """A random network and the paper's, with every reading of R_c, for every seed."""
    train, test, default, size = SCALES[scale]
    return [
        LabelingRun(NAME, seed, train, test, kind, beta=beta, **size)
        for seed in range(default if seeds is None else seeds)
        for kind, beta in (RANDOM, *PAPERS)
    ]


class Network(NamedTuple):
    """A row of the table: a kind of network, its beta, its updates at full width (or 0), and whether it has that."""

    kind: str
    beta: float
    updates: int
    full: bool

    @property
    def published(self) -> float:
        """Accuracy in the paper, in percent."""
        return APPENDIX_H["random" if self.kind == "random" else "learnt"]

    @property
    def title(self) -> str:
        """Its name in tables and figures."""
        beta = "" if self.beta == OURS else f", beta {self.beta:g}"
        updates = f", {self.updates:,} updates" if self.updates else ""
        return f"{KINDS[self.kind]}{beta}{', full width' if self.full else ''}{updates}"


def network_of(record: Record) -> Network:
    """The row of a run."""
    s = record.settings
    full = s["width"] == 1.0
    updates = s["epochs"] * len(Source(**s["train"])) // s["batch_size"] if full and s["kind"] != "random" else 0
    return Network(s["kind"], float(s["beta"]), updates, full)


def tables(results: Results) -> list[Table]:
    rows = []
    for network, found in _networks(results).items():
        linear = [text(accuracies(found, probed)) for probed in PROBED]
        shown = {"clusters": (1, 100.0), "largest": (1, 100.0), "objective": (3, 1.0)}
        others = (text([r.values[name] for r in found if name in r.values], *how) for name, how in shown.items())
        rows.append((network.title, *linear, *others))
    head = ("network", "on the softmax", "on the logits", "clusters", "largest state, %", "DML loss")
    note = (
        "Clusters: each state is matched with a digit. Beta is relative to the mean over states: 1, or 0.1 if appendix "
        "H means the sum."
    )
    return [Table("MNIST: honest accuracy in %", head, rows, note)]


def pictures(results: Results) -> list[Picture]:
    rows = [
        Row(n.title, accuracies(found, SOFTMAX), accuracies(found, SOFTMAX, "paper"), n.published)
        for n, found in _networks(results).items()
    ]
    return [Picture(NAME, TITLE, partial(draw_rows, rows, "linear classifier on the softmax: accuracy, %"))]


def claims(results: Results) -> list[Claim]:
    networks = _networks(results)
    random = {network.full: found for network, found in networks.items() if network.kind == "random"}
    papers = {n: found for n, found in networks.items() if n[:2] in PAPERS}
    reached = APPENDIX_H["learnt"] / 100 - TOLERANCE
    full = {n: found for n, found in papers.items() if n.updates >= AUTHORS_UPDATES}
    value = max((estimate(_best(found)) for found in full.values()), key=lambda one: one.mean, default=None)
    verdict: Verdict = "undecided" if papers else "not run"
    if value is not None:
        verdict = every({"best": value}, least=reached, short="does not hold here")
    numbers = "; ".join(
        f"{n.title}: {text(_best(found))} % (n = {len(found)})" for n, found in (full or papers).items()
    )
    gains = {
        f"{n.title}, from the {'softmax' if probed == SOFTMAX else 'logits'}": difference(
            accuracies(found, probed), accuracies(random[n.full], probed)
        )
        for n, found in papers.items()
        for probed in PROBED
        if n.full in random and probed in found[0].values["probes"]
    }
    clear = {name: one for name, one in gains.items() if every({name: one}) == "holds"}
    return [
        Claim(
            "The classifier reaches 99.22% test accuracy. […] Neural Bayes-DML can correctly label [MNIST classes]",
            "appendix H",
            f"a linear classifier reaches {100 * reached:.2f} % at full width after {AUTHORS_UPDATES:,} updates, with "
            "three seeds",
            verdict,
            numbers,
            "Here with batch norm, on micro-batches of 500",
        ),
        Claim(
            "As baseline, a linear classifier trained on features from a randomly initialized identical CNN "
            "architecture reaches 42.97%",
            "appendix H",
            "trained minus random, of the same width, is above 0 for every R_c and both inputs of the classifier",
            every(gains),
            f"{len(clear)} of {len(gains)} significant; {listed(clear)}" if clear else listed(gains),
        ),
    ]


def settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Readable settings of the paper's network."""
    if (settings["kind"], settings["beta"]) not in PAPERS:
        return {}
    n_images = len(Source(**settings["train"]))
    return {
        "images": f"{settings['train']['name']}, {n_images:,}",
        "channels": "100-100-200-500" if settings["width"] == 1 else f"times {settings['width']:g}",
        "batch normalisation": True,
        "argument of R_c": "p(z|x)" if settings["kind"] == "posterior" else "logits",
        "beta": settings["beta"],
        "batch": settings["batch_size"],
        "micro-batch of batch normalisation and R_c": settings["microbatch_size"],
        "epochs": settings["epochs"],
        "updates": f"{settings['epochs'] * n_images // settings['batch_size']:,}",
    }


def not_run(results: Results) -> list[str]:
    networks = _networks(results)
    wide = {
        n[:2]: len(found)
        for n, found in networks.items()
        if n.full and (n.updates >= AUTHORS_UPDATES or n.kind == "random")
    }
    done = [min(wide.get(arm, 0), 3) for arm in (RANDOM, *PAPERS)]
    seeds = f"appendix H at full width with three seeds: {sum(done)} of {3 * len(done)} runs so far"
    return [
        *([seeds] if sum(done) < 3 * len(done) else []),
        "appendix H without batch norm, or with batch norm and R_c on all 5,000 images of a batch",
    ]


def _best(found: Results) -> list[float]:
    """Honest accuracies on the softmax or on the logits, whichever has the higher mean."""
    probed = [accuracies(found, name) for name in PROBED if name in found[0].values["probes"]]
    return max(probed, key=lambda values: estimate(values).mean)


def _networks(results: Results) -> dict[Network, list[Record]]:
    """The runs of each network, in the order of `KINDS`, the narrower ones first."""
    found = by([record for record in results if record.settings["kind"] in KINDS], network_of)
    return {n: found[n] for n in sorted(found, key=lambda n: (list(KINDS).index(n.kind), -n.beta, n.updates, n.full))}
