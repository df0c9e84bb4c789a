"""`neuralbayes reproduce` before it runs anything: lists, estimates, errors."""

import pytest
from neuralbayes.distributed.launch import n_cores, n_threads
from paper import NAMES, load_experiment
from paper.experiment import Record
from paper.records import Recorded
from reproduce_cases import digits

from neuralbayes.cli import main, reproduce


def said(capsys):
    captured = capsys.readouterr()
    return " ".join(captured.out.split()), " ".join(captured.err.split())


@pytest.mark.parametrize("name", ["reproduce", "report"])
def test_the_command_explains_itself_with_examples(capsys, name):
    assert main([name, "--help"]) == 0
    out = said(capsys)[0]
    assert f"neuralbayes {name} " in out
    assert "--quiet" in out


def test_list_shows_all_experiments_or_the_runs_of_one(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["reproduce", "all", "--scale", "laptop", "--list", "--out", str(tmp_path)]) == 0
    out = said(capsys)[0]
    assert all(name in out for name in NAMES)
    assert main(["reproduce", "mnist-dml", "--seeds", "1", "--only", "*random*", "--list", "--out", str(tmp_path)]) == 0
    out = said(capsys)[0]
    (run,) = [run for run in load_experiment("mnist-dml").runs("smoke", 1) if run.kind == "random"]
    assert f"digits random seed=0 mnist-dml/{run.key} no" in out
    assert "logits" not in out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["table-btch"], 'Did you mean "table-batch"?'),
        (["all", "--workers", "0"], f"--workers must be from 1 to the number of cores, {n_cores()}, got 0"),
        (["all", "--workers", str(n_cores() + 1)], f"--workers must be from 1 to the number of cores, {n_cores()}"),
        (["all", "--seeds", "0"], "--seeds must be at least 1, got 0"),
        (["mnist-dml", "--only", "nothing"], "--only must match the name of a run, got 'nothing'"),
        (["mnist-dml", "--scale", "huge"], "--scale"),
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(capsys, tmp_path, words, message):
    assert main(["reproduce", *words, "--out", str(tmp_path / "out")]) == 2
    out, err = said(capsys)
    assert out == ""
    assert message in err
    assert not (tmp_path / "out").exists()


def test_the_papers_scale_is_estimated_and_wants_a_yes(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "_cost", lambda runs, workers: 1000.0 * len(runs) / workers)
    words = ["reproduce", "mnist-dml", "--scale", "paper", "--workers", "1", "--out", str(tmp_path)]
    assert main(words) == 2
    assert "30 runs of about 8:20:00 of training on this machine: --yes starts them" in said(capsys)[1]
    started = []
    monkeypatch.setattr("paper.images.fetch", lambda names, progress: None)
    monkeypatch.setattr("paper.sweep.sweep", lambda runs, out, **options: started.extend(runs) or {})
    assert main([*words, "--yes"]) == 0
    assert "30 runs of about 8:20:00" in said(capsys)[0]
    assert len(started) == 30


@pytest.mark.parametrize("name", [name for name in NAMES if name != "fig-convergence"])
def test_the_cost_of_a_run_is_estimated_from_steps_that_are_timed(name):
    experiment = load_experiment(name)
    cost = {run.label: experiment.cost(run) for run in experiment.runs("smoke", 1)[:6]}
    assert all(0 <= seconds < 60 for seconds in cost.values())
    assert max(cost.values()) > 0
    assert all(seconds == 0 for label, seconds in cost.items() if "random" in label)


def test_workers_share_the_cores(monkeypatch):
    monkeypatch.setattr("neuralbayes.distributed.launch.n_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [n_threads(workers) for workers in (1, 3, 8)] == [8, 2, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert [n_threads(workers) for workers in (1, 3, 8)] == [2, 2, 1]


def test_recorded_runs_are_finished_and_survive_a_partial_command(tmp_path, monkeypatch):
    """Results recorded by another machine count, and `--only` does not drop other runs from the record."""
    monkeypatch.setattr("neuralbayes.sweeps.crew.serve", None)  # no run is performed
    record, first, second = tmp_path / "record", tmp_path / "first", tmp_path / "second"
    words = ["reproduce", "mnist-dml", "--seeds", "1", "--workers", "1", "--quiet", "--record", str(record), "--only"]
    for out, kind in ((first, "random"), (second, "logits")):
        (run,) = (run for run in load_experiment("mnist-dml").runs("smoke", 1) if run.kind == kind)
        Record(run.settings, digits(kind, 0.5).values, {"seconds": 1.0}).store(run, out)
    assert main([*words, "*random*", "--out", str(first)]) == 0
    before = Recorded.read(record / "mnist-dml" / "smoke.json").records
    assert [run.settings["kind"] for run in before] == ["random"]
    assert main([*words, "*logits*", "--out", str(second)]) == 0
    after = Recorded.read(record / "mnist-dml" / "smoke.json").records
    assert [run.settings["kind"] for run in after] == ["random", "logits"]
    assert after[0] == before[0]
