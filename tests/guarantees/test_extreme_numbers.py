"""Extreme inputs give finite numbers, or an error that says why."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "guarantees" / "numerics.py"


@pytest.mark.slow
def test_every_objective_and_estimator():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
