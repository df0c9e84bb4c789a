"""Measurements of `make bench`: our library and alternatives for the same job, on one thread.

The jobs that are compared alternate several times in one process. Processor time and the median ratio reduce the
influence of other work on the machine. Commands and imports run in new processes, which report their own peak memory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from paper.toys import PAPER, rotate_into
from records import one_thread, timed
from sklearn.cluster import HDBSCAN, KMeans, SpectralClustering
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from step import STATES, flops, literal_step, our_step
from torch import nn

import neuralbayes as nb
from neuralbayes.data.normalize import Normalization
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.networks import PACKAGED, load_network
from neuralbayes.networks.encoders import PAPER_CHANNELS, convolutional_encoder, mlp, scaled_channels
from neuralbayes.networks.hidden import HiddenStates

os.environ["NUMBA_NUM_THREADS"] = "1"  # the threads of EVoC would spin on during other jobs, and count as theirs

Array = NDArray[Any]
Job = Callable[[], Any]


@dataclass(frozen=True)
class Measured:
    """One line of the table: costs of both jobs, their ratio, the scores of their labels, and the unit of the costs."""

    what: str
    beside: str
    ours: float
    theirs: float
    ratio: float
    scores: tuple[float, float] | None = None
    unit: str = "s"


def measured(what: str, beside: str, costs: Sequence[tuple[float, float]], **more: Any) -> Measured:
    """Summarise the rounds by their medians."""
    first, second = (statistics.median(column) for column in zip(*costs, strict=True))
    return Measured(what, beside, first, second, statistics.median(a / max(b, 1e-9) for a, b in costs), **more)


def in_turn(what: str, ours: Job, others: Mapping[str, Job], rounds: int, truth: Any = None) -> list[Measured]:
    """Measure our job and others alternately, after one run of each. `truth` are classes to score labels with."""
    jobs = [ours, *others.values()]
    for job in jobs:
        job()  # start-up costs are measured elsewhere
    found = [[timed(job) for job in jobs] for _ in range(rounds)]
    lines = []
    for i, beside in enumerate(others, start=1):
        costs = [(row[0][1], row[i][1]) for row in found]
        scores = None if truth is None else tuple(adjusted_rand_score(truth, found[0][j][0]) for j in (0, i))
        lines.append(measured(what, beside, costs, scores=scores))
    return lines


def steps() -> list[Measured]:
    """Compare our step with the literal step of the paper and with a convolution, and micro-batches with the batch."""
    found = []
    layer = nn.Conv2d(512, 512, 3).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    large = torch.randn(16, 512, 14, 14).contiguous(memory_format=torch.channels_last)
    for width, batch in ((0.25, 64), (1.0, 16)):
        torch.manual_seed(0)
        channels = scaled_channels(PAPER_CHANNELS, width)
        literal, ours = (HiddenStates(convolutional_encoder(channels), STATES) for _ in range(2))
        ours.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        x = torch.randn(batch, 3, 32, 32)
        others = {
            "literal step": partial(literal_step, literal, x),
            "peak of convolutions": torch.no_grad()(partial(layer, large)),
        }
        job = partial(our_step, ours, x.contiguous(memory_format=torch.channels_last), 1.0)
        beside, peak = in_turn(f"step of MIM, width {width:g}, batch {batch}", job, others, rounds=5)
        work = flops(width) * batch / (2 * 9 * 512 * 512 * 12 * 12 * 16)
        found += [beside, replace(peak, theirs=work * peak.theirs, ratio=peak.ratio / work)]
    torch.manual_seed(0)
    network, rows = mlp((64, 512, 512, 10)), torch.randn(4096, 64)
    whole = partial(nb.backward, nb.MIM(), network, rows)
    return found + in_turn("16 micro-batches", partial(whole, microbatch_size=256), {"whole batch": whole}, rounds=9)


def labelers() -> list[Measured]:
    """Compare ManifoldLabeler with its peers on 1,200 rows of 512 columns."""
    make, k = PAPER["moons"]
    X, y = make(1200, random_state=0)
    X = rotate_into(X, 512, 0)
    peers: dict[str, Any] = {
        "SpectralClustering": SpectralClustering(k, affinity="nearest_neighbors", random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=20, copy=True),
        "GaussianMixture": GaussianMixture(k, covariance_type="diag", random_state=0),
    }
    jobs = {name: partial(peer.fit_predict, X) for name, peer in peers.items()}
    ours = partial(nb.ManifoldLabeler(k, random_state=0).fit_predict, X)
    return in_turn("ManifoldLabeler, 1,200 x 512", ours, jobs, rounds=3, truth=y)


def fits(what: str, X: Array, y: Array, mixture: str, rounds: int) -> list[Measured]:
    """Compare fits of InformationClusterer for the number of classes with those of its peers."""
    k = len(np.unique(y))
    peers: dict[str, Any] = {
        "KMeans, 10 starts": KMeans(k, n_init=10, random_state=0),
        "GaussianMixture": GaussianMixture(k, covariance_type=mixture, n_init=3, reg_covar=1e-3, random_state=0),
        "HDBSCAN": HDBSCAN(min_cluster_size=15, copy=True),
    }
    if find_spec("evoc"):
        from evoc import EVoC

        peers["EVoC"] = EVoC(random_state=0)
    jobs = {name: partial(peer.fit_predict, X) for name, peer in peers.items()}
    return in_turn(what, partial(nb.InformationClusterer(k, random_state=0).fit_predict, X), jobs, rounds, truth=y)


def tables() -> list[Measured]:
    """Compare fits of a table of 1,500 x 20, and predictions for 15,000 rows."""
    rng = np.random.RandomState(0)
    sizes, spread = [600, 400, 250, 150, 100], [1.0, 1.5, 2.0, 2.5, 3.0]
    X, y = make_blobs(sizes, 20, cluster_std=spread, center_box=(-2, 2), random_state=0)
    X = (X @ (np.eye(20) + 0.3 * rng.standard_normal((20, 20)))).astype(np.float32)
    found = fits("InformationClusterer, 1,500 x 20", X, y, "full", rounds=3)
    ours, k_means = nb.InformationClusterer(5, random_state=0).fit(X), KMeans(5, random_state=0).fit(X)
    new = np.tile(X, (10, 1))
    others = {"KMeans.transform": partial(k_means.transform, new)}
    return found + in_turn("predict_proba of 15,000 rows", partial(ours.predict_proba, new), others, rounds=5)


TOPICS = {
    "play start stop pause": "song album playlist radio concert singer guitar melody",
    "cook bake fry boil": "soup pasta cake rice potato chicken sauce bread",
    "book cancel change find": "flight hotel ticket seat luggage passport airport visa",
    "pay transfer check freeze": "account card invoice loan balance deposit bank salary",
    "repair charge wash drive": "car tyre engine brake battery windscreen gearbox truck",
    "grow water plant prune": "rose tomato tree garden seed lawn hedge tulip",
    "treat prevent cure examine": "fever cough allergy headache wound infection rash flu",
    "install update delete debug": "program laptop printer software browser password server keyboard",
}
"""Verbs and nouns of the topics of the sentences."""


def sentences() -> list[Measured]:
    """Compare fits of embeddings of 800 sentences about eight topics."""
    if not find_spec("wordllama"):
        return []
    rng = np.random.RandomState(0)
    frames = ("how do I {} the {}", "please {} my {} today", "can you {} a {} for me", "I want to {} this {}")
    y = np.repeat(np.arange(len(TOPICS)), 100)
    words = [(verbs.split(), nouns.split()) for verbs, nouns in TOPICS.items()]
    texts = [rng.choice(frames).format(rng.choice(words[i][0]), rng.choice(words[i][1])) for i in y]
    X = load_network(PACKAGED["texts"], "texts")(texts)
    return fits("InformationClusterer, 800 sentences", np.asarray(X), y, "diag", rounds=2)


def features() -> list[Measured]:
    """Compare a linear probe with scikit-learn's, and features of images with forward passes of the network alone."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    train, test = (X[:1400], y[:1400]), (X[1400:], y[1400:])
    probe = partial(nb.probe, None, *train, test=test, head="linear", seeds=1)
    peer = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    images = np.random.default_rng(0).integers(0, 255, (400, 32, 32, 3), dtype=np.uint8)
    encoder = ImageEncoder("small", (32, 32, 3), Normalization.fit(images, progress=False)).eval()
    batch = torch.from_numpy(images).permute(0, 3, 1, 2).float().contiguous(memory_format=torch.channels_last)
    bare = torch.no_grad()(partial(encoder.network, batch))
    return [
        *in_turn("linear probe, 1,400 x 64", probe, {"LogisticRegression": partial(peer.fit, *train)}, rounds=3),
        *in_turn("features of 400 images", partial(encoder.features, images), {"the network alone": bare}, rounds=3),
    ]


PEAK = """
import atexit, sys, time

def report():
    peak = [line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')]
    print(time.process_time(), int(peak[0]) / 1024, file=open('cost', 'w'))

atexit.register(report)
"""
"""Writes processor seconds and peak megabytes of a process into a file, on Linux. What the system reports for a child
is at least the peak of its parent."""


def child(code: str, folder: Path) -> tuple[float, float]:
    """Run code in a new process; returns its processor seconds and its peak memory in megabytes."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", PEAK + code], check=True, capture_output=True, cwd=folder, env=environment)
    seconds, megabytes = (folder / "cost").read_text().split()
    return float(seconds), float(megabytes)


def commands() -> list[Measured]:
    """Compare imports and commands with the interpreter, with torch, and with a short script that does the same."""

    def command(*words: str) -> str:
        return f"sys.argv[1:] = {words}; from neuralbayes.cli import main; main()"

    script = (
        "import pandas; from matplotlib.figure import Figure; from sklearn.cluster import KMeans;"
        "t = pandas.read_csv('small.csv'); t['cluster'] = KMeans(2).fit_predict(t); t.to_csv('k.csv');"
        "f = Figure(); f.subplots().scatter(t.a, t.b, c=t.cluster); f.savefig('k.png')"
    )
    imported, read = "import torch, sklearn.cluster", "import pandas; pandas.read_csv('large.csv')"
    jobs = [
        ("import neuralbayes", "python -c pass", "import neuralbayes", "pass", 5),
        ("nb.ManifoldLabeler", imported, "import neuralbayes as nb; nb.ManifoldLabeler", imported, 3),
        ("nb.InformationClusterer", imported, "import neuralbayes as nb; nb.InformationClusterer", imported, 3),
        ("neuralbayes --help", "python -c pass", command("--help"), "pass", 3),
        ("cluster, 400 rows", "pandas, k-means, matplotlib", command("cluster", "small.csv", "--force"), script, 3),
        ("cluster, 50 MB", "pandas.read_csv", command("cluster", "large.csv", "--force"), read, 1),
    ]
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, n, d in (("small", 400, 3), ("large", 500_000, 10)):
            rows = np.random.default_rng(0).normal(size=(n, d)) + 8.0 * (np.arange(n) % 2)[:, None]
            table = pd.DataFrame(rows, columns=list("abcdefghij")[:d])
            table.to_csv(folder / f"{file}.csv", index=False, float_format="%.7f")
        for what, beside, ours, theirs, rounds in jobs:
            if rounds > 1:
                child(ours, folder), child(theirs, folder)
            costs = [(child(ours, folder), child(theirs, folder)) for _ in range(rounds)]
            for i, unit in enumerate(("s", "MB")):
                pairs = [(a[i], b[i]) for a, b in costs]
                name_of = what if unit == "s" else f"{what}, peak memory"
                found.append(measured(name_of, beside, pairs, unit=unit))
    return found


PARTS: dict[str, Callable[[], list[Measured]]] = {
    "commands": commands,
    "steps": steps,
    "labelers": labelers,
    "tables": tables,
    "sentences": sentences,
    "features": features,
}
"""Functions that measure the parts of the table, in order."""


def measure(names: Sequence[str], tell: Callable[[str], None]) -> list[Measured]:
    """Measure some parts of the table; calls `tell` with the name of each part first."""
    found = []
    with one_thread():
        for name in names:
            tell(name)
            found += PARTS[name]()
    return found
