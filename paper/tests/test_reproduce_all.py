"""`neuralbayes reproduce all --scale smoke` with worker processes: its files, with and without interruption."""

import json
import signal
import subprocess
import sys
import time

import pytest
from paper import NAMES, load_experiment
from paper.records import Recorded

from neuralbayes.cli import main

ONE = ["--workers", "1", "--seeds", "1"]


@pytest.fixture(scope="module", autouse=True)
def _places(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURALBAYES_DATA", str(tmp_path_factory.mktemp("data")))
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory, _places):
    """Everything, run once with one seed; `record` next to it has a copy of the numbers."""
    out = tmp_path_factory.mktemp("all")
    assert main(["reproduce", "all", "--out", str(out), "--record", str(out / "record"), *ONE, "--quiet"]) == 0
    return out


def tables(out, name):
    """The tables and claims of an experiment, without the line about the time it took."""
    lines = (out / name / "smoke.md").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "hours" not in line]


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_leaves_numbers_tables_and_a_picture(whole, name):
    folder = whole / name
    assert (folder / "smoke.png").read_bytes().startswith(b"\x89PNG")
    text = (folder / "smoke.md").read_text(encoding="utf-8")
    experiment = load_experiment(name)
    assert text.startswith(f"## {experiment.title}\n")
    assert f"neuralbayes reproduce {name} --scale smoke" in text
    assert "| ---" in text
    recorded = Recorded.read(folder / "smoke.json")
    runs = experiment.runs("smoke", 1)
    assert [record.settings for record in recorded.records] == [run.settings for run in runs]
    assert recorded.n_runs == len(runs)
    assert {claim.verdict for claim in experiment.claims(recorded.records)} - {"not run"}
    assert (whole / "record" / name / "smoke.json").read_bytes() == (folder / "smoke.json").read_bytes()
    assert str(whole) not in (folder / "smoke.json").read_text(encoding="utf-8")


def test_every_run_has_one_folder_with_its_config_and_result(whole):
    runs = {run.key: run for name in NAMES for run in load_experiment(name).runs("smoke", 1)}
    results = list(whole.glob("*/*/result.json"))
    assert sorted(path.parent.name for path in results) == sorted(runs)
    for path in results:
        assert json.loads((path.parent / "config.json").read_text()) == runs[path.parent.name].settings
        assert not (path.parent / "training" / "checkpoints").exists()


def test_both_protocols_are_in_every_probe(whole):
    for path in (whole / "table-classification").glob("*/result.json"):
        probes = json.loads(path.read_text())["values"]["probes"]
        assert set(probes) == {"relu4", "relu2"}
        for found in probes.values():
            assert (found["validation"]["n_test"], found["paper"]["n_test"]) == (160, 128)
            assert len(found["paper"]["curves"][0]) == 4


def test_the_page_is_made_of_the_record_alone(whole, tmp_path, capsys):
    assert main(["report", str(whole / "record"), "--out", str(tmp_path)]) == 0
    assert str(tmp_path / "results.md") in capsys.readouterr().out
    text = (tmp_path / "results.md").read_text(encoding="utf-8")
    pictures = {path.name for path in (tmp_path / "pictures").iterdir()}
    assert pictures == {
        f"results-{name}.png" for name in (*NAMES, "fig-manifolds-harder", "fig-manifolds-grid", "protocols")
    }
    for name in NAMES:
        assert load_experiment(name).title in text
        assert f"](pictures/results-{name}.png)" in text
    assert "STL-10 (table 2)" in text


@pytest.mark.slow
def test_interrupted_it_keeps_what_is_done_and_goes_on_to_the_same_table(whole, tmp_path, capsys):
    record = tmp_path / "record"
    words = ["reproduce", "table-classification", "--out", str(tmp_path), "--record", str(record), *ONE]
    process = subprocess.Popen(
        [sys.executable, "-m", "neuralbayes", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not (done := list(tmp_path.glob("*/*/result.json"))) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "of 7 runs are finished" in " ".join(err.split())
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*/result.json")}
    assert set(done) <= set(kept)
    assert len(kept) < 7
    assert len(Recorded.read(record / "table-classification" / "smoke.json").records) == len(kept)
    assert main([*words, "--quiet"]) == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert tables(tmp_path, "table-classification") == tables(whole, "table-classification")


def test_a_finished_sweep_starts_no_worker(whole, monkeypatch, capsys):
    monkeypatch.setattr("neuralbayes.sweeps.crew.serve", None)
    assert main(["reproduce", "mnist-dml", "--out", str(whole), *ONE]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Appendix H: labelling MNIST" in out
    assert "DML correctly labels MNIST" in out


@pytest.mark.slow
def test_a_run_that_fails_is_named_and_does_not_stop_the_others(tmp_path, capsys):
    runs = load_experiment("mnist-dml").runs("smoke", 1)
    (tmp_path / "mnist-dml").mkdir()
    runs[0].folder(tmp_path).write_text("in the way")
    assert main(["reproduce", "mnist-dml", "--out", str(tmp_path), *ONE, "--quiet"]) == 2
    err = " ".join(capsys.readouterr().err.split())
    assert "1 of 4 runs failed: mnist-dml digits random seed=0 (" in err
    assert [run.finished(tmp_path) for run in runs] == [False, True, True, True]
    assert len(Recorded.read(tmp_path / "mnist-dml" / "smoke.json").records) == 3
