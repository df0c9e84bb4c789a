"""`neuralbayes label` with the real estimator, on two well separated blobs."""

import json

import numpy as np
import pandas as pd
import pytest

import neuralbayes
from neuralbayes.cli import main

pytest.importorskip("neuralbayes.estimators.manifold_labeler")


@pytest.fixture(scope="module")
def blobs(tmp_path_factory):
    """A table of 200 points in two blobs, labelled once; returns its model and the true labels too."""
    folder = tmp_path_factory.mktemp("blobs")
    truth = np.arange(200) % 2
    points = np.random.default_rng(0).normal(size=(200, 2)) * 0.3 + 6.0 * truth[:, None]
    pd.DataFrame(points, columns=["a", "b"]).to_csv(folder / "blobs.csv", index=False)
    words = ["label", str(folder / "blobs.csv"), "--clusters", "2", "--save", str(folder / "model"), "--quiet"]
    assert main(words) == 0
    return folder, truth


def agreement(labels, truth):
    right = float(np.mean(np.asarray(labels) == truth))
    return max(right, 1.0 - right)  # states have no order


def test_every_point_gets_the_label_of_its_blob(blobs):
    folder, truth = blobs
    labelled = pd.read_csv(folder / "blobs-labels.csv")
    assert agreement(labelled["label"], truth) == 1.0
    np.testing.assert_allclose(labelled[["p_0", "p_1"]].sum(axis=1), 1.0, atol=1e-5)
    assert (labelled[["p_0", "p_1"]].to_numpy().argmax(axis=1) == labelled["label"]).all()
    assert (folder / "blobs-labels.png").stat().st_size > 1000


def test_the_saved_model_knows_its_columns_and_gives_the_same_labels(blobs, capsys):
    folder, _ = blobs
    assert list(neuralbayes.load(folder / "model").feature_names_in_) == ["a", "b"]
    words = ["label", str(folder / "blobs.csv"), "--model", str(folder / "model"), "--no-picture", "--json"]
    assert main([*words, "--out", str(folder / "again.npy")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert np.load(folder / "again.npy").tolist() == pd.read_csv(folder / "blobs-labels.csv")["label"].tolist()
    assert result["n_clusters"] == 2
    assert result["disjoint"] is True
    assert all(95 <= state["separation_percent"] <= 100 for state in result["states"])


def test_a_model_that_is_damaged_or_missing_is_an_error_in_words(blobs, capsys):
    folder, _ = blobs
    words = ["label", str(folder / "blobs.csv"), "--out", str(folder / "never.csv"), "--no-picture", "--model"]
    assert main([*words, str(folder / "nowhere")]) == 2
    assert "nowhere" in capsys.readouterr().err
    damaged = folder / "damaged"
    damaged.mkdir()
    (damaged / "model.json").write_text('{"format": 1, "estim')
    assert main([*words, str(damaged)]) == 2
    assert "model.json" in capsys.readouterr().err
    assert not (folder / "never.csv").exists()


def test_more_clusters_than_rows_is_an_error_in_words(tmp_path, capsys):
    np.save(tmp_path / "x.npy", np.eye(3))
    assert main(["label", str(tmp_path / "x.npy"), "--clusters", "5", "--no-picture"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert "Traceback" not in err
