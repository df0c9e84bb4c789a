"""`neuralbayes cluster`, `predict` and `report`: what they write, print and refuse."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb
from conftest import customers, pictures
from neuralbayes.system.limits import limited_memory


def labels_of(path):
    return pd.read_csv(path)["cluster"].to_numpy()


def test_cluster_writes_labels_a_page_and_a_model_and_says_what_comes_next(run, table, tmp_path):
    out = tmp_path / "out"
    found = run("cluster", table, "-k", "3", "--describe", "group", "--out", out)
    assert found.code == 0
    assert sorted(path.name for path in out.iterdir()) == ["labels.csv", "model", "report.html"]
    frame = pd.read_csv(out / "labels.csv")
    assert list(frame.columns[:7]) == list(customers().columns)
    assert {"cluster", "name", "probability"} <= set(frame)
    assert (pd.crosstab(frame["plan"], frame["cluster"]).max(axis=1) == 30).all()
    for words in ("customers.csv: 90 rows", "left out: constant", "left out: id", "33.3 %", *frame["name"].unique()):
        assert words in found.out
    assert f"neuralbayes predict {out} NEW_DATA" in found.out
    assert found.err == ""


@pytest.mark.parametrize("suffix", [".CSV", ".csv.gz", ".parquet"])
def test_an_out_that_is_a_table_gets_the_labels_alone(run, table, tmp_path, suffix):
    out = tmp_path / f"labels{suffix}"
    assert run("cluster", table, "--clusters", "3", "-o", out, "--quiet").code == 0
    assert list(tmp_path.iterdir()) == [out]
    assert "cluster" in (pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out))


def test_json_is_the_summary_with_the_files(run, table, tmp_path):
    found = run("cluster", table, "-k", "3", "--known", "group", "--reject", "0.05", "--json", "--out", tmp_path / "o")
    summary = json.loads(found.out)
    assert summary["n_clusters"] == len(summary["clusters"]) == 3
    assert summary["rejected"] >= 0
    assert {"verdict", "sentence", "stability", "columns", "notes"} <= summary.keys()
    assert summary["files"] == [str(tmp_path / "o" / name) for name in ("model", "labels.csv", "report.html")]
    assert labels_of(tmp_path / "o" / "labels.csv").min() >= -1


def test_columns_kinds_and_methods_are_those_of_the_library(run, table, tmp_path):
    words = ["--columns", "age,income,plan", "--kind", "plan=ignore", "--kind", "age=number", "--method", "information"]
    found = run("cluster", table, "-k", "2", *words, "--device", "cpu", "--json", "--out", tmp_path / "a.csv")
    used = [column["name"] for column in json.loads(found.out)["columns"] if column["used"]]
    assert used == ["age", "income"]
    assert run("cluster", table, "--method", "manifolds", "--json", "--out", tmp_path / "b.csv").code in (0, 2)


def test_files_are_read_as_asked(run, tmp_path):
    frame = customers()
    frame.to_csv(tmp_path / "a.txt", index=False, sep=";", decimal=",", encoding="utf-16")
    words = ["--read", "sep=;", "--read", "decimal=,", "--read", "encoding=utf-16"]
    assert run("cluster", tmp_path / "a.txt", "-k", "3", *words, "--out", tmp_path / "a.csv", "--quiet").code == 0
    with pd.ExcelWriter(tmp_path / "b.xlsx") as book:
        customers(seed=9).head(30).to_excel(book, sheet_name="first", index=False)
        frame.to_excel(book, sheet_name="second", index=False)
    out = tmp_path / "b.csv"
    assert run("cluster", tmp_path / "b.xlsx", "-k", "3", "--read", "sheet=second", "-o", out, "--quiet").code == 0
    assert (labels_of(out) == labels_of(tmp_path / "a.csv")).all()


def test_standard_input_is_a_table(run, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stdin = SimpleNamespace(isatty=lambda: False, buffer=io.BytesIO(table.read_bytes()))
    monkeypatch.setattr("neuralbayes.cli.files.sys", SimpleNamespace(stdin=stdin))
    assert run("cluster", "-", "-k", "3", "--quiet").code == 0
    assert len(labels_of(tmp_path / "standard-input-clusters" / "labels.csv")) == 90
    stdin.isatty = lambda: True
    assert "nothing is piped into it" in run("cluster", "-").err


def test_only_its_own_folder_is_overwritten_without_force(run, table, tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "thesis.txt").write_text("mine")
    assert "is not a model of neuralbayes" in run("cluster", table, "--out", tmp_path, "--force").err
    assert [path.name for path in tmp_path.rglob("*")] == ["model", "thesis.txt"]
    words = ["cluster", table, "-k", "3", "--quiet", "--out", tmp_path / "o"]
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "notes.md").write_text("mine")
    (tmp_path / "o" / "labels.csv").write_text("mine")
    assert "labels.csv exists already; replace it with --force" in run(*words).err
    assert run(*words, "--force").code == 0
    assert run(*words).code == 0  # which it wrote itself
    assert (tmp_path / "o" / "notes.md").read_text() == "mine"
    (tmp_path / "o" / "model" / "names.json").write_text('{"0": "mine"}')
    assert run(*words).code == 2
    assert run(*words, "--force").code == 0
    assert not (tmp_path / "o" / "model" / "names.json").exists()
    assert run(*words[:-1], tmp_path / "o" / "labels.csv").code == 2
    assert "is the input itself" in run(*words[:-1], table).err
    assert "is a file; choose a folder" in run(*words[:-1], tmp_path / "o" / "notes.md").err


def test_names_of_columns_and_cells_are_printed_without_escape_sequences(run, tmp_path):
    frame = customers().rename(columns={"plan": "pl\x1b]0;x\x07an"})
    frame.to_csv(tmp_path / "a.csv", index=False)
    found = run("cluster", tmp_path / "a.csv", "-k", "3")
    assert found.code == 0
    assert not {"\x1b", "\x07"} & set(found.out + found.err)


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """A table as CSV and Parquet, pictures and texts, with options of Python and of the command line."""
    folder = tmp_path_factory.mktemp("cases")
    customers().to_csv(folder / "rows.csv", index=False)
    customers().to_parquet(folder / "rows.parquet", index=False)
    np.savez(folder / "pictures.npz", images=pictures(60)[0])
    words = ("red wine bottle", "blue sky cloud", "green grass field")
    (folder / "texts.txt").write_text("".join(f"{words[i % 3]} {i}\n" for i in range(60)))
    (folder / "mine.py").write_text(
        "import numpy as np\ndef letters(texts):\n"
        "    return np.array([[t.count(c) for c in 'abcdefghijklmnopqrstuvwxyz'] for t in texts], float)\n"
        "def halves(images):\n"
        "    return np.stack([part.mean((1, 2, 3)) for part in np.split(images, 2, axis=2)], axis=1)\n"
    )
    return folder


@pytest.mark.parametrize(
    ("name", "features"),
    [("rows.csv", "auto"), ("rows.parquet", "auto"), ("pictures.npz", "halves"), ("texts.txt", "letters")],
)
def test_python_and_the_command_line_give_the_same_labels(run, cases, tmp_path, name, features):
    features = features if features == "auto" else f"{cases}/mine.py:{features}"
    expected = nb.cluster(str(cases / name), 2, features=features, random_state=5)
    words = ["--features", features, "--seed", "5", "--quiet", "--out", tmp_path / "out"]
    assert run("cluster", cases / name, "-k", "2", *words).code == 0
    assert (labels_of(tmp_path / "out" / "labels.csv") == expected.labels).all()
    again = ["--features", features] if features != "auto" else []
    assert run("predict", tmp_path / "out", cases / name, "--out", tmp_path / "p.csv", *again, "--quiet").code == 0
    assert (labels_of(tmp_path / "p.csv") == expected.labels).all()
    if again:  # a model cannot name code
        assert "--features must be given again" in run("predict", tmp_path / "out", cases / name, "--force").err


def test_a_column_of_texts_is_clustered(run, cases, tmp_path):
    pd.DataFrame({"id": range(60), "body": (cases / "texts.txt").read_text().splitlines()}).to_csv(tmp_path / "t.csv")
    words = ["--text", "body", "--features", f"{cases}/mine.py:letters", "--out", tmp_path / "o.csv", "--quiet"]
    assert run("cluster", tmp_path / "t.csv", "-k", "3", *words).code == 0
    assert pd.crosstab(labels_of(tmp_path / "o.csv"), np.arange(60) % 3).max(axis=1).sum() == 60


def test_predict_labels_new_rows_beside_them(run, clustered, tmp_path):
    new = tmp_path / "new.csv"
    customers(40, seed=1).to_csv(new, index=False)
    found = run("predict", clustered, new)
    assert (found.code, found.out.strip()) == (0, f"40 samples labelled: {tmp_path / 'new-labels.csv'}")
    first = pd.read_csv(tmp_path / "new-labels.csv")
    assert {"cluster", "name", "probability"} <= set(first)
    assert "exists already" in run("predict", clustered / "model", new).err
    assert run("predict", clustered / "model", new, "--force", "--quiet").out == ""
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "new-labels.csv"), first)


def test_predict_rejects_outliers(run, table, tmp_path):
    words = ["cluster", table, "-k", "3", "--method", "information", "--quiet", "--out", tmp_path / "o"]
    assert run(*words).code == 0
    far = customers(60)
    far.loc[0, ["age", "income", "visits"]] = 1e4
    far.to_csv(tmp_path / "far.csv", index=False)
    out = tmp_path / "far.parquet"
    assert run("predict", tmp_path / "o", tmp_path / "far.csv", "--reject", "0.05", "--out", out).code == 0
    assert pd.read_parquet(out)["cluster"][0] == -1


def test_report_needs_the_data_and_shows_what_the_model_remembers(run, clustered, table, tmp_path):
    found = run("report", clustered)
    assert found.code == 2
    assert f"neuralbayes report {clustered} {table}" in found.err
    assert run("report", clustered, table).code == 0  # over its own page
    out = tmp_path / "page.html"
    assert run("report", clustered / "model", table, "--out", out, "--quiet").out == ""
    assert "exists already" in run("report", clustered, table, "--out", out).err
    assert run("report", clustered, table, "--out", out, "--force").code == 0


def test_what_a_model_remembers_is_not_opened(run, clustered, table, tmp_path):
    source = json.loads((clustered / "model" / "model.json").read_text())
    source["about"]["recipe"]["data"] = str(tmp_path / "no\x1bwhere")
    folder = tmp_path / "model"
    folder.mkdir()
    for path in (clustered / "model").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "model.json").write_text(json.dumps(source))
    found = run("report", folder)
    assert "opens no file by itself" in found.err
    assert "\x1b" not in found.err


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # in Dask
def test_a_parquet_folder_is_labelled_in_parts(run, clustered, tmp_path):
    pytest.importorskip("dask.dataframe")
    (tmp_path / "in").mkdir()
    frame = customers(60, seed=2)
    frame.to_parquet(tmp_path / "in" / "a.parquet", index=False)
    assert run("predict", clustered, tmp_path / "in").code == 0
    found = pd.read_parquet(tmp_path / "in-labels")
    expected = nb.load(clustered / "model").on(frame)
    assert (found["cluster"] == expected.labels).all()
    assert "exists already" in run("predict", clustered, tmp_path / "in", "--force").err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "in-labels"]
    assert run("predict", clustered, tmp_path / "in", "--out", tmp_path / "one.csv").code == 0
    assert (labels_of(tmp_path / "one.csv") == expected.labels).all()


def test_dask_is_named_where_it_is_missing(run, clustered, tmp_path, monkeypatch):
    (tmp_path / "in").mkdir()
    customers().to_parquet(tmp_path / "in" / "a.parquet")
    monkeypatch.setitem(__import__("sys").modules, "dask.dataframe", None)
    assert "pip install 'neuralbayes[cluster]'" in run("predict", clustered, tmp_path / "in").err


def test_memory_is_limited_while_a_command_works(run, table, tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def greedy(*args, **options):
        assert resource.getrlimit(resource.RLIMIT_DATA)[0] > 0
        return np.ones(2**46 // 8)

    monkeypatch.setattr(nb, "cluster", greedy, raising=False)
    found = run("cluster", table, "--out", tmp_path / "out")
    assert found.code == 2
    assert "out of memory" in found.err
    assert list(tmp_path.iterdir()) == []
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    with limited_memory("rows.csv"):
        assert np.ones(1000).sum() == 1000
