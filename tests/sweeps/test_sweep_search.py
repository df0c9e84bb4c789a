"""A search of the settings of `pretrain`: its trials, its folder, and how it continues."""

import json
from dataclasses import replace

import numpy as np
import pytest
from image_cases import bars

pytest.importorskip("optuna")

from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.features.pretraining import PRESETS
from neuralbayes.report.sweeps import draw_sweep
from neuralbayes.sweeps import search as searching
from neuralbayes.sweeps import trial as trials
from neuralbayes.sweeps.queue import add
from neuralbayes.sweeps.search import Outcome, Plan, search
from neuralbayes.sweeps.space import Choice, parse
from neuralbayes.sweeps.trial import Pictures, run_trial
from neuralbayes.sweeps.worker import work

QUICK = replace(PRESETS["laptop"], encoder="tiny", epochs=2, batch_size=20, microbatch_size=20)


@pytest.fixture(autouse=True)
def _short_probes(monkeypatch):
    monkeypatch.setattr("neuralbayes.probes.protocol.MIN_UPDATES", 50)
    monkeypatch.setattr("neuralbayes.probes.protocol.PATIENCE_UPDATES", 5)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Labelled bars with a test part that must not be used: its labels are nonsense."""
    path = tmp_path_factory.mktemp("pictures") / "bars.npz"
    x, y = bars(60)
    np.savez(path, train_images=x, train_labels=y, test_images=x[:2], test_labels=np.array([7, 9]))
    return Pictures(str(path))


@pytest.fixture
def run(pictures, tmp_path):
    """Run a trial in the folder ``trial``, unless told otherwise."""

    def run(folder="trial", metric="probe", objective=None, report=None, **settings):
        return run_trial(pictures, replace(QUICK, **settings), metric, tmp_path / folder, objective, report)

    return run


def plan(pictures, *words, **options):
    space, config = parse(words or ["alpha=0:4"], [], QUICK)
    return Plan(pictures, space, config, **options)


@pytest.fixture
def inside(monkeypatch):
    """Run the trials in this process, one after the other, like a worker."""

    def do_jobs(queue, labels, do, **options):
        with queue.open() as study:
            add(study, labels)
        work(queue, list(labels), do)

    monkeypatch.setattr(searching, "do_jobs", do_jobs)


def test_a_trial_is_a_run_and_the_accuracy_of_a_probe(run, tmp_path):
    result = run()
    folder = tmp_path / "trial"
    assert 0.5 < result["value"] <= 1.0
    assert json.loads((folder / "trial.json").read_text()) == result
    assert ImageEncoder.load(folder).size == "tiny"
    assert not (folder / "checkpoints").exists()


def test_a_trial_without_labels_is_judged_by_its_information(run, tmp_path):
    result = run(metric="information")
    layers = json.loads((tmp_path / "trial" / "result.json").read_text())["layers"]
    assert result["value"] == pytest.approx(layers["relu4"]["information"], abs=1e-4)


def test_a_trial_that_is_done_is_not_done_again(run, monkeypatch):
    result = run()
    monkeypatch.setattr(trials, "pretrain", lambda *words, **options: 1 / 0)
    assert run() == result
    with pytest.raises(ZeroDivisionError):
        run("other")


def test_to_report_changes_nothing_and_a_trial_that_falls_behind_is_ended(run, tmp_path):
    reports = []

    def report(epoch, value):
        reports.append((epoch, value))
        return len(reports) == 2

    plain = run("plain", epochs=3)
    watched = run("watched", epochs=3, report=lambda epoch, value: False)
    assert watched["value"] == plain["value"]
    encoders = [(tmp_path / name / "encoder.safetensors").read_bytes() for name in ("plain", "watched")]
    assert encoders[0] == encoders[1]
    ended = run("ended", epochs=3, report=report)
    assert ended["value"] is None
    assert ended["note"] == trials.PRUNED
    assert [epoch for epoch, _ in reports] == [1, 2]
    assert json.loads((tmp_path / "ended" / "result.json").read_text())["ended"] == "early stop"


def test_a_trial_by_an_objective_of_ones_own(run, tmp_path):
    assert run(metric="information", objective="neuralbayes.objectives:DML")["value"] is not None
    (config,) = tmp_path.rglob("config.json")
    assert json.loads(config.read_text())["objective"].startswith("neuralbayes.objectives.dml.DML(")


def test_a_trial_that_diverges_has_no_value(run):
    result = run(learning_rate=1e30)
    assert result["value"] is None
    assert result["note"].startswith("diverged: ")


def test_a_search_leaves_a_folder_a_trial_and_all_numbers(pictures, tmp_path, inside):
    wanted = plan(pictures, "alpha=0:4", "scales=1,1+2", "learning_rate=1e-3:1e30:log")
    outcomes = search(wanted, tmp_path / "sweep", trials=4, workers=1)
    assert len({one.trial for one in outcomes}) == 4
    values = [one.value for one in outcomes if one.value is not None]
    assert values == sorted(values, reverse=True)
    for one in outcomes:
        config = json.loads((tmp_path / "sweep" / one.trial / "config.json").read_text())
        assert {name: config[name] for name in ("alpha", "learning_rate")} == {
            name: one.settings[name] for name in ("alpha", "learning_rate")
        }
        assert config["scales"] == list(one.settings["scales"])
        assert one.state == ("ended early" if one.value is None else "finished")
    kept = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert [one["trial"] for one in kept["trials"]] == [one.trial for one in outcomes]
    assert (tmp_path / "sweep" / "sweep.db").is_file()


def test_settings_that_are_drawn_twice_are_trained_once(pictures, tmp_path, inside, monkeypatch):
    trained = []
    train = trials.pretrain
    monkeypatch.setattr(trials, "pretrain", lambda *words, **options: trained.append(1) or train(*words, **options))
    outcomes = search(plan(pictures, "beta=0,1", metric="information"), tmp_path / "sweep", trials=4, workers=1)
    assert len(outcomes) == 4
    assert len({one.trial for one in outcomes}) == len(trained) == 2


def test_a_trial_that_falls_behind_the_median_is_ended(pictures, tmp_path, inside, monkeypatch):
    """After five trials, which Optuna's pruner waits for; here, each is worse than the one before."""
    worth = iter(range(100, 0, -1))
    few = replace(pictures, limit=20)
    source = few.load().source
    monkeypatch.setattr(trials, "_opened", lambda *words: (source, lambda encoder: float(next(worth))))
    outcomes = search(plan(few, prune=True), tmp_path / "sweep", trials=6, workers=1)
    assert [one.state for one in outcomes] == ["finished"] * 5 + ["ended early"]
    assert outcomes[-1].note == trials.PRUNED


def test_the_same_seed_draws_the_same_trials_and_more_trials_go_on(pictures, tmp_path, inside):
    first = search(plan(pictures), tmp_path / "one", trials=2, workers=1)
    second = search(plan(pictures), tmp_path / "two", trials=1, workers=1)
    assert second[0] in [replace(one, seconds=second[0].seconds) for one in first]
    longer = search(plan(pictures), tmp_path / "two", trials=2, workers=1)
    settings = {one.trial: (one.settings, one.value) for one in first}
    assert {one.trial: (one.settings, one.value) for one in longer} == settings
    assert len({one.settings["alpha"] for one in first}) == 2


def test_a_trial_that_fails_is_named_with_its_settings(pictures, tmp_path, inside):
    space, config = parse(["alpha=0:4", "beta=0.5:1"], [], QUICK)
    wrong = space | {"precision": Choice({"half": "float16"})}
    (outcome,) = search(Plan(pictures, wrong, config), tmp_path / "sweep", trials=1, workers=1)
    assert outcome.state == "failed"
    assert "`precision` must be one of" in outcome.note
    assert set(outcome.settings) == {"alpha", "beta", "precision"}


def test_another_search_in_the_same_folder_and_what_cannot_be_judged_are_refused(pictures, tmp_path, inside):
    search(plan(pictures), tmp_path / "sweep", trials=1, workers=1)
    with pytest.raises(ValueError, match=r"holds another sweep \(different: metric, space\)"):
        search(plan(pictures, "beta=0,1", metric="information"), tmp_path / "sweep", trials=1, workers=1)
    np.save(tmp_path / "plain.npy", bars(20)[0])
    unlabelled = Pictures(str(tmp_path / "plain.npy"))
    with pytest.raises(ValueError, match=r"the metric probe needs labels, and .* has none"):
        search(plan(unlabelled), tmp_path / "other", trials=1, workers=1)
    with pytest.raises(ValueError, match="images must be at least 22x22 pixels, got 8x8; give a `size`"):
        search(plan(replace(unlabelled, size=8), metric="information"), tmp_path / "other", trials=1, workers=1)
    with pytest.raises(ValueError, match="`trials` must be at least 1, got 0"):
        search(plan(pictures), tmp_path / "other", trials=0, workers=1)
    with pytest.raises(ValueError, match="`metric` must be one of probe, information, got 'loss'"):
        plan(pictures, metric="loss")
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("inside")
def test_another_objective_is_another_search(pictures, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("import neuralbayes as nb\nmine = nb.MIM(alpha=0.5)\n")
    options = {"metric": "information", "objective": f"{mine}:mine"}
    (found,) = search(plan(pictures, **options), tmp_path / "sweep", trials=1, workers=1)
    assert found.state == "finished"
    recorded = json.loads((tmp_path / "sweep" / "sweep.json").read_text())["settings"]["objective"]
    assert recorded == "neuralbayes.objectives.mim.MIM(alpha=0.5, version=2)"
    mine.write_text(mine.read_text().replace("0.5", "0.625"))  # another size, so cached bytecode is not used
    with pytest.raises(ValueError, match=r"holds another sweep \(different: objective\)"):
        search(plan(pictures, **options), tmp_path / "sweep", trials=1, workers=1)


def test_the_test_part_and_its_labels_are_never_read(run, monkeypatch):
    asked = []
    load = trials.load_images

    def noted(*words, **options):
        asked.append(options["split"])
        return load(*words, **options)

    monkeypatch.setattr(trials, "load_images", noted)
    trials._opened.cache_clear()
    run()
    assert asked == ["train"]


def test_the_picture_has_a_panel_for_each_setting():
    space, _ = parse(["alpha=0:4", "beta=0,1", "learning_rate=1e-4:1:log", "scales=1,1+2"], [], QUICK)
    common = {"beta": 1.0, "learning_rate": 0.1, "scales": (1, 2)}
    outcomes = [Outcome(f"trial-{i:04d}", "finished", {"alpha": float(i), **common}, value=0.1 * i) for i in range(4)]
    outcomes.append(Outcome("trial-0004", "ended early", {"alpha": 1.5, **common}, note="diverged"))
    outcomes.append(Outcome("trial-0005", "failed", {}, note="killed before anything was drawn"))
    figure = draw_sweep(outcomes, space, "accuracy")
    assert [ax.get_xlabel() for ax in figure.axes] == list(space)
    assert figure.axes[2].get_xscale() == "log"
    assert [tick.get_text() for tick in figure.axes[3].get_xticklabels()] == ["1", "1+2"]
    assert "trial-0003, 0.3; red, at the foot: 2 without a value" in figure.get_suptitle()
