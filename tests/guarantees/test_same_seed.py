"""The same seed gives the same numbers, to the last bit."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "guarantees" / "determinism.py"
PARTS = runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize("name", ["MIMEncoder", "probe", "ManifoldLabeler"])
def test_twice_in_one_process(name):
    compute = PARTS["RESULTS"][name]
    assert PARTS["same"](compute(), compute())


def test_after_an_interruption():
    unbroken, interrupted = (PARTS["learnt"](PARTS["pretrained"](interrupted=broken)) for broken in (False, True))
    assert PARTS["same"](unbroken, interrupted)


def test_what_differs_is_told_apart():
    one, other = {"output": np.array([2.0, 4.0])}, {"output": np.array([2.0, 4.0 + 1e-6])}
    assert PARTS["same"](one, one)
    assert not PARTS["same"](one, other)
    assert PARTS["difference"](one, other) == pytest.approx(2.5e-7, rel=1e-3)


@pytest.mark.slow
def test_in_another_process_with_other_hashes():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
