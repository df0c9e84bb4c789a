"""Files of tables: which are read and written, and what is refused."""

import io

import numpy as np
import pandas as pd
import pytest

from neuralbayes.data.tables import is_table, parquet_files, read_table, write_table

NUMBERS = np.array([[0.5, -1.0], [2.0, 3.25], [4.0, 5.0]])


@pytest.mark.parametrize("dtype", ["float32", "uint8", ">f8", "bool"])
def test_npy_is_memory_mapped_whatever_its_numbers(tmp_path, dtype):
    np.save(tmp_path / "t.npy", NUMBERS.astype(dtype))
    array = read_table(tmp_path / "t.npy")
    assert isinstance(array, np.memmap)
    np.testing.assert_array_equal(array, NUMBERS.astype(dtype))


def test_an_archive_of_several_arrays_asks_for_a_key(tmp_path):
    with open(tmp_path / "t.NPZ", "wb") as file:
        np.savez(file, X=NUMBERS, y=np.zeros(3))
    for key in (None, "Z"):
        with pytest.raises(ValueError, match="`key` must be one of 'X', 'y'"):
            read_table(tmp_path / "t.NPZ", key=key)
    np.testing.assert_array_equal(read_table(tmp_path / "t.NPZ", key="X"), NUMBERS)


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t\.doc must end in one of"):
        read_table(tmp_path / "t.doc")
    with pytest.raises(FileNotFoundError, match=r"t\.csv"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder"):
        read_table(tmp_path / "folder.csv")


def test_tables_are_told_from_other_files_and_folders(tmp_path):
    for name in ("t.csv", "t.jsonl.zst", "T.XLSX", "t.png", "t.png.gz"):
        (tmp_path / name).touch()
    assert [is_table(tmp_path / name) for name in ("t.csv", "t.jsonl.zst", "T.XLSX")] == [True] * 3
    assert [is_table(tmp_path / name) for name in ("t.png", "t.png.gz", "gone.csv", ".")] == [False] * 4
    for name in ("b.parquet", "a.parquet", "_metadata.parquet", ".hidden.parquet"):
        (tmp_path / name).touch()
    assert [path.name for path in parquet_files(tmp_path)] == ["a.parquet", "b.parquet"]
    assert is_table(tmp_path)


def test_standard_input_is_read_as_text(monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a;b\n0,5;x\n2;y\n")))
    assert read_table("-").to_dict("list") == {"a": [0.5, 2.0], "b": ["x", "y"]}


def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(tmp_path):
    run = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "\t=1", "-2+cmd|' /C calc'!A0", "\uff1d1+1"]
    safe = ["-3.5", "+", "-", "+49 30 123-4", "a=b", "- a point"]
    write_table(tmp_path / "t.csv", pd.DataFrame({"=name": run + safe, "n": -np.arange(12.0)}))
    frame = pd.read_csv(tmp_path / "t.csv", dtype={"'=name": str})
    assert frame["'=name"].tolist() == [f"'{cell}" for cell in run] + safe
    assert frame["n"].tolist() == (-np.arange(12.0)).tolist()


def test_a_cell_that_ends_at_a_semicolon_elsewhere_starts_no_formula_behind_it(tmp_path):
    write_table(tmp_path / "t.csv", pd.DataFrame({"a": ["x;=1+cmd|' /C calc'!A0", "x;@A1", "x; y;-3;+4;z=1"]}))
    lines = (tmp_path / "t.csv").read_text().splitlines()
    assert lines == ["a", "x;'=1+cmd|' /C calc'!A0", "x;'@A1", "x; y;-3;+4;z=1"]


def test_a_cell_of_a_workbook_is_never_a_formula(tmp_path):
    from openpyxl import load_workbook

    write_table(tmp_path / "t.xlsx", pd.DataFrame({"a": ["=1+1"]}))
    assert load_workbook(tmp_path / "t.xlsx").active["A2"].data_type == "s"
    assert read_table(tmp_path / "t.xlsx")["a"].tolist() == ["=1+1"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".arrow", ".feather", ".xlsx"])
def test_numbers_come_back_to_the_last_bit_and_names_as_text(tmp_path, suffix):
    frame = pd.DataFrame({0: np.random.default_rng(0).lognormal(sigma=20, size=99), 1: np.arange(99)})
    frame[1] += 2**60 * (suffix != ".xlsx")  # which holds no such numbers
    write_table(tmp_path / f"t{suffix}", frame)
    wanted = frame.set_axis(["0", "1"], axis=1)
    pd.testing.assert_frame_equal(read_table(tmp_path / f"t{suffix}"), wanted, check_exact=suffix != ".xlsx")


def test_an_index_is_written_if_it_says_something(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index(["u", "v"], name="who"))
    write_table(tmp_path / "t.csv", frame)
    assert list(read_table(tmp_path / "t.csv")) == ["who", "a"]
    write_table(tmp_path / "t.parquet", frame)
    assert read_table(tmp_path / "t.parquet").index.tolist() == ["u", "v"]
    write_table(tmp_path / "t.csv", frame.reset_index(drop=True)[1:])
    assert list(read_table(tmp_path / "t.csv")) == ["a"]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.parquet"
    path.write_text("old")
    with pytest.raises(ValueError, match="a"):
        write_table(path, pd.DataFrame({"a": [1, "x"]}))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.png", "t.parquet.gz", "t"])
def test_a_table_goes_to_formats_with_names_of_columns(tmp_path, name):
    with pytest.raises(ValueError, match="must end in one of"):
        write_table(tmp_path / name, pd.DataFrame({"a": [1]}))
