"""`neuralbayes label --model` on Parquet files and folders, one block of rows at a time."""

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import neuralbayes as nb
from neuralbayes import ManifoldLabeler
from neuralbayes.cli import main
from neuralbayes.data.tables import read_table

N = 250  # number of rows, in blocks of 80


def said(capsys):
    captured = capsys.readouterr()
    return captured.out, " ".join(captured.err.split())


def points(n):
    return np.random.default_rng(0).normal(size=(n, 2)) * 0.3 + 6.0 * (np.arange(n) % 2)[:, None]


def frame(n):
    return pd.DataFrame(points(n), columns=["a", "b"]).assign(name=[f"r{i}" for i in range(n)])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    ManifoldLabeler(2, n_init=2, max_iter=20, random_state=0).fit(frame(300)[["a", "b"]]).save(folder)
    return folder


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("neuralbayes.cli.label_model.BLOCK_ROWS", 80)


def parquet_folder(folder, n_files=3):
    folder.mkdir()
    for i in range(n_files):
        rows = frame(N).iloc[i * N // n_files : (i + 1) * N // n_files].reset_index(drop=True)
        rows.to_parquet(folder / f"{i}.parquet", row_group_size=20)
    (folder / "_SUCCESS").touch()
    return folder


def test_a_folder_of_parquet_files_is_labelled_by_groups_of_rows(capsys, tmp_path, model, monkeypatch):
    folder = parquet_folder(tmp_path / "rows")
    words = ["label", str(folder), "--model", str(model)]
    with monkeypatch.context() as patch:
        patch.setattr("neuralbayes.data.table_sources.read_groups", None)  # reads a whole file
        assert main(words) == 0
    assert "rows: 250 rows" in said(capsys)[0]
    labelled = pd.read_parquet(tmp_path / "rows-labels.parquet")
    pd.testing.assert_frame_equal(labelled[["a", "b", "name"]], frame(N))
    expected = nb.load(model).predict_proba(frame(N)[["a", "b"]])
    np.testing.assert_allclose(labelled[["p_0", "p_1"]], expected, rtol=1e-6)
    np.testing.assert_array_equal(labelled["label"], expected.argmax(axis=1))
    groups = pq.ParquetFile(tmp_path / "rows-labels.parquet").metadata
    assert [groups.row_group(g).num_rows for g in range(groups.num_row_groups)] == [80, 3, 80, 3, 80, 4]
    assert {path.name for path in tmp_path.iterdir()} == {"rows", "rows-labels.parquet", "rows-labels.png"}
    assert read_table(tmp_path / "rows-labels.parquet").feature_names == ["a", "b"]  # labels are not features


def test_parquet_keeps_its_index_marks_and_types(tmp_path, model):
    kept = frame(N).assign(when=pd.date_range("2020", periods=N), kind=pd.Categorical(["x", "y"] * 125))
    kept = kept.assign(label=1).set_index("name")
    kept.attrs = {"unit": "cm"}
    kept.to_parquet(tmp_path / "new.parquet", row_group_size=100)
    out = tmp_path / "out.parquet"
    words = ["label", str(tmp_path / "new.parquet"), "--model", str(model), "--out", str(out)]
    assert main([*words, "--no-picture", "--quiet"]) == 0
    labelled = pd.read_parquet(out)
    pd.testing.assert_frame_equal(labelled[list(kept)], kept)
    assert list(labelled)[-3:] == ["label_1", "p_0_1", "p_1_1"]
    assert labelled.attrs == {"unit": "cm", "neuralbayes": {"label": ["label_1", "p_0_1", "p_1_1"]}}


def with_a_gap(folder):
    rows = pd.read_parquet(folder / "2.parquet")
    rows.loc[82, "b"] = np.nan
    rows.to_parquet(folder / "2.parquet", row_group_size=20)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda folder: pd.DataFrame({"a": [1.0]}).to_parquet(folder / "3.parquet"), [], "has other columns than"),
        (lambda folder: (folder / "3.parquet").write_bytes(b"PAR1"), [], "is not a valid Parquet file"),
        (
            with_a_gap,
            [],
            "infinity, in column 'b': 1 value, the first in row 83",
        ),
        (lambda folder: None, ["--out", "labels.csv"], "needs an --out that ends in .parquet"),
        (lambda folder: None, ["--columns", "a"], "was trained on the columns a, b; leave --columns out"),
    ],
)
def test_a_folder_that_cannot_be_labelled_is_refused(capsys, tmp_path, model, monkeypatch, change, options, message):
    monkeypatch.chdir(tmp_path)
    change(parquet_folder(tmp_path / "rows"))
    assert main(["label", "rows", "--model", str(model), "--no-picture", *options]) == 2
    assert message in said(capsys)[1]


def test_a_folder_of_parquet_files_is_trained_on_as_a_whole(tmp_path):
    folder = parquet_folder(tmp_path / "rows")
    assert main(["label", str(folder), "--clusters", "2", "--method", "manifolds", "--no-picture", "--quiet"]) == 0
    before = pd.concat([pd.read_parquet(file) for file in sorted(folder.glob("*.parquet"))], ignore_index=True)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "rows-labels.parquet")[list(before)], before)


def test_a_model_without_names_needs_columns_for_a_folder(capsys, tmp_path):
    ManifoldLabeler(2, n_init=2, max_iter=20, random_state=0).fit(points(300)).save(tmp_path / "plain")
    words = ["label", str(parquet_folder(tmp_path / "rows")), "--model", str(tmp_path / "plain"), "--no-picture"]
    assert main(words) == 2
    assert "needs --columns, because the model has no column names" in said(capsys)[1]
    assert main([*words, "--columns", "a,b", "--quiet"]) == 0
