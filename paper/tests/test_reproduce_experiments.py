"""Experiments as data: their runs, hashes and published numbers, and the files of a run."""

import json
from dataclasses import dataclass, replace

import pytest
import torch
from paper import (
    NAMES,
    fig_convergence,
    fig_v1_v2,
    labeling_runs,
    load_experiment,
    mnist_dml,
    network_training,
    table_batch,
)
from paper import fig_ablation as ablation
from paper import table_classification as classification
from paper.experiment import SCALES, TRAINING, Record, Run, perform
from paper.images import Source, present

from neuralbayes.networks.encoders import labeling_network
from neuralbayes.objectives import DML
from neuralbayes.training.rng import seeded_globally


@dataclass(frozen=True)
class Sum(Run):
    """A run that adds."""

    a: float
    b: tuple[int, ...] = (1, 2)

    @property
    def label(self):
        return f"{self.a}"


def adding(calls):
    """The experiment of such runs, and a list of the runs done."""

    def run_one(run, folder):
        calls.append(run)
        (folder / TRAINING / "checkpoints").mkdir(parents=True)
        return {"sum": run.a + sum(run.b)}

    return replace(load_experiment("mnist-dml"), name="sums", run_one=run_one)


def test_the_hash_is_of_the_settings_and_the_same_everywhere():
    run = Sum("sums", 0, 1.5)
    assert run.key == Sum("sums", 0, 1.5, (1, 2)).key == "6eeaf0e9d9a4"
    assert len({run.key, Sum("sums", 1, 1.5).key, Sum("sums", 0, 2.5).key, Sum("sums", 0, 1.5, (2, 1)).key}) == 4


def test_a_run_leaves_its_settings_and_values_and_is_not_done_again(tmp_path):
    calls = []
    experiment, run = adding(calls), Sum("sums", 3, 1.5)
    assert not run.finished(tmp_path)
    for _ in range(2):
        perform(experiment, run, tmp_path)
    assert calls == [run]
    folder = tmp_path / "sums" / run.key
    assert json.loads((folder / "config.json").read_text()) == {"experiment": "sums", "seed": 3, "a": 1.5, "b": [1, 2]}
    record = Record.of(run, tmp_path)
    assert record.values == {"sum": 4.5}
    assert record.settings["a"] == 1.5
    assert record.about["threads"] >= 1
    assert set(record.about["versions"]) >= {"neuralbayes", "torch"}
    assert not (folder / TRAINING / "checkpoints").exists()


def test_a_run_that_fails_is_not_finished(tmp_path):
    experiment = replace(adding([]), run_one=lambda run, folder: 1 / 0)
    run = Sum("sums", 0, 1.0)
    with pytest.raises(ZeroDivisionError):
        perform(experiment, run, tmp_path)
    assert not run.finished(tmp_path)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", SCALES)
def test_all_runs_differ_in_hash_and_label_and_belong_to_an_experiment(name, scale):
    runs = load_experiment(name).runs(scale, 2)
    assert len({run.key for run in runs}) == len({(run.experiment, run.label) for run in runs}) == len(runs) > 0
    assert {run.experiment for run in runs} <= set(NAMES)
    assert {run.seed % 1000 for run in load_experiment(name).runs(scale, 1)} <= set(range(100))


@pytest.mark.parametrize("name", NAMES)
def test_without_results_no_claim_was_run(name):
    claims = load_experiment(name).claims([])
    assert claims
    assert {claim.verdict for claim in claims} == {"not run"}


def test_an_unknown_experiment_is_refused():
    with pytest.raises(ValueError, match=r"`name` must be one of .*table-batch.*, got 'tables'"):
        load_experiment("tables")


def test_what_the_paper_measured_are_multiples_of_one_in_128():
    """Except for quoted numbers: a mistake in copying a number would show here."""
    measured = [value for row in table_batch.PAPER.values() for value in row.values()]
    measured += [v for (key, _), row in classification.PAPER.items() if key != "infomax" for v in row.values()]
    measured += [*ablation.PAPER.values(), *mnist_dml.PAPER.values()]
    for value in measured:
        assert abs(value / 100 * 128 - round(value / 100 * 128)) < 0.01, value


def test_the_ablation_has_the_papers_42_draws_for_each_scaling():
    cells = [cell for cell in ablation.runs("paper", None) if cell.method == "mim"]
    for scales in ((1,), (1, 2)):
        settings = [cell.training for cell in cells if cell.training["scales"] == scales]
        assert len(settings) == 42
        assert sum(setting["alpha"] == 0 for setting in settings) == 5
        assert sum(setting["beta"] == 0 for setting in settings) == 5
        assert max(setting["alpha"] for setting in settings) <= 10
        assert 4 < max(setting["beta"] for setting in settings) <= 5
    assert cells[0].config().microbatch_size == 500
    assert cells[0].config().batch_size == 2000


def test_other_figures_look_at_the_runs_of_the_ablation():
    keys = {run.key for run in ablation.runs("smoke", None)}
    convergence, versions = fig_convergence.runs("smoke", None), fig_v1_v2.runs("smoke", None)
    assert {run.key for run in convergence} < keys
    assert {run.key for run in versions if run.training["version"] == 2} < keys
    first = [run.training for run in versions if run.training["version"] == 1]
    second = [run.training for run in versions if run.training["version"] == 2]
    assert [{**t, "version": 2} for t in first] == second


def test_no_exact_run_where_a_batch_is_one_minibatch():
    cells = table_batch.runs("paper", 1)
    assert len(cells) == 16 + 16 + 13
    assert all(cell.training["microbatch_size"] <= cell.training["batch_size"] for cell in cells)


def test_data_sets_that_are_not_here_are_left_out(monkeypatch):
    monkeypatch.setattr(classification, "present", lambda names: ("stl10",))
    runs = classification.runs("laptop", 1)
    assert {run.test.name for run in runs} == {"cifar10", "stl10"}
    learns = {run.method: run.learn.split for run in runs if run.test.name == "stl10"}
    assert learns == {**dict.fromkeys(("random", "rotation", "infomax", "mim"), "unlabeled"), "supervised": "train"}
    monkeypatch.setattr(classification, "present", lambda names: ("cifar100",))
    mim = [run for run in classification.runs("paper", 1) if run.method == "mim" and run.test.name == "cifar100"]
    assert {run.learn.name for run in mim} == {"cifar10"}  # the paper's encoder for CIFAR-100
    assert len(mim) == 5  # two learning rates, two weight decays, and the authors' settings


def test_the_authors_settings_learn_from_all_images_and_leave_the_other_runs_as_they_are():
    (authors,) = [run for run in classification.runs("laptop", 1) if "alpha=4 beta=2" in run.label]
    config = authors.config()
    assert (len(authors.learn), len(authors.train)) == (50_000, 10_000)
    assert (config.batch_size, config.microbatch_size, config.learning_rate) == (4000, 500, 1e-3)
    assert (config.alpha, config.beta, config.scales, config.smooth_fraction) == (4.0, 2.0, (1, 2), 1.0)
    others = [run for run in classification.runs("laptop", 1) if run is not authors]
    assert {len(run.learn) for run in others if run.key != authors.key} == {10_000}


def test_an_objective_times_a_factor_is_that_often_the_objective():
    logits = torch.randn(9, 4, dtype=torch.float64)
    objective = DML(alpha=0.4)
    torch.testing.assert_close(labeling_runs.Scaled(objective, 10.0)(logits), 10.0 * objective(logits))


def test_a_source_is_a_part_of_a_data_set(monkeypatch, tmp_path):
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path))
    source = Source("digits", "test", 30, 24)
    assert present(["digits"]) == ()
    images = source.load()
    assert present(["digits"]) == ("digits",)
    assert (len(images), images.source.shape, len(images.labels)) == (30, (24, 24, 1), 30)
    assert (len(source), source.shape) == (30, (24, 24, 1))
    assert len(Source("mnist", "train", 70_000)) == 60_000
    made_up = Source("cifar10").made_up(8)
    assert (len(made_up), made_up.source.shape) == (8, (32, 32, 3))


def test_images_are_trained_with_channels_last_in_memory_and_give_the_same_network():
    x = torch.randn(12, 1, 24, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    config = network_training.NetworkConfig(6, epochs=1, microbatch_size=6)
    trained = []
    for dimensions in (network_training.IMAGES, None):
        with pytest.MonkeyPatch.context() as patch, seeded_globally(0):
            patch.setattr(network_training, "IMAGES", dimensions)
            trained.append(network_training.train_network(labeling_network(width=0.2).double(), DML(), x, config))
    fast, slow = trained
    assert fast[0].conv2.weight.is_contiguous(memory_format=torch.channels_last)
    assert not slow[0].conv2.weight.is_contiguous(memory_format=torch.channels_last)
    torch.testing.assert_close(network_training.outputs(fast, x), network_training.outputs(slow, x), atol=1e-7, rtol=0)
