"""A process that works for a long time holds no more than one that has just started."""

import gc
import os
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from neuralbayes.system.files import read_tensors, write_tensors

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "guarantees" / "leaks.py"
TIMES = 40

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files are counted in /proc")


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
    assert held() - before < TIMES  # a leak of one object per tensor would be 20 each time


@needs_proc
def test_fitting_saving_and_loading_keep_no_file_open(tmp_path):
    parts = runpy.run_path(str(SCRIPT))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = set()
        for seed in range(6):
            for make in parts["MODELS"]:
                parts["use"](make(seed).fit(parts["ROWS"]), tmp_path / f"{seed}-{make(seed).__class__.__name__}")
            gc.collect()
            found.add(len(os.listdir("/proc/self/fd")))
    assert len(found) <= 2  # only what the first fit opens permanently


def test_a_leak_is_told_from_noise():
    slope = runpy.run_path(str(SCRIPT))["slope"]
    rng = np.random.default_rng(0)
    noise = np.repeat(rng.normal(size=20), 4)  # neighbouring counts are correlated
    _, low, high = slope(noise, 100)
    assert low < 0 < high
    leak, low, high = slope(noise + 2.0 * 100 * np.arange(80), 100)
    assert low < leak < high
    assert abs(leak - 2.0) < 0.1
    assert low > 1.0


@pytest.mark.slow
@needs_proc
def test_hundreds_of_fits_and_days_in_miniature():
    command = [sys.executable, str(SCRIPT), "--fits", "800", "--every", "40"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
