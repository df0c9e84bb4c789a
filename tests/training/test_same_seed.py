"""The same seed gives the same numbers, to the last bit, in another process."""

import os
import subprocess
import sys

import numpy as np
import pytest

import neuralbayes as nb
from neuralbayes.data.sources import ArraySource
from neuralbayes.data.toys import make_moons

CONFIG = nb.PretrainConfig(
    encoder="tiny", batch_size=20, microbatch_size=10, epochs=2, scales=(1,), marginal="running", augment=True, seed=3
)
IMAGES = np.random.default_rng(0).integers(0, 256, (60, 24, 24, 1), dtype=np.uint8)
LABELS = np.arange(60) % 2


def labeler():
    X, _ = make_moons(300, random_state=0)
    return nb.ManifoldLabeler("auto", max_clusters=3, random_state=3).fit(X).predict_proba(X)


def clusterer():
    X = np.random.default_rng(0).normal(size=(200, 3)) + 4.0 * (np.arange(200) % 3)[:, None]
    return nb.InformationClusterer(3, random_state=3).fit(X).predict_proba(X)


def encoder():
    X = np.random.default_rng(0).normal(size=(200, 5))
    return nb.MIMEncoder(hidden=(16, 8), max_epochs=3, random_state=3).fit_transform(X)


def probe():
    found = nb.probe(None, IMAGES, LABELS, test=(IMAGES, LABELS), seeds=2, head="linear")
    return np.array([*found.accuracies, *np.ravel(found.confusion)])


def pretrained():
    return nb.pretrain(IMAGES, CONFIG).features(ArraySource(IMAGES), "relu4")


RESULTS = {"labeler": labeler, "clusterer": clusterer, "encoder": encoder, "probe": probe, "pretrained": pretrained}


@pytest.mark.slow
@pytest.mark.parametrize("name", RESULTS)
def test_in_processes_with_other_hashes(name, tmp_path):
    program = f"import sys, test_same_seed as t; sys.stdout.buffer.write(t.RESULTS[{name!r}]().tobytes())"
    here = os.path.dirname(__file__)
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            env=os.environ
            | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(found) == 1
