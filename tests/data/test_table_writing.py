"""Columns that are written next to the original columns of a table, which stay unchanged."""

import numpy as np
import pandas as pd
import pytest
from table_files import NUMBERS, write_file

from neuralbayes.data.table_writing import write_table
from neuralbayes.data.tables import read_table


@pytest.mark.parametrize("source", [".csv", ".parquet", ".npy"])
@pytest.mark.parametrize("target", [".csv", ".tsv", ".parquet"])
def test_new_columns_are_written_beside_those_of_the_input(tmp_path, source, target):
    table = read_table(write_file(tmp_path / f"t{source}"))
    new = {"label": np.array([0, 1, 1]), "p": np.array([[1.0, 0.0], [0.25, 0.75], [0.0, 1.0]])}
    names = write_table(tmp_path / f"out{target}", new, beside=table.source)
    assert names == ["label", "p_0", "p_1"]
    written = read_table(tmp_path / f"out{target}", columns=[*table.feature_names, *names])
    np.testing.assert_array_equal(written.X, np.column_stack([NUMBERS, new["label"], new["p"]]))


def test_columns_that_were_not_used_are_written_too(tmp_path):
    np.save(tmp_path / "t.npy", NUMBERS)
    table = read_table(tmp_path / "t.npy", columns=["x1"])
    write_table(tmp_path / "out.csv", {"label": np.zeros(3, dtype=int)}, beside=table.source)
    assert list(pd.read_csv(tmp_path / "out.csv")) == ["x0", "x1", "label"]


def test_new_names_make_way_together_for_names_that_are_taken(tmp_path):
    frame = pd.DataFrame({"p_1": [1.0], "label_1": [2.0]})
    frame.to_csv(tmp_path / "t.csv", index=False)
    new = {"label": np.array([0]), "p": np.array([[0.5, 0.5]])}
    names = write_table(tmp_path / "out.csv", new, beside=read_table(tmp_path / "t.csv").source)
    assert names == ["label_2", "p_0_2", "p_1_2"]
    assert list(pd.read_csv(tmp_path / "out.csv")) == ["p_1", "label_1", *names]


def test_the_index_of_a_parquet_file_survives(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["u", "v"], name="who"))
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    write_table(tmp_path / "out.parquet", {"label": np.array([0, 1])}, beside=table.source)
    assert pd.read_parquet(tmp_path / "out.parquet").loc["v", "label"] == 1
    write_table(tmp_path / "out.csv", {"label": np.array([0, 1])}, beside=table.source)
    assert list(pd.read_csv(tmp_path / "out.csv")) == ["who", "a", "label"]


def test_arrays_are_written_without_the_input(tmp_path):
    arrays = {"labels": np.array([0, 1, 1]), "probabilities": np.eye(3)}
    assert write_table(tmp_path / "out.npz", arrays) == ["labels", "probabilities"]
    with np.load(tmp_path / "out.npz") as archive:
        np.testing.assert_array_equal(archive["probabilities"], np.eye(3))
    assert write_table(tmp_path / "out.NPY", {"labels": arrays["labels"]}) == []
    np.testing.assert_array_equal(np.load(tmp_path / "out.NPY"), arrays["labels"])
    with pytest.raises(ValueError, match=r"a \.npy file holds one array, got 2"):
        write_table(tmp_path / "two.npy", arrays)


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.npz"
    path.write_text("old")
    with pytest.raises(ValueError, match="must not hold Python objects, which would be pickled, got 'x'"):
        write_table(path, {"x": np.array([object()])})
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_cells_are_written_back_as_they_were(tmp_path):
    text = 'Zip,"the name",x,big,rate\n02750,"A, B",1.10,12345678901234567890123,1e5\n00501,,2.00,7,NA\n'
    text += '10001,"say ""x""",3.5,8,0.30\n'
    (tmp_path / "t.csv").write_text(text)
    table = read_table(tmp_path / "t.csv", columns=["x"])
    write_table(tmp_path / "out.csv", {"label": np.array([0, 1, 1])}, beside=table.source)
    before, after = (pd.read_csv(tmp_path / name, dtype=str, na_filter=False) for name in ("t.csv", "out.csv"))
    pd.testing.assert_frame_equal(after[list(before)], before)
    assert after["label"].tolist() == ["0", "1", "1"]


def test_more_rows_than_are_written_at_once_keep_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.data.text_tables.ROWS_AT_ONCE", 3)
    (tmp_path / "t.csv").write_text("a,b\n" + "".join(f"{i}.0,0{i}\n" for i in range(10)))
    write_table(tmp_path / "out.csv", {"label": np.arange(10)}, beside=read_table(tmp_path / "t.csv").source)
    assert (tmp_path / "out.csv").read_text() == "a,b,label\n" + "".join(f"{i}.0,0{i},{i}\n" for i in range(10))


def test_a_file_with_semicolons_and_decimal_commas_is_written_alike(tmp_path):
    (tmp_path / "t.csv").write_text("a;b\n0,50;x\n1,5;y\n")
    table = read_table(tmp_path / "t.csv")
    write_table(tmp_path / "out.csv", {"p": np.array([0.25, 0.5])}, beside=table.source)
    assert (tmp_path / "out.csv").read_text() == "a;b;p\n0,50;x;0,25\n1,5;y;0,5\n"
    np.testing.assert_array_equal(read_table(tmp_path / "out.csv").X, [[0.5, 0.25], [1.5, 0.5]])


def test_an_input_that_has_changed_since_it_was_read_is_written_as_it_was_read(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1.50\n2.5\n")
    table = read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text("a\nsomething else\n")
    write_table(tmp_path / "out.csv", {"label": np.array([0, 1])}, beside=table.source)
    assert (tmp_path / "out.csv").read_text() == "a,label\n1.5,0\n2.5,1\n"
