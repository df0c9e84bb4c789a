"""`neuralbayes label --model` in blocks: interrupted or with workers, its output is the same as that of one process."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import neuralbayes as nb
from neuralbayes import ManifoldLabeler
from neuralbayes.cli import label_images, label_model, main
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


def save_table(path, n):
    if path.suffix == ".npy":
        np.save(path, points(n).astype(np.float32))
    elif path.suffix == ".parquet":
        frame(n).to_parquet(path, row_group_size=max(40, n // 10))
    else:
        frame(n).to_csv(path, index=False)
    return path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("neuralbayes.cli.label_model.BLOCK_ROWS", 80)


def interrupt(monkeypatch, words, block, where=label_model, what="label_block"):
    """Start the job, and interrupt it at its n-th block."""
    compute, seen = getattr(where, what), []

    def broken(estimator, piece):
        seen.append(len(piece))
        if len(seen) > block:
            raise KeyboardInterrupt
        return compute(estimator, piece)

    with monkeypatch.context() as patch:
        patch.setattr(where, what, broken)
        assert main(words) == 130


@pytest.fixture(params=["csv", "parquet", "npy"])
def table(request, tmp_path):
    return save_table(tmp_path / f"new.{request.param}", N)


def outputs(table, model, name, *options):
    out = table.with_name(f"{name}{table.suffix}")
    return out, ["label", str(table), "--model", str(model), "--out", str(out), "--no-picture", *options]


def test_workers_write_the_table_of_one_process(capsys, table, model, scheduler):
    whole, words = outputs(table, model, "whole")
    assert main(words) == 0
    summary = said(capsys)[0]
    out, words = outputs(table, model, "out", "--scheduler", scheduler)
    assert main(words) == 0
    assert said(capsys)[0].replace(str(out), str(whole)) == summary
    assert out.read_bytes() == whole.read_bytes()
    assert {path.name for path in table.parent.iterdir()} == {table.name, whole.name, out.name}


def test_an_interrupted_command_gives_what_the_estimator_gives(capsys, table, model, monkeypatch):
    out, words = outputs(table, model, "out", "--quiet")
    interrupt(monkeypatch, words, 2)
    assert "finished blocks are kept in" in said(capsys)[1]
    assert main(words) == 0
    whole, words = outputs(table, model, "whole", "--quiet")
    monkeypatch.setattr(label_model, "BLOCK_ROWS", 1000)  # in one block
    assert main(words) == 0
    if table.suffix == ".parquet":  # its row groups have another size
        pd.testing.assert_frame_equal(pd.read_parquet(out), pd.read_parquet(whole))
    else:
        assert out.read_bytes() == whole.read_bytes()


def test_the_number_of_threads_changes_nothing(tmp_path, model):
    table = save_table(tmp_path / "new.npy", 7)
    threads = torch.get_num_threads()
    try:
        for number in (1, 4):
            torch.set_num_threads(number)
            out = tmp_path / f"{number}.npz"
            assert main(["label", str(table), "--model", str(model), "--out", str(out), "--no-picture", "--quiet"]) == 0
    finally:
        torch.set_num_threads(threads)
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "4.npz").read_bytes()


def test_a_changed_table_is_another_job(capsys, tmp_path, model, monkeypatch):
    table = save_table(tmp_path / "new.csv", N)
    out, words = outputs(table, model, "out", "--quiet")
    interrupt(monkeypatch, words, 2)
    said(capsys)
    save_table(table, N + 1)
    assert main(words) == 2
    assert "out.csv.parts holds blocks of another job (file has changed, rows was 250" in said(capsys)[1]
    assert main([*words, "--force"]) == 0
    assert len(pd.read_csv(out)) == N + 1


def test_workers_are_for_a_saved_model(capsys, tmp_path):
    table = save_table(tmp_path / "new.csv", 20)
    assert main(["label", str(table), "--scheduler", "tcp://node0:8786"]) == 2
    assert "--workers and --scheduler are for labelling with --model" in said(capsys)[1]


def parquet_folder(folder, n_files=3):
    folder.mkdir()
    for i in range(n_files):
        rows = frame(N).iloc[i * N // n_files : (i + 1) * N // n_files].reset_index(drop=True)
        rows.to_parquet(folder / f"{i}.parquet", row_group_size=20)
    (folder / "_SUCCESS").touch()
    return folder


def test_a_folder_of_parquet_files_is_labelled_by_groups_of_rows(capsys, tmp_path, model, scheduler, monkeypatch):
    folder = parquet_folder(tmp_path / "rows")
    words = ["label", str(folder), "--model", str(model)]
    with monkeypatch.context() as patch:
        patch.setattr("neuralbayes.data.table_sources.read_groups", None)  # reads a whole file
        assert main([*words, "--scheduler", scheduler]) == 0
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
    out, words = outputs(tmp_path / "new.parquet", model, "out", "--quiet")
    assert main(words) == 0
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


def test_images_are_labelled_by_workers_as_by_one_process(capsys, tmp_path, scheduler, monkeypatch):
    monkeypatch.setattr("neuralbayes.clusters.points.BLOCK", 30)
    monkeypatch.chdir(tmp_path)
    assert main(["label", "digits", "--limit", "100", "-k", "2", "--save", "model", "--no-picture", "--quiet"]) == 0
    words = ["label", "digits", "--limit", "100", "--model", "model", "--no-picture", "--quiet", "--out"]
    assert main([*words, "whole.csv"]) == 0
    interrupt(monkeypatch, [*words, "out.csv"], 2, label_images, "probabilities")
    assert len(list((tmp_path / "out.csv.parts").glob("block-*"))) == 2
    assert main([*words, "out.csv", "--scheduler", scheduler]) == 0
    found, whole = (pd.read_csv(tmp_path / name) for name in ("out.csv", "whole.csv"))
    pd.testing.assert_frame_equal(found, whole, check_exact=True)
    assert not (tmp_path / "out.csv.parts").exists()


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_two_workers_label_300000_rows_as_one_does(tmp_path, model, suffix):
    table = save_table(tmp_path / f"new.{suffix}", 300_001)
    files = []
    for workers in ("1", "2"):
        out, words = outputs(table, model, workers, "--quiet", "--workers", workers)
        subprocess.run([sys.executable, "-m", "neuralbayes", *words], check=True)
        files.append(out.read_bytes())
    assert files[0] == files[1]
    assert len(list(tmp_path.iterdir())) == 3
