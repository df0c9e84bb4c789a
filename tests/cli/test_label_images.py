"""`neuralbayes label` on images."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import neuralbayes as nb
from neuralbayes.cli import main
from neuralbayes.estimators import manifold_labeler


@pytest.fixture(autouse=True)
def few_steps(monkeypatch, tmp_path):
    monkeypatch.setattr(manifold_labeler, "default_steps", lambda n_samples: 20)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path):
    digits = nb.datasets.load("digits").train
    for i in range(40):
        path = tmp_path / "pictures.v2" / f"{digits.labels[i] % 2}" / f"{i:02}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(digits.images[i, :, :, 0]).save(path)
    return tmp_path / "pictures.v2"


def said(capsys):
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    return captured.out, " ".join(captured.err.split())


def test_a_folder_gets_a_table_with_paths_a_contact_sheet_and_a_model(folder, capsys, tmp_path):
    assert main(["label", str(folder), "--clusters", "3", "--save", "model"]) == 0
    table = pd.read_csv(tmp_path / "pictures.v2-labels.csv")
    assert list(table) == ["index", "path", "class", "label", "p_0", "p_1", "p_2"]
    assert len(table) == 40
    assert table["path"][0].endswith("00.png")
    assert sorted(table["class"].unique()) == [0, 1]
    np.testing.assert_allclose(table[["p_0", "p_1", "p_2"]].sum(axis=1), 1.0)
    assert (table["label"] == table[["p_0", "p_1", "p_2"]].to_numpy().argmax(axis=1)).all()
    with Image.open(tmp_path / "pictures.v2-labels.png") as picture:
        assert picture.width > 500
    assert nb.load("model").image_shape_ == [8, 8, 1]
    out, _ = said(capsys)
    assert "40 images" in out
    assert "match the classes" in out
    assert f"neuralbayes report model {folder} --open" in out


def test_a_model_labels_other_images_and_scales_them(folder, capsys, tmp_path):
    assert main(["label", "digits", "--limit", "60", "--clusters", "2", "--save", "model", "--quiet"]) == 0
    assert said(capsys) == ("", "")
    large = np.repeat(np.repeat(nb.datasets.load("digits").test.images[:9], 2, axis=1), 2, axis=2)
    np.save("large.npy", large)
    assert main(["label", "large.npy", "--model", "model", "--json", "--no-picture", "--out", "labels.npz"]) == 0
    summary = json.loads(said(capsys)[0])
    assert summary["images"] == 9
    assert summary["n_clusters"] == 2
    assert not summary["trained"]
    assert summary["agreement"] is None
    assert summary["picture"] is None
    with np.load("labels.npz") as written:
        assert written["labels"].shape == (9,)
        assert written["probabilities"].shape == (9, 2)


def test_auto_is_the_default_and_the_seed_decides(capsys):
    for name in ("a.npy", "b.npy"):
        assert main(["label", "digits", "--limit", "80", "--out", name, "--quiet", "--no-picture"]) == 0
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))


def test_a_npz_of_images_is_images_and_one_of_rows_is_a_table(capsys):
    digits = nb.datasets.load("digits").train
    np.savez("images.npz", images=digits.images[:50], labels=digits.labels[:50])
    np.savez("rows.npz", x=np.random.default_rng(0).normal(size=(30, 2)) + 9 * np.eye(2)[np.arange(30) % 2])
    assert main(["label", "images.npz", "--clusters", "2", "--no-picture"]) == 0
    assert "50 images" in said(capsys)[0]
    assert main(["label", "rows.npz", "--clusters", "2", "--no-picture"]) == 0
    assert "30 rows" in said(capsys)[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--columns", "a"], "--columns is for tables, but digits holds images"),
        (["--standardize"], "--standardize is for tables, but digits holds images"),
        (["--model", "model", "--workers", "2"], "--workers is for tables"),
        (["--limit", "0"], "--limit must be at least 1, got 0"),
        (["--clusters", "1"], "--clusters must be a whole number of at least 2"),
        (["--split", "unlabeled"], "unlabeled"),
        (["--picture", "sheet.gif"], "sheet.gif"),
        (["--out", "labels.txt"], "labels.txt must end in one of"),
        (["--model", "nothing"], "must hold a saved model"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_written(words, message, capsys, tmp_path):
    assert main(["label", "digits", *words]) == 2
    assert message in said(capsys)[1]
    assert list(tmp_path.iterdir()) == []


def test_options_of_images_are_refused_for_tables_and_models_of_rows_for_images(capsys, tmp_path):
    np.save("rows.npy", np.random.default_rng(0).normal(size=(30, 2)) + 9 * np.eye(2)[np.arange(30) % 2])
    assert main(["label", "rows.npy", "--split", "test"]) == 2
    assert "--split is for images, but rows.npy is a table" in said(capsys)[1]
    assert main(["label", "rows.npy", "--clusters", "2", "--save", "model", "--quiet", "--no-picture"]) == 0
    assert main(["label", "digits", "--model", "model"]) == 2
    assert "must hold a ManifoldLabeler of images" in said(capsys)[1]


def test_files_that_are_there_are_kept(capsys, tmp_path):
    (tmp_path / "digits-labels.csv").write_text("mine")
    assert main(["label", "digits", "--clusters", "2"]) == 2
    assert "exists already" in said(capsys)[1]
    assert (tmp_path / "digits-labels.csv").read_text() == "mine"
