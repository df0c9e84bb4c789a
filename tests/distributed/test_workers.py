"""Blocks on Dask workers: each is computed once, also if a worker is killed; few are in transit; errors are clear."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from neuralbayes.distributed import workers
from neuralbayes.distributed.workers import Workers


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr(workers, "n_cores", lambda: 2)


def scaled(model, piece):
    return model * piece


def fatal(model, piece):
    """Kill the process that computes block 3: only the first one, or each."""
    block, mark = piece
    if block == 3 and (mark is None or not Path(mark).exists()):
        if mark is not None:
            Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return model * block


def broken(model, piece):
    raise OSError("a picture is no longer readable")


def test_every_block_is_computed_once_and_few_are_on_their_way(scheduler):
    asked, came = [], []

    def piece(i):
        asked.append(i)
        assert len(asked) - len(came) <= workers.AHEAD * 2
        return i

    for i, array in Workers(scheduler=scheduler).map(scaled, np.ones((2, 3)), piece, range(20)):
        np.testing.assert_array_equal(array, np.full((2, 3), i))
        came.append(i)
    assert asked == list(range(20))
    assert sorted(came) == asked


def test_an_error_of_a_worker_is_raised_here(scheduler):
    with pytest.raises(OSError, match="a picture is no longer readable"):
        list(Workers(scheduler=scheduler).map(broken, 1, lambda i: i, [0]))


def test_the_blocks_of_a_killed_worker_are_computed_by_another(tmp_path):
    mark = tmp_path / "killed"
    found = dict(Workers(2).map(fatal, np.ones((1, 2)), lambda i: (i, str(mark)), range(8)))
    assert mark.exists()
    assert {i: array.tolist() for i, array in found.items()} == {i: [[i, i]] for i in range(8)}


@pytest.mark.slow
def test_a_block_that_kills_every_worker_ends_the_command():
    with pytest.raises(ChildProcessError, match="block 3 has crashed every worker that tried it"):
        list(Workers(2).map(fatal, 1, lambda i: (i, None), [3]))


def test_a_scheduler_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(workers, "TIMEOUT", 0.3)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    with pytest.raises(ConnectionError, match=f"no Dask scheduler answers at {address}"):
        list(Workers(scheduler=address).map(scaled, 1, lambda i: i, [0]))


@pytest.mark.parametrize(
    ("given", "environment", "message"),
    [
        ({"n": 0}, {}, "--workers must be from 1 to the number of cores, 2, got 0"),
        ({"n": 3}, {}, "--workers must be from 1 to the number of cores, 2, got 3"),
        ({"n": 2, "scheduler": "tcp://a:1"}, {}, "give only one of the two"),
        ({"scheduler": "node0"}, {}, "--scheduler must be an address such as tcp://node0:8786, got 'node0'"),
        ({}, {"RANK": "1", "WORLD_SIZE": "3"}, "one of 3 processes .* with --workers N or with --scheduler ADDRESS"),
        ({}, {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "8"}, "one of 8 processes"),
    ],
)
def test_what_cannot_be_is_refused(monkeypatch, given, environment, message):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=message):
        Workers(**given)


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setattr(workers, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"need Dask: pip install 'neuralbayes\[cluster\]'"):
        Workers(2)
    Workers()


def test_one_process_does_not_import_dask():
    code = (
        "import sys; from neuralbayes.distributed.workers import Workers;"
        "list(Workers().map(max, 1, lambda i: i, [0, 1])); sys.exit(bool({'dask', 'distributed'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
