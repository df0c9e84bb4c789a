"""`neuralbayes sweep`: it writes a folder, a table and a picture, and prints the next command."""

import json
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from image_cases import bars

pytest.importorskip("optuna")

from neuralbayes.cli import main
from neuralbayes.cli.sweep import _again
from neuralbayes.features.pretraining import PRESETS
from neuralbayes.sweeps.search import Plan
from neuralbayes.sweeps.space import parse
from neuralbayes.sweeps.trial import Pictures

QUICK = ["--set", "encoder=tiny", "epochs=2", "batch=20", "microbatch=20", "--metric", "information"]


def said(capsys):
    captured = capsys.readouterr()
    return " ".join(captured.out.split()), " ".join(captured.err.split())


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "bars.npz"
    x, y = bars(60)
    np.savez(path, train_images=x, train_labels=y, test_images=x[:20], test_labels=y[:20])
    return str(path)


def test_the_command_explains_itself_with_examples(capsys):
    assert main(["sweep", "--help"]) == 0
    out = said(capsys)[0]
    assert "neuralbayes sweep cifar10 --search alpha=0:10 learning_rate=1e-4:1e-1:log" in out
    for option in ("--search", "--set", "--trials", "--metric", "--prune", "--workers", "--storage", "--seed"):
        assert option in out
    assert main(["--help"]) == 0
    assert "neuralbayes sweep " in said(capsys)[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--search", "alpha"], "`search` must be NAME=LOW:HIGH, NAME=LOW:HIGH:log or NAME=A,B, got 'alpha'"),
        (["--search", "alpha=0:1", "beta=0:x"], "`beta` must be a number, got 'x'"),
        (["--search", "alpha=0:1", "--set", "alpha=2"], "must name different settings, got alpha in both"),
        (["--search", "alpha=0:1", "--trials", "0"], "`trials` must be at least 1, got 0"),
        (["--search", "alpha=0:1", "--workers", "0"], "--workers must be from 1 to the number of cores"),
        (["--search", "alpha=0:1", "--limit", "0"], "`limit` must be at least 1, got 0"),
        (["--search", "alpha=0:1", "--size", "8"], "images must be at least 22x22 pixels, got 8x8"),
        (["--search", "alpha=0:1", "--storage", "nosuch://host"], "must be a database that SQLAlchemy knows"),
        (["--search", "alpha=0:1", "--metric", "loss"], "--metric"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(capsys, tmp_path, data, words, message):
    assert main(["sweep", data, *words, "--out", str(tmp_path / "sweep")]) == 2
    out, err = said(capsys)
    assert out == ""
    assert message in err
    assert not (tmp_path / "sweep").exists()


def test_without_optuna_it_names_the_extra(capsys, tmp_path, data, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "optuna"]:
        monkeypatch.delitem(sys.modules, name)
    for name in ("queue", "worker", "crew", "search"):
        monkeypatch.delitem(sys.modules, f"neuralbayes.sweeps.{name}")
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert main(["sweep", data, "--search", "alpha=0:1", "--out", str(tmp_path / "sweep")]) == 2
    assert "pip install 'neuralbayes[sweep]'" in said(capsys)[1]


def test_the_best_is_trained_again_with_the_epochs_of_the_preset_on_all_images():
    words = ["epochs=2", "batch=50", "augment=true", "recompute=true"]
    space, config = parse(["alpha=0:4", "scales=1,1+2"], words, PRESETS["laptop"])
    plan = Plan(Pictures("/pictures", "unlabeled", limit=100, size=24), space, config)
    again = shlex.join(_again("pictures", "laptop", plan, {"alpha": 0.25, "scales": (1, 2)}))
    assert again == (
        "neuralbayes pretrain pictures --batch 50 --augment --recompute --alpha 0.25 --scales 1,2 --split unlabeled "
        "--size 24 --out best"
    )
    _, longer = parse(["alpha=0:4"], ["epochs=40", "patience=3"], PRESETS["paper"])
    again = shlex.join(_again("mnist", "paper", Plan(Pictures("mnist"), space, longer), {"recompute": False}))
    assert again == "neuralbayes pretrain mnist --preset paper --patience 3 --no-recompute --out best"


def test_two_workers_leave_runs_numbers_a_table_and_a_picture(capsys, tmp_path, data, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    out = tmp_path / "sweep"
    words = ["sweep", data, "--search", "alpha=0:4", "scales=1,1+2", *QUICK, "--trials", "3", "--out", str(out)]
    assert main(words) == 0
    text, err = said(capsys)
    assert err == ""
    assert "3 finished" in text
    kept = json.loads((out / "sweep.json").read_text())
    assert [one["state"] for one in kept["trials"]] == ["finished"] * 3
    best = kept["trials"][0]
    assert (
        f"neuralbayes pretrain {data} --batch 20 --encoder tiny --microbatch 20 --alpha {best['settings']['alpha']:g} "
        in text
    )
    assert (out / "sweep.png").read_bytes().startswith(b"\x89PNG")
    for one in kept["trials"]:
        assert json.loads((out / one["trial"] / "data.json").read_text())["data"] == data
    assert main(["probe", str(out / best["trial"]), "--head", "knn", "--quiet"]) == 0
    monkeypatch.setattr("neuralbayes.sweeps.crew.serve", None)
    assert main([*words, "--quiet"]) == 0
    assert json.loads((out / "sweep.json").read_text()) == kept


@pytest.mark.slow
def test_interrupted_the_same_command_goes_on_with_the_same_trials(tmp_path, data, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    out, whole = tmp_path / "sweep", tmp_path / "whole"
    longer = [word.replace("epochs=2", "epochs=30") for word in QUICK]
    words = ["sweep", data, "--search", "alpha=0:4", *longer, "--trials", "2", "--workers", "1", "--quiet"]
    process = subprocess.Popen(
        [sys.executable, "-m", "neuralbayes", *words, "--out", str(out)], stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not list(out.glob("*/checkpoints/*")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    (begun,) = out.glob("*/metrics.jsonl")
    steps = begun.read_text()
    assert steps
    assert main([*words, "--out", str(out)]) == 0
    assert main([*words, "--out", str(whole)]) == 0
    assert begun.read_text().startswith(steps)
    values = [
        {one["trial"]: (one["settings"], one["value"]) for one in json.loads((o / "sweep.json").read_text())["trials"]}
        for o in (out, whole)
    ]
    assert values[0] == values[1]
