"""`neuralbayes label --reject`: outliers get the label -1, in tables, texts and images."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes as nb
from neuralbayes.cli import label_model, main
from neuralbayes.data.tables import read_table
from neuralbayes.plot import StateMapDisplay

OUTLIERS = [3, 11]


def blobs(n, odd=OUTLIERS):
    """Rows of two clusters, some of them far away from both."""
    rows = np.random.default_rng(0).normal(size=(n, 2)) + 8.0 * (np.arange(n) % 2)[:, None]
    rows[list(odd)] = [[500.0, -500.0]]
    return pd.DataFrame(rows, columns=["a", "b"])


def said(capsys):
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, " ".join(captured.err.split())


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    nb.InformationClusterer(2, max_iter=40, random_state=0).fit(blobs(600, ())).save(folder)
    return folder


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def test_a_table_gets_its_typicality_and_outliers_are_no_cluster(capsys):
    blobs(600).to_csv("data.csv", index=False)
    assert main(["label", "data.csv", "-k", "2", "--reject", "0.01"]) == 0
    out = said(capsys)[0]
    table = pd.read_csv("data-labels.csv")
    assert list(table) == ["a", "b", "label", "p_0", "p_1", "typicality"]
    np.testing.assert_array_equal(table["label"] == -1, table["typicality"] <= 0.01)
    assert (table["label"][OUTLIERS] == -1).all()
    n = int((table["label"] == -1).sum())
    assert 2 <= n <= 20
    assert f"{n} of 600 rows ({n / 6:.1f} %) are outliers and have the label -1" in out
    assert "certified" not in out  # manifolds would have no typicality
    with Image.open("data-labels.png") as picture:
        assert picture.width > 500
    again = read_table("data-labels.csv")
    assert again.feature_names == ["a", "b"]
    assert "typicality" in again.ignored


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_model_rejects_what_the_estimator_rejects(suffix, model, capsys, monkeypatch):
    monkeypatch.setattr(label_model, "BLOCK_ROWS", 30)
    new = blobs(100)
    if suffix == ".parquet":
        new.to_parquet("new.parquet", row_group_size=20)
    else:
        new.to_csv("new.csv", index=False)
    file = "new.parquet" if suffix == ".parquet" else "new.csv"
    words = ["label", file, "--model", str(model), "--reject", "0.05", "--out", f"out{suffix}", "--json"]
    assert main(words) == 0
    summary = json.loads(said(capsys)[0])
    estimator = nb.load(model)
    labels, typicality = estimator.predict(new, reject=0.05), estimator.typicality(new)
    if suffix == ".npz":
        with np.load("out.npz") as arrays:
            found = {name: arrays[name] for name in ("labels", "probabilities", "typicality")}
        assert found["probabilities"].shape == (100, 2)
    else:
        table = pd.read_csv("out.csv") if suffix == ".csv" else pd.read_parquet("out.parquet")
        assert list(table) == ["a", "b", "label", "p_0", "p_1", "typicality"]
        found = {"labels": table["label"], "typicality": table["typicality"]}
    np.testing.assert_array_equal(found["labels"], labels)
    np.testing.assert_allclose(found["typicality"], typicality, rtol=1e-12)
    assert summary["rows"] == 100
    assert summary["rejected"] == (labels == -1).sum() >= 2
    assert [state["rows"] for state in summary["states"]] == [(labels == k).sum() for k in range(2)]
    assert summary["picture"] == "out.png"


def test_the_picture_leaves_outliers_out_and_says_so(model, monkeypatch):
    drawn = []
    plot = StateMapDisplay.plot
    monkeypatch.setattr(StateMapDisplay, "plot", lambda self, **how: drawn.append((self, how)) or plot(self, **how))
    blobs(100).to_csv("new.csv", index=False)
    for level in ("0.05", "0.0067"):  # the second is just above the smallest typicality
        assert main(["label", "new.csv", "--model", str(model), "--reject", level, "--force", "--quiet"]) == 0
        display, how = drawn.pop()
        n = int((pd.read_csv("new-labels.csv")["label"] == -1).sum())
        assert how["title"] == f"new.csv, without {n} outliers"
        assert len(display.points) == 100 - n
        assert np.abs(display.points).max() < 100


def test_nothing_but_outliers_is_labelled_without_a_picture(model, capsys):
    blobs(20, range(20)).to_csv("new.csv", index=False)
    assert main(["label", "new.csv", "--model", str(model), "--reject", "0.05"]) == 0
    out, err = said(capsys)
    assert "20 of 20 rows (100.0 %) are outliers" in out
    assert "No picture was drawn (ValueError: all rows are outliers)" in err
    assert (pd.read_csv("new-labels.csv")["label"] == -1).all()


def test_texts_are_rejected_by_their_features(capsys):
    frame = blobs(400)
    np.save("features.npy", frame.to_numpy())
    pd.DataFrame({"body": [f"word{i % 2}" for i in range(400)]}).to_csv("texts.csv", index=False)
    words = ["label", "texts.csv", "--text", "body", "--features", "features.npy", "-k", "2", "--reject", "0.05"]
    assert main([*words, "--no-picture"]) == 0
    assert "are outliers" in said(capsys)[0]
    table = pd.read_csv("texts-labels.csv")
    assert list(table) == ["body", "label", "p_0", "p_1", "typicality"]
    assert (table["label"][OUTLIERS] == -1).all()


def test_a_level_that_the_rows_cannot_support_is_refused(capsys):
    blobs(60, ()).to_csv("data.csv", index=False)
    assert main(["label", "data.csv", "-k", "2", "--reject", "0.01", "--no-picture"]) == 2
    assert "reject" in said(capsys)[1]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--reject", "0"], "--reject must be between 0 and 1, such as 0.01, got 0"),
        (["--reject", "1.5"], "--reject must be between 0 and 1, such as 0.01, got 1.5"),
        (["--reject", "nan"], "--reject must be between 0 and 1, such as 0.01, got nan"),
        (["--reject", "0.1", "--method", "manifolds"], "--reject needs --method information"),
    ],
)
def test_levels_and_methods_that_do_not_fit_are_refused_first(words, reason, capsys):
    assert main(["label", "missing.csv", *words]) == 2
    assert reason in said(capsys)[1]


def test_a_model_without_typicality_is_refused(tmp_path, capsys):
    nb.ManifoldLabeler(2, n_init=1, max_iter=5, random_state=0).fit(blobs(60, ())).save("manifolds")
    blobs(10, ()).to_csv("new.csv", index=False)
    assert main(["label", "new.csv", "--model", "manifolds", "--reject", "0.05"]) == 2
    assert "--reject needs a model of --method information, got a ManifoldLabeler" in said(capsys)[1]
    assert {path.name for path in tmp_path.iterdir()} == {"manifolds", "new.csv"}


def test_equal_rows_have_no_outliers(capsys):
    pd.DataFrame({"a": [1.0] * 30}).to_csv("data.csv", index=False)
    assert main(["label", "data.csv", "--reject", "0.05"]) == 2
    assert "one cluster without outliers" in said(capsys)[1]


def test_pictures_unlike_the_others_go_to_a_folder_of_their_own(tmp_path, capsys):
    digits = nb.datasets.load("digits").train
    nb.InformationClusterer(3, max_iter=100, random_state=0).fit(digits.images[:200]).save("model")
    folder = tmp_path / "pictures"
    folder.mkdir()
    noise = np.random.default_rng(0).integers(0, 256, (8, 8), np.uint8)
    for i in range(12):
        Image.fromarray(noise if i in OUTLIERS else digits.images[i, :, :, 0]).save(folder / f"{i:02}.png")
    words = ["label", "pictures", "--model", "model", "--reject", "0.05", "--sort-into", "sorted"]
    assert main(words) == 0
    out = said(capsys)[0]
    table = pd.read_csv("pictures-labels.csv")
    assert list(table) == ["index", "path", "label", "p_0", "p_1", "p_2", "typicality"]
    assert (table["label"][OUTLIERS] == -1).all()
    n = int((table["label"] == -1).sum())
    assert f"{n} of 12 images" in out
    assert sum(1 for _ in (tmp_path / "sorted" / "outliers").iterdir()) == n
    assert (tmp_path / "pictures-labels.png").exists()
