"""A process that works for a long time holds no more than one that has just started."""

import gc
import os
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

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")


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


@needs_proc
def test_fitting_saving_and_loading_keep_no_file_open(tmp_path):
    found = set()
    for seed in range(3):
        use(seed, tmp_path)
        gc.collect()
        found.add(len(os.listdir("/proc/self/fd")))
    assert len(found) <= 2  # only what the first fit opens permanently


@pytest.mark.slow
@needs_proc
def test_hundreds_of_fits_hold_no_more_than_dozens(tmp_path, monkeypatch):
    own = tmp_path / "temporary"
    own.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))  # other processes use the usual one

    def counts():
        return [len(os.listdir(folder)) for folder in ("/proc/self/fd", "/proc/self/task", own)]

    for seed in range(90):  # what is imported or kept once, also for the tests before this one
        use(seed, tmp_path)
    before, objects = counts(), held()
    for seed in range(90, 150):
        use(seed, tmp_path)
    assert counts() == before
    assert held() - objects < 3 * 60  # an object a fit
