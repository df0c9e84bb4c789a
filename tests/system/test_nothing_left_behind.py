"""A process that works for a long time holds no more than one that has just started."""

import gc
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

import neuralbayes as nb
from neuralbayes.system.files import read_tensors, write_tensors

TIMES = 40
RNG = np.random.default_rng(0)
ROWS = np.r_[RNG.normal(size=(12, 3)), RNG.normal(size=(12, 3)) + 6]
MODELS = (
    lambda seed: nb.ManifoldLabeler(2, n_init=1, n_hidden=4, max_iter=5, n_neighbors=3, random_state=seed),
    lambda seed: nb.InformationClusterer(2, random_state=seed),
    lambda seed: nb.MIMEncoder(hidden=(4,), max_epochs=1, random_state=seed),
)


def use(seed, folder):
    """Fit, save, load and predict with a model of each kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tiny tables are too small for good models
        for i, make in enumerate(MODELS):
            model = make(seed).fit(ROWS)
            model.save(folder / f"model-{i}")
            assert np.array_equal(nb.load(folder / f"model-{i}").predict_proba(ROWS), model.predict_proba(ROWS))


def held():
    gc.collect()
    return sys.getallocatedblocks()


def test_reading_tensors_keeps_nothing(tmp_path):
    path = tmp_path / "a.safetensors"
    write_tensors(path, {f"x{i}": torch.ones(3) for i in range(20)}, {"a": "b"})
    for _ in range(5):
        read_tensors(path)
    before = held()
    for _ in range(TIMES):
        read_tensors(path)
    assert held() - before < 3 * TIMES  # a leak of one object per tensor would be 20 each time


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")
def test_later_fits_leave_nothing_open(tmp_path, monkeypatch):
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))  # other processes use the usual one

    def counts():
        gc.collect()
        return [len(os.listdir(folder)) for folder in ("/proc/self/fd", "/proc/self/task", own)]

    for seed in range(2):  # what is imported or kept once
        use(seed, tmp_path)
    found = counts()
    for seed in range(2, 4):
        use(seed, tmp_path)
    assert counts() == found


def grown(folder, before=90, more=60):
    """The number of objects that `more` uses leave behind."""
    for seed in range(before):
        use(seed, Path(folder))
    objects = held()
    for seed in range(before, before + more):
        use(seed, Path(folder))
    return held() - objects


@pytest.mark.slow
def test_many_fits_leave_less_than_an_object_each(tmp_path):
    """In a process of its own, which other tests have not filled."""
    code = f"import test_nothing_left_behind as own; print(own.grown({str(tmp_path)!r}))"
    words, folder = [sys.executable, "-c", code], Path(__file__).parent
    assert int(subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True).stdout) < 3 * 60
