"""Runs as data, their files, records that only grow, and commands that are interrupted and continue."""

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from paper import NAMES, load_experiment, published
from paper.__main__ import main
from paper.runs import SCALES, TRAINING, Record, Run, add_records, perform, perform_all, read_records

RECORDS = Path(__file__).parents[2] / "results" / "reproduce"


@dataclass(frozen=True)
class Sum(Run):
    a: float
    b: tuple[int, ...] = (1, 2)

    @property
    def label(self):
        return f"{self.a}"

    def measure(self, folder):
        (folder / TRAINING / "checkpoints").mkdir(parents=True)
        return {"sum": 1 / self.a + sum(self.b)}


def test_the_hash_is_of_the_settings_and_the_same_everywhere():
    run = Sum("sums", 0, 1.5)
    assert run.key == "6eeaf0e9d9a4"
    assert len({run.key, Sum("sums", 1, 1.5).key, Sum("sums", 0, 2.5).key, Sum("sums", 0, 1.5, (2, 1)).key}) == 4


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_is_kept_and_one_that_fails_does_not_stop_the_others(tmp_path, workers):
    runs = [Sum("sums", 0, 0.0), Sum("sums", 0, 1.0)]
    found = {run.a: result for run, result in perform_all(runs, tmp_path, workers)}
    assert isinstance(found[0.0], ZeroDivisionError)
    assert found[1.0].values == {"sum": 4.0}
    assert [run.finished(tmp_path) for run in runs] == [False, True]
    folder = runs[1].folder(tmp_path)
    assert json.loads((folder / "config.json").read_text()) == {"experiment": "sums", "seed": 0, "a": 1.0, "b": [1, 2]}
    assert not (folder / TRAINING / "checkpoints").exists()
    assert perform(runs[1], tmp_path) == found[1.0], "a finished run is read, not performed"


def test_records_only_grow(tmp_path):
    first, second = (Record({"seed": seed}, {"x": 0.1}, {"seconds": 1.0}) for seed in range(2))
    add_records(tmp_path, "mnist-dml", "smoke", [first])
    other = Record(first.settings, {"x": 0.9}, {})
    add_records(tmp_path, "mnist-dml", "smoke", [second, other])
    assert read_records(tmp_path, "mnist-dml", "smoke") == [first, second]
    (tmp_path / "mnist-dml" / "smoke.json").write_text('{"records": [{"a": 1}]}')
    with pytest.raises(ValueError, match=r"smoke\.json does not hold recorded runs"):
        read_records(tmp_path, "mnist-dml", "smoke")


def test_adding_nothing_leaves_the_records_of_this_repository_as_they_are(tmp_path):
    for path in RECORDS.glob("*/*.json"):
        name, scale = path.parent.name, path.stem
        add_records(tmp_path, name, scale, read_records(RECORDS, name, scale))
        before, after = (p.read_text().split('"records"')[1] for p in (path, tmp_path / name / path.name))
        assert before == after


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_lists_its_runs_at_every_scale(name):
    experiment = load_experiment(name)
    for scale in SCALES:
        runs = experiment.runs(scale, 2)
        labels = {(run.experiment, run.label) for run in runs}
        assert len({run.key for run in runs}) == len(labels) == len(runs) > 0
        assert {run.experiment for run in runs} <= set(NAMES)
    typed = published.SETTINGS[name]
    readable = {key for run in experiment.runs("paper", 1) for key in experiment.settings(run.settings)}
    assert len(readable & set(typed)) >= 5, "the table of settings compares something"


def test_what_was_recorded_is_what_the_scale_lists():
    """A change of settings would orphan the records: these need hours to be made again."""
    known = {record.key for name in NAMES for record in read_records(RECORDS, name, "laptop")}
    for name in ("table-batch", "fig-filters", "fig-manifolds", "mnist-dml"):
        assert {run.key for run in load_experiment(name).runs("laptop", None)} <= known


def test_what_the_paper_measured_are_multiples_of_one_in_128():
    """Except for quoted numbers: a mistake in copying a number would show here."""
    measured = [value for row in published.TABLE_1.values() for value in row.values()]
    measured += [v for (key, _), row in published.TABLE_2.items() if key != "infomax" for v in row.values()]
    measured += [*published.FIGURE_2.values(), *published.APPENDIX_H.values()]
    for value in measured:
        assert abs(value / 100 * 128 - round(value / 100 * 128)) < 0.01, value


def values(record):
    return {one.key: one.values for name in NAMES for one in read_records(record, name, "smoke")}


def test_an_interrupted_command_goes_on_to_the_same_results(tmp_path, capsys):
    def interrupt():
        while len(list((tmp_path / "parts").glob("*/*/training/config.json"))) < 2:  # the second run is training
            time.sleep(0.005)
        os.kill(os.getpid(), signal.SIGINT)

    words = ["fig-filters", "--seeds", "1", "--out"]
    thread = threading.Thread(target=interrupt, daemon=True)
    thread.start()
    assert main([*words, str(tmp_path / "parts")]) == 130
    thread.join()
    done = values(tmp_path / "parts" / "records")
    assert main([*words, str(tmp_path / "parts")]) == 0
    assert main([*words, str(tmp_path / "whole")]) == 0
    whole = values(tmp_path / "whole" / "records")
    assert len(done) < len(whole)
    assert values(tmp_path / "parts" / "records") == whole
    assert main([*words, str(tmp_path / "whole")]) == 0, "nothing is left to do"
    assert main(["page", "--record", str(tmp_path / "whole" / "records"), "--out", str(tmp_path)]) == 0
    assert "undecided" in capsys.readouterr().out
    assert f"results-{words[0]}.png" in (tmp_path / "results.md").read_text()
    assert list((tmp_path / "pictures").glob(f"results-{words[0]}*.png"))


def test_the_list_says_what_there_is_with_cost_and_last_result(capsys):
    assert main(["--record", str(RECORDS)]) == 0
    out = capsys.readouterr().out
    for name in NAMES:
        assert load_experiment(name).TITLE in out
    assert "minutes each" in out
    assert "undecided" in out


@pytest.mark.parametrize(
    "words",
    [
        ["table-btch"],
        ["all", "--workers", "0"],
        ["mnist-dml", "--only", "nothing"],
        ["mnist-dml", "--scale", "paper", "--record", str(RECORDS)],
    ],
)
def test_what_cannot_be_done_is_said_before_anything_is(words, tmp_path):
    with pytest.raises(SystemExit, match="2"):
        main([*words, "--out", str(tmp_path / "out")])
    assert not (tmp_path / "out").exists()
