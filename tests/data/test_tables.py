import sys

import numpy as np
import pandas as pd
import pytest
from table_files import NUMBERS, write_file

from neuralbayes.data.table_writing import write_table
from neuralbayes.data.tables import read_table

DAMAGED = "is not a valid .* it may be damaged or cut short"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".npy", ".npz", ".CSV", ".NPZ"])
def test_every_format_gives_the_same_numbers(tmp_path, suffix):
    table = read_table(write_file(tmp_path / f"t{suffix}"))
    np.testing.assert_array_equal(table.X, NUMBERS)
    assert table.X.dtype == np.float64
    assert table.named == (suffix.lower() not in (".npy", ".npz"))
    assert table.feature_names == (["a", "b"] if table.named else ["x0", "x1"])
    assert table.ignored == {}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_npy_is_memory_mapped(tmp_path, dtype):
    table = read_table(write_file(tmp_path / "t.npy", NUMBERS.astype(dtype)))
    assert isinstance(table.X, np.memmap)
    assert table.X.dtype == dtype


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("uint8", "float32"), ("float16", "float32"), ("int64", "float64"), (">f8", "float64"), ("bool", "float32")],
)
def test_other_numbers_become_floats_that_hold_them(tmp_path, dtype, expected):
    table = read_table(write_file(tmp_path / "t.npy", np.array([[0, 1], [1, 0]], dtype=dtype)))
    assert table.X.dtype == expected
    assert table.X.dtype.isnative
    np.testing.assert_array_equal(table.X, [[0, 1], [1, 0]])


def test_nullable_boolean_and_mixed_columns_are_features(tmp_path):
    frame = pd.DataFrame({"a": pd.array([1, 2], dtype="Int64"), "b": [True, False], "c": np.float32([0.5, 1.5])})
    frame.to_parquet(tmp_path / "t.parquet")
    np.testing.assert_array_equal(read_table(tmp_path / "t.parquet").X, [[1.0, 1.0, 0.5], [2.0, 0.0, 1.5]])


def test_columns_that_are_not_numbers_are_carried_along_with_a_reason(tmp_path):
    frame = pd.DataFrame(
        {
            "name": list("xyz"),
            "a": [1.0, 2.0, 3.0],
            "when": pd.date_range("2024-01-01", periods=3),
            "typo": ["1", "2", "3o"],
            "none": [None, None, None],
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet")
    assert table.feature_names == ["a"]
    assert list(table.ignored) == ["name", "when", "typo", "none"]
    assert table.ignored["name"] == "text"
    assert table.ignored["when"].startswith("datetime64")
    assert table.ignored["typo"] == "row 3 (rows of data are counted from 1) holds '3o'"
    assert table.ignored["none"] == "empty"
    assert list(table.frame) == list(frame)


def test_a_column_that_only_counts_the_rows_is_no_feature_unless_chosen(tmp_path):
    pd.DataFrame({"a": np.arange(12) ** 2}).to_csv(tmp_path / "t.csv")  # pandas also writes its index
    assert read_table(tmp_path / "t.csv").feature_names == ["a"]
    assert read_table(tmp_path / "t.csv").ignored == {"Unnamed: 0": "counts the rows"}
    assert read_table(tmp_path / "t.csv", columns=["Unnamed: 0", "a"]).X.shape == (12, 2)


def test_chosen_columns_come_in_the_order_chosen(tmp_path):
    for name in ("t.csv", "t.npy"):
        every = read_table(write_file(tmp_path / name)).feature_names
        table = read_table(tmp_path / name, columns=every[::-1])
        np.testing.assert_array_equal(table.X, NUMBERS[:, ::-1])
        table = read_table(tmp_path / name, columns=every[1:])
        np.testing.assert_array_equal(table.X, NUMBERS[:, 1:])
        assert table.ignored == {every[0]: "not chosen"}


def test_columns_that_cannot_be_chosen_are_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,x\n2,3\n3,4\n")
    with pytest.raises(ValueError, match=r"t\.csv has no column 'c', 'd'; its columns are 'a', 'b'"):
        read_table(path, columns=["d", "a", "c"])
    with pytest.raises(ValueError, match=r"column 'b' of .*t\.csv is not numeric: row 1 .* holds 'x'"):
        read_table(path, columns=["b"])
    with pytest.raises(ValueError, match="`columns` must differ"):
        read_table(path, columns=["a", "a"])
    with pytest.raises(ValueError, match="at least one"):
        read_table(path, columns=[])


def test_a_csv_without_header_gets_generated_names(tmp_path):
    (tmp_path / "t.csv").write_text("0.5,-1\n2,3.25\n4,5\n")
    table = read_table(tmp_path / "t.csv")
    np.testing.assert_array_equal(table.X, NUMBERS)
    assert table.feature_names == ["x0", "x1"]


def test_a_header_of_column_numbers_is_a_header(tmp_path):
    pd.DataFrame(NUMBERS).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv").feature_names == ["0", "1"]
    assert len(read_table(tmp_path / "t.csv").X) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t.csv is empty"),
        ("\n\n", "t.csv is empty"),
        ("a,b\n", "t.csv is empty: it has 0 rows and 2 columns"),
        ("a,b\nx,y\n", "t.csv has no numeric column to use .*'a': text; 'b': text"),
        (
            "a,b\n1,2\n3,4,5\n",
            r"t\.csv: row 2 \(line 3\) has 3 cells, but the header has 2, .* `sep`",
        ),
        ("a,b\n1,2,3\n", r"t\.csv: row 1 \(line 2\) has 3 cells, but the header has 2"),
        ("a,b\n1,2\n3,\n5,inf\n", "t.csv contains NaN .* column 'b': 2 values, the first in row 2 .line 3"),
    ],
)
def test_a_csv_that_cannot_be_used_says_why(tmp_path, text, message):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npy", ".npz"])
def test_nan_and_infinity_are_found_with_column_row_and_number(tmp_path, suffix):
    numbers = NUMBERS.copy()
    numbers[2, 0] = np.nan
    numbers[1:, 1] = np.inf
    path = write_file(tmp_path / f"t{suffix}", numbers)
    first, second = ("a", "b") if suffix in (".csv", ".parquet") else ("x0", "x1")
    message = rf"t\{suffix} contains NaN .*'{first}': 1 value, .*row 3 .*'{second}': 2 values, .*row 2 "
    with pytest.raises(ValueError, match=message):
        read_table(path)


def test_the_first_bad_row_is_found_beyond_the_first_block(tmp_path):
    numbers = np.zeros((2**12, 2**11), dtype=np.float32)  # two blocks
    numbers[3000, 5] = numbers[4000, 5] = np.nan
    np.save(tmp_path / "t.npy", numbers)
    with pytest.raises(ValueError, match="column 'x5': 2 values, the first in row 3001 "):
        read_table(tmp_path / "t.npy")


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz"])
@pytest.mark.parametrize("part", [0.02, 0.5, 0.97])
def test_a_file_that_was_cut_short_is_called_so(tmp_path, suffix, part):
    path = write_file(tmp_path / f"t{suffix}", np.zeros((500, 2)))
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(ValueError, match=rf"t\{suffix} {DAMAGED}") as caught:
        read_table(path)
    assert "pickle" not in str(caught.value)


@pytest.mark.parametrize("suffix", [".parquet", ".npy", ".npz"])
def test_another_kind_of_file_is_called_damaged(tmp_path, suffix):
    path = tmp_path / f"t{suffix}"
    path.write_text("a,b\n1,2\n" * 20)
    with pytest.raises(ValueError, match=rf"t\{suffix} {DAMAGED}"):
        read_table(path)


def test_flipped_bytes_in_an_archive_are_noticed(tmp_path):
    path = write_file(tmp_path / "t.npz", np.ones((500, 2)))
    contents = bytearray(path.read_bytes())
    contents[4000:4010] = bytes(10)
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=DAMAGED):
        read_table(path)


def test_an_archive_that_unpacks_to_more_than_the_memory_holds_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.data.table_formats.MAX_PACKED_BYTES", 1000)
    path = tmp_path / "t.npz"
    np.savez_compressed(path, X=np.zeros((500, 2)))
    with pytest.raises(ValueError, match=r"'X' unpacks to 8128 bytes, more than 1000; store it with numpy\.savez"):
        read_table(path)
    np.savez(path, X=np.zeros((500, 2)))
    assert read_table(path).X.shape == (500, 2)


def test_parquet_that_claims_far_more_than_its_bytes_is_refused(tmp_path, monkeypatch):
    path = write_file(tmp_path / "t.parquet", np.zeros((5000, 2)))
    assert read_table(path).X.shape == (5000, 2)
    monkeypatch.setattr("neuralbayes.data.parquet.MAX_PACKED_BYTES", 1000)
    monkeypatch.setattr("neuralbayes.data.parquet.MAX_PARQUET_RATIO", 1)
    with pytest.raises(ValueError, match=r"t\.parquet unpacks to \d+ bytes or more, which must be at most"):
        read_table(path)


class Bomb:
    def __reduce__(self):
        return sys.exit, ("unpickled",)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_objects_are_never_unpickled(tmp_path, suffix):
    path = write_file(tmp_path / f"t{suffix}", np.array([[1.0, Bomb()]], dtype=object))
    with pytest.raises(ValueError, match="holds Python objects, which are never unpickled"):
        read_table(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(3), r"must hold a 2-D array \(n_rows, n_features\), got shape \(3,\); .*reshape\(-1, 1\)"),
        (np.zeros((2, 3, 4)), r"got shape \(2, 3, 4\); reshape it to one row per sample"),
        (np.array(1.0), r"got shape \(\)"),
        (np.zeros((0, 3)), "is empty: it has 0 rows and 3 columns"),
        (np.zeros((3, 0)), "is empty: it has 3 rows and 0 columns"),
        (np.array([["a"]]), "must hold real numbers, got an array of dtype <U1"),
        (np.ones((2, 2), dtype=complex), "must hold real numbers, got an array of dtype complex128"),
        (np.zeros((2, 2), dtype=[("a", "f4")]), "must hold real numbers"),
    ],
)
@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_arrays_of_another_kind_are_refused(tmp_path, suffix, array, message):
    with pytest.raises(ValueError, match=message):
        read_table(write_file(tmp_path / f"t{suffix}", array))


def test_an_archive_of_several_arrays_asks_for_a_key(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=NUMBERS, y=np.zeros(3))
    with pytest.raises(ValueError, match=r"t\.npz holds 2 arrays; choose one with `key`: 'X', 'y'"):
        read_table(path)
    with pytest.raises(ValueError, match=r"t\.npz has no array 'Z'; `key` must be one of 'X', 'y'"):
        read_table(path, key="Z")
    np.testing.assert_array_equal(read_table(path, key="X").X, NUMBERS)
    with pytest.raises(ValueError, match=r"`key` names an array of a \.npz file, but .* is a \.csv file"):
        read_table(write_file(tmp_path / "t.csv"), key="X")


def test_what_is_no_table_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"t\.doc must end in one of \.csv, \.tsv, .*, \.npy, \.npz, .* got '\.doc'"):
        read_table(tmp_path / "t.doc")
    with pytest.raises(FileNotFoundError, match=r"t\.csv does not exist"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder, not a file of a table"):
        read_table(tmp_path / "folder.csv")


def test_npy_and_npz_under_each_others_name_are_told_apart(tmp_path):
    write_file(tmp_path / "t.npz").rename(tmp_path / "archive.npy")
    with pytest.raises(ValueError, match=r"archive\.npy is a NPZ archive; name it \.npz"):
        read_table(tmp_path / "archive.npy")
    write_file(tmp_path / "t.npy").rename(tmp_path / "array.npz")
    with pytest.raises(ValueError, match=r"it is a NPY file; name it \.npy"):
        read_table(tmp_path / "array.npz")


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
def test_the_separator_is_found_whatever_the_suffix(tmp_path, suffix, mark):
    (tmp_path / f"t{suffix}").write_text(f'a{mark}b{mark}c\n0.5{mark}-1{mark}"x{mark}y"\n2{mark}3.25{mark}z\n')
    table = read_table(tmp_path / f"t{suffix}")
    np.testing.assert_array_equal(table.X, NUMBERS[:2])
    assert table.frame["c"].tolist() == [f"x{mark}y", "z"]


@pytest.mark.parametrize("header", ["a;b\n", ""], ids=["header", "none"])
def test_decimal_commas_are_read_where_another_mark_separates(tmp_path, header):
    (tmp_path / "t.csv").write_text(f"{header}0,5;-1,0\n2,0;3,25\n4,0;5,0\n")
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").X, NUMBERS)


def test_a_semicolon_in_the_text_of_every_row_separates_nothing(tmp_path):
    (tmp_path / "t.csv").write_text("1,a;b\n2,c;d\n3,e;f\n")
    assert list(read_table(tmp_path / "t.csv").frame) == ["1", "a;b"]


@pytest.mark.parametrize("mark", [",", ";"])
def test_digits_with_leading_zeros_are_a_code_unless_chosen(tmp_path, mark):
    (tmp_path / "t.csv").write_text(f"Zip{mark}a\n02750{mark}0.5\n10001{mark}00.25\n{mark}2\n")
    table = read_table(tmp_path / "t.csv")
    assert table.feature_names == ["a"]
    assert table.ignored == {"Zip": "a code with leading zeros"}
    assert table.frame["Zip"].tolist()[:2] == ["02750", "10001"]
    write_table(tmp_path / "out.parquet", {"label": np.zeros(3, dtype=int)}, beside=table.source)
    assert pd.read_parquet(tmp_path / "out.parquet")["Zip"].tolist()[:2] == ["02750", "10001"]
    (tmp_path / "u.csv").write_text("Zip,a\n02750,1\n10001,2\n")
    np.testing.assert_array_equal(read_table(tmp_path / "u.csv", columns=["Zip"]).X, [[2750.0], [10001.0]])


@pytest.mark.parametrize("start", ["", "\n\n"])
def test_more_columns_than_pandas_can_manage_are_refused(tmp_path, monkeypatch, start):
    monkeypatch.setattr("neuralbayes.data.dialect.MAX_COLUMNS", 3)
    (tmp_path / "t.csv").write_text(f"{start}a,b,c,d\n1,2,3,4\n")
    with pytest.raises(ValueError, match=r"t\.csv must have at most 3 columns"):
        read_table(tmp_path / "t.csv")
    (tmp_path / "t.csv").write_text(f"{start}a,b,c\n1,2,3\n" + "1,2,3\n" * 5)
    assert read_table(tmp_path / "t.csv").X.shape == (6, 3)
