"""Measurements of `make bench`: our library and an alternative for the same job, in processor seconds on one thread.

The two jobs of a pair alternate several times in one process. Processor time and the median ratio reduce the influence
of other work on the machine. Commands and imports run in new processes, and the operating system reports their
processor time.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from paper.toys import PAPER, rotate_into
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from step import STATES, literal_step, our_step
from threadpoolctl import threadpool_limits

import neuralbayes as nb
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, mlp, scaled_channels
from neuralbayes.networks.hidden import HiddenStates


@dataclass(frozen=True)
class Measured:
    """One line of the table: seconds of both jobs, their ratio, and the scores of their labels."""

    what: str
    beside: str
    ours: float
    theirs: float
    ratio: float
    scores: tuple[float, float] | None = None


def processor_seconds(job: Callable[[], Any]) -> tuple[float, Any]:
    """Run a job in this process; returns its processor seconds and its result."""
    start = time.process_time()
    value = job()
    return time.process_time() - start, value


def child_seconds(command: list[str], folder: Path) -> float:
    """Run a command in a new process; returns its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, cwd=folder, env=os.environ | {"OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turn(
    what: str,
    beside: str,
    ours: Callable[[], Any],
    theirs: Callable[[], Any],
    *,
    rounds: int,
    truth: Any = None,
    warm: bool = True,
) -> Measured:
    """Measure two jobs alternately. `truth` are classes to score labels with; with `warm`, first run both once."""
    if warm:
        ours(), theirs()  # start-up costs are measured elsewhere
    costs = []
    scores = None
    for _ in range(rounds):
        (a, mine), (b, other) = processor_seconds(ours), processor_seconds(theirs)
        costs.append((a, b))
        if truth is not None:
            scores = adjusted_rand_score(truth, mine), adjusted_rand_score(truth, other)
    return measured(what, beside, costs, scores)


def measured(
    what: str, beside: str, costs: list[tuple[float, float]], scores: tuple[float, float] | None = None
) -> Measured:
    """Summarise the rounds by their medians."""
    first, second = (statistics.median(column) for column in zip(*costs, strict=True))
    return Measured(what, beside, first, second, statistics.median(a / max(b, 1e-9) for a, b in costs), scores)


def steps() -> list[Measured]:
    """Compare our step with the literal step of the paper, and micro-batches with the whole batch."""
    found = []
    for width, batch in ((0.25, 64), (1.0, 16)):
        torch.manual_seed(0)
        literal = HiddenStates(convolutional_encoder(scaled_channels(PAPER_CHANNELS, width)), STATES)
        ours = HiddenStates(convolutional_encoder(scaled_channels(PAPER_CHANNELS, width)), STATES)
        ours.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = torch.randn(batch, 3, 32, 32)
        lines = x.contiguous(memory_format=torch.channels_last)
        found.append(
            in_turn(
                f"step of MIM, width {width:g}, batch {batch}",
                "literal step",
                partial(our_step, ours, lines, 1.0),
                partial(literal_step, literal, x),
                rounds=5 if width < 1 else 3,
            )
        )
    torch.manual_seed(0)
    network, rows = mlp((64, 512, 512, 10)), torch.randn(4096, 64)
    whole = partial(nb.backward, nb.MIM(), network, rows)
    split = partial(whole, microbatch_size=256)
    return [*found, in_turn("exact gradient, 16 micro-batches", "whole batch", split, whole, rounds=9)]


def labelers() -> list[Measured]:
    """Compare ManifoldLabeler with its peers on 1,200 rows of 512 columns."""
    make, n_clusters = PAPER["moons"]
    X, y = make(1200, random_state=0)
    X = rotate_into(X, 512, 0)
    peers: dict[str, Any] = {
        "SpectralClustering": SpectralClustering(n_clusters, affinity="nearest_neighbors", random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=20, copy=True),
        "GaussianMixture": GaussianMixture(n_clusters, covariance_type="diag", random_state=0),
    }
    ours = partial(nb.ManifoldLabeler(n_clusters, random_state=0).fit_predict, X)
    return [
        in_turn("ManifoldLabeler, 1,200 x 512", name, ours, partial(peer.fit_predict, X), rounds=3, truth=y)
        for name, peer in peers.items()
    ]


def clusterers() -> list[Measured]:
    """Compare InformationClusterer with its peers on 1,797 digits of 64 columns, and its predictions for new rows."""
    X, y = load_digits(return_X_y=True)
    peers: dict[str, Any] = {
        "KMeans, 10 starts": KMeans(10, n_init=10, random_state=0),
        "GaussianMixture": GaussianMixture(10, reg_covar=0.1, random_state=0),
        "SpectralClustering": SpectralClustering(10, affinity="nearest_neighbors", random_state=0),
    }
    nb.InformationClusterer(2, max_iter=2, random_state=0).fit(X[:100])  # start-up costs are measured elsewhere
    fits = [processor_seconds(lambda: nb.InformationClusterer(10, random_state=0).fit(X)) for _ in range(3)]
    start, fitted = statistics.median(cost for cost, _ in fits), fits[0][1]
    found = []
    for name, peer in peers.items():
        fit = partial(peer.fit_predict, X)
        fit()
        cost, labels = zip(*(processor_seconds(fit) for _ in range(3)), strict=True)
        scores = adjusted_rand_score(y, fitted.labels_), adjusted_rand_score(y, labels[0])
        found.append(measured("InformationClusterer, 1,797 x 64", name, [(start, statistics.median(cost))], scores))
    kmeans, new = KMeans(10, random_state=0).fit(X), np.tile(X, (10, 1))
    more = in_turn(
        "predict_proba of 17,970 rows", "KMeans.transform", lambda: fitted.predict_proba(new),
        lambda: kmeans.transform(new), rounds=5,
    )  # fmt: skip
    return [*found, more]


def features() -> list[Measured]:
    """Compare a linear probe with scikit-learn's, and features of images with forward passes of the network alone."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    train, test = (X[:1400], y[:1400]), (X[1400:], y[1400:])
    probed = in_turn(
        "linear probe, 1,400 x 64",
        "LogisticRegression",
        lambda: nb.probe(None, *train, test=test, head="linear", seeds=1),
        lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(*train).score(*test),
        rounds=3,
    )
    images = np.random.default_rng(0).integers(0, 255, (400, 32, 32, 3), dtype=np.uint8)
    encoder = ImageEncoder("small", (32, 32, 3), Normalization.fit(images, progress=False)).eval()
    batch = torch.from_numpy(images).permute(0, 3, 1, 2).float().contiguous(memory_format=torch.channels_last)

    @torch.no_grad()
    def bare() -> None:
        encoder.network(batch)

    return [
        probed,
        in_turn("features of 400 images", "the network alone", lambda: encoder.features(images), bare, rounds=3),
    ]


def start_up() -> list[Measured]:
    """Compare imports and commands with the interpreter, with torch, and with a short script that does the same."""
    with tempfile.TemporaryDirectory() as folder:
        return _start_up(Path(folder))


def _start_up(folder: Path) -> list[Measured]:
    rows = np.random.default_rng(0).normal(size=(400, 3)) + 8.0 * (np.arange(400) % 2)[:, None]
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="a,b,c", comments="")
    python, command = [sys.executable, "-c"], [sys.executable, "-m", "neuralbayes"]
    peer = (
        "import pandas; from matplotlib.figure import Figure; from sklearn.cluster import KMeans;"
        "t = pandas.read_csv('rows.csv'); t['cluster'] = KMeans(2).fit_predict(t); t.to_csv('k.csv');"
        "f = Figure(); f.subplots().scatter(t.a, t.b, c=t.cluster); f.savefig('k.png')"
    )
    pairs = {
        ("import neuralbayes", "python -c pass"): ([*python, "import neuralbayes"], [*python, "pass"]),
        ("nb.ManifoldLabeler", "import torch, sklearn.cluster"): (
            [*python, "import neuralbayes as nb; nb.ManifoldLabeler"],
            [*python, "import torch, sklearn.cluster"],
        ),
        ("nb.InformationClusterer", "import torch, sklearn.cluster"): (
            [*python, "import neuralbayes as nb; nb.InformationClusterer"],
            [*python, "import torch, sklearn.cluster"],
        ),
        ("neuralbayes --help", "python -c pass"): ([*command, "--help"], [*python, "pass"]),
        ("neuralbayes cluster, 400 rows", "pandas, k-means, matplotlib"): (
            [*command, "cluster", "rows.csv", "--force"],
            [*python, peer],
        ),
    }
    found = []
    for (what, beside), (ours, theirs) in pairs.items():
        child_seconds(ours, folder), child_seconds(theirs, folder)
        costs = [(child_seconds(ours, folder), child_seconds(theirs, folder)) for _ in range(3)]
        found.append(measured(what, beside, costs))
    return found


PARTS: dict[str, Callable[[], list[Measured]]] = {
    "start-up": start_up,
    "steps": steps,
    "labelers": labelers,
    "clusterers": clusterers,
    "features": features,
}
"""Functions that measure the parts of the table, in order."""


def measure(names: Sequence[str], tell: Callable[[str], None]) -> list[Measured]:
    """Measure some parts of the table; calls `tell` with the name of each part first."""
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")  # peers warn about disconnected graphs and starts that did not converge
    found = []
    with threadpool_limits(1):
        for name in names:
            tell(name)
            found += PARTS[name]()
    return found
