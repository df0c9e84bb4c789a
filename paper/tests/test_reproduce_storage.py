"""`neuralbayes reproduce --storage`: several commands do each run once, even if some are killed."""

import os
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("optuna")

from neuralbayes.sweeps.queue import Queue
from optuna.trial import TrialState
from paper import load_experiment

from neuralbayes.cli import main

WORDS = ["reproduce", "mnist-dml", "--seeds", "1", "--workers", "1"]
RUNS = load_experiment("mnist-dml").runs("smoke", 1)


@pytest.fixture(autouse=True)
def _places(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path_factory.getbasetemp() / "data-of-digits"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


@pytest.fixture
def storage(tmp_path):
    return str(tmp_path / "runs.db")


def started(storage, out):
    """Start another command on the same storage, as on another machine."""
    words = [*WORDS, "--storage", storage, "--out", str(out)]
    return subprocess.Popen(
        [sys.executable, "-m", "neuralbayes", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def attempts(storage):
    """The outcome of each attempt at each run; trials that were made twice are left out."""
    ended = {run.key: [] for run in RUNS}
    with Queue(storage, "neuralbayes reproduce mnist-dml --scale smoke --seeds 1").open() as study:
        for trial in study.get_trials():
            if trial.state != TrialState.FAIL or "worker" in trial.user_attrs:
                ended[trial.user_attrs["job"]].append(trial.state.name)
    return ended


def tables(out):
    lines = (out / "mnist-dml" / "smoke.md").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "hours" not in line]


@pytest.mark.slow
def test_two_commands_do_each_run_once_and_both_have_all_tables(storage, tmp_path):
    other = started(storage, tmp_path / "other")
    assert main([*WORDS, "--storage", storage, "--out", str(tmp_path / "one"), "--quiet"]) == 0
    out, err = other.communicate(timeout=120)
    assert other.returncode == 0, err
    assert attempts(storage) == {run.key: ["COMPLETE"] for run in RUNS}
    assert tables(tmp_path / "one") == tables(tmp_path / "other")
    assert all(run.finished(tmp_path / name) for run in RUNS for name in ("one", "other"))
    assert "Appendix H: labelling MNIST" in out


def test_what_is_finished_in_the_folder_is_told_and_not_repeated(storage, tmp_path, monkeypatch):
    out = tmp_path / "out"
    for run in RUNS:
        run.folder(out).mkdir(parents=True)
        result = '{"values": {"accuracy": 0.5, "covered": 1.0, "n_found": 10}, "about": {"seconds": 3.5}}'
        (run.folder(out) / "result.json").write_text(result)
    monkeypatch.setattr("neuralbayes.sweeps.crew.serve", None)
    monkeypatch.setattr("neuralbayes.cli.reproduce._finish", lambda *words: None)
    for folder in (out, tmp_path / "other"):
        assert main([*WORDS, "--storage", storage, "--out", str(folder), "--quiet"]) == 0
    assert attempts(storage) == {run.key: ["COMPLETE"] for run in RUNS}
    other = {run.folder(tmp_path / "other") / "result.json" for run in RUNS}
    assert all(path.read_text().count("0.5") == 1 for path in other)


@pytest.mark.slow
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGTERM])
def test_in_a_common_folder_a_run_goes_on_where_a_killed_command_was(storage, tmp_path, signum):
    """The worker saves the run and puts it back, even if no command asks for it."""
    out = tmp_path / "out"
    killed = started(storage, out)
    deadline = time.monotonic() + 120
    while not list(out.glob("*/*/training/checkpoints/*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(killed.pid, signum)
    killed.communicate(timeout=60)
    assert killed.returncode == (-9 if signum == signal.SIGKILL else 143)
    begun = [path for path in out.glob("*/*/training/metrics.jsonl") if path.stat().st_size]
    written = [path.read_text() for path in begun]
    assert main([*WORDS, "--storage", storage, "--out", str(out), "--quiet"]) == 0
    assert all(path.read_text().startswith(text) for path, text in zip(begun, written, strict=True))
    ended = list(attempts(storage).values())
    assert all(states[-1] == "COMPLETE" and states.count("COMPLETE") == 1 for states in ended)
    assert sum(len(states) for states in ended) <= len(RUNS) + 1
    assert main([*WORDS, "--out", str(tmp_path / "alone"), "--quiet"]) == 0
    assert tables(out) == tables(tmp_path / "alone")
