"""How many files of the library a call enters, counted by a profile: what a reader must open to follow it."""

import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from torch import nn

import neuralbayes as nb

SOURCE = str(Path(nb.__file__).parent)


def files_entered(call: Callable[[], object]) -> list[str]:
    """The files below src/neuralbayes with a function that `call` enters, in order; imports do not count."""
    found: dict[str, None] = {}

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(SOURCE) and code.co_name != "<module>":
            found[code.co_filename[len(SOURCE) + 1 :]] = None

    call()  # imports, and the bodies of their classes
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def backward() -> None:
    network, batch = nn.Linear(4, 3), torch.randn(20, 4)
    nb.backward(nb.MIM(), network, batch, microbatch_size=5, smoothness=nb.Smoothness(0.1))


def fit() -> None:
    nb.fit(nb.MIM(), nn.Linear(4, 3), torch.randn(20, 4), max_steps=3, batch_size=10, microbatch_size=5)


def pretrain() -> None:
    images = np.random.default_rng(0).integers(0, 256, (30, 24, 24, 1), dtype=np.uint8)
    config = nb.PretrainConfig(encoder="tiny", batch_size=10, microbatch_size=5, epochs=1)
    nb.pretrain(images, config, out=tempfile.mkdtemp(dir="."))


def cluster() -> nb.InformationClusterer:
    return nb.InformationClusterer(3, random_state=0).fit(load_iris().data)


def predict() -> None:
    clusterer().predict(load_iris().data)


@cache
def clusterer() -> nb.InformationClusterer:
    return cluster()


@pytest.mark.parametrize(("call", "limit"), [(backward, 9), (fit, 14), (pretrain, 23), (cluster, 19), (predict, 6)])
def test_a_call_enters_few_files(call, limit, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    entered = files_entered(call)
    assert len(entered) <= limit, entered
