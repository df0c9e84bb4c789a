"""Parquet files of a few kilobytes that would unpack to gigabytes are refused by name before that happens."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neuralbayes.data.parquet import read_groups
from neuralbayes.data.tables import read_table

MEGABYTE = 2**20
N_ROWS = 100
POOLS: list[pa.MemoryPool] = []
"""Memory pools, kept here because memory may outlive the test that allocated it."""

LONG = "x" * MEGABYTE


def dictionary(n_rows=N_ROWS, first=0):
    """A long text that is in every row, but only once in the file."""
    return pa.DictionaryArray.from_arrays(pa.array([first] + [0] * (n_rows - 1), pa.int32()), [LONG])


def write(path, columns, **options):
    pq.write_table(pa.table(columns), path, **({"compression": "zstd", "store_schema": False} | options))
    return path


def peak_of_refusing(path, message):
    """Peak memory of Arrow while a file was refused."""
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    POOLS.append(pool)
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(ValueError, match=message):
            read_table(path)
    finally:
        pa.set_memory_pool(before)
    return pool.max_memory()


def dictionary_of_one(path):
    return write(path, {"a": dictionary(), "b": range(N_ROWS)})


def dictionary_of_one_after_an_empty_cell(path):
    return write(path, {"a": dictionary(first=None), "b": range(N_ROWS)})


def category(path):
    return write(path, {"a": dictionary(), "b": range(N_ROWS)}, store_schema=True)


def many_groups(path):
    return write(path, {"a": dictionary(), "b": range(N_ROWS)}, row_group_size=10)


def fixed_length(path):
    indices = pa.array(np.zeros(N_ROWS, np.int32))
    words = pa.array([LONG.encode()], pa.binary(MEGABYTE))
    return write(path, {"a": pa.DictionaryArray.from_arrays(indices, words), "b": range(N_ROWS)})


def rows(path):
    return write(path, {"a": np.zeros(10_000_000, np.int8)})


def dishonest_footer(path):
    """Long text that is compressed in a file that claims to be short; the headers of its pages have the true size."""
    write(path, {"a": [LONG] * N_ROWS, "b": range(N_ROWS)}, use_dictionary=False)
    claimed = _varint(pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size)
    content = path.read_bytes()
    assert content.count(claimed) == 1
    path.write_bytes(content.replace(claimed, _varint(2**21)))
    assert pq.read_metadata(path).row_group(0).column(0).total_uncompressed_size == 2**21
    return path


def _varint(value):
    value <<= 1  # zigzag
    return bytes([(value >> shift) & 127 | 128 for shift in range(0, 21, 7)]) + bytes([value >> 21])


BOMBS = [
    dictionary_of_one,
    dictionary_of_one_after_an_empty_cell,
    category,
    many_groups,
    fixed_length,
    rows,
    dishonest_footer,
]


@pytest.fixture
def limit(monkeypatch):
    """Lower the number of bytes that small files may unpack to, to keep the tests small."""
    monkeypatch.setattr("neuralbayes.data.parquet.MAX_PACKED_BYTES", 64 * MEGABYTE)
    return 64 * MEGABYTE


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_unpacked(tmp_path, limit, bomb):
    path = bomb(tmp_path / "t.parquet")
    assert path.stat().st_size < MEGABYTE / 4
    peak = peak_of_refusing(path, rf"t\.parquet unpacks to \d{{8,}} bytes or more, which must be at most {limit}")
    assert peak < limit / 2


def test_kilobytes_do_not_become_gigabytes(tmp_path):
    path = write(tmp_path / "t.parquet", {"a": dictionary(4000), "b": range(4000)})
    assert path.stat().st_size < 20_000
    assert peak_of_refusing(path, r"t\.parquet unpacks to 4\d{9} bytes") < 64 * MEGABYTE


def test_a_file_of_any_size_is_read_group_by_group_each_within_the_limit(tmp_path, limit):
    path = tmp_path / "t.parquet"
    with pq.ParquetWriter(path, pa.schema({"a": pa.string(), "b": pa.int64()}), compression="zstd") as writer:
        for n_rows in (40, 40, N_ROWS):
            writer.write_table(pa.table({"a": [LONG] * n_rows, "b": range(n_rows)}))
    assert peak_of_refusing(path, r"t\.parquet unpacks to \d{8,} bytes or more") < limit
    assert len(read_groups(path, [0])) == len(read_groups(path, [1])) == 40
    assert read_groups(path, [0, 1, 2], ["b"])["b"].to_pylist() == [*range(40), *range(40), *range(N_ROWS)]
    for groups in ([2], [0, 1]):
        with pytest.raises(ValueError, match=rf"unpacks to \d{{8,}} bytes or more, which must be at most {limit}"):
            read_groups(path, groups)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_text_that_cannot_be_read_as_a_dictionary_is_counted_while_it_is_read(tmp_path, monkeypatch, encoding):
    columns = {"a": [LONG] * 60 + ["short"], "b": range(61)}
    path = write(tmp_path / "t.parquet", columns, use_dictionary=False, column_encoding={"a": encoding, "b": "PLAIN"})
    assert read_table(path, columns=["b"]).frame["a"].str.len().tolist() == [MEGABYTE] * 60 + [5]
    monkeypatch.setattr("neuralbayes.data.parquet.MAX_PACKED_BYTES", 10 * MEGABYTE)
    assert peak_of_refusing(path, r"t\.parquet unpacks to \d+ bytes or more") < 100 * MEGABYTE


@pytest.mark.parametrize(
    "values",
    [
        pa.array([[0.0] * 10**6] * 3),
        pa.array([[1.0, 2.0]] * 3, pa.large_list(pa.float64())),
        pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float64(), 2)),
        pa.array([{"x": 1}] * 3),
        pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda values: str(values.type),
)
def test_nested_columns_are_refused_by_name_before_they_are_read(tmp_path, values):
    path = write(tmp_path / "t.parquet", {"a": [1.0, 2.0, 3.0], "nest": values}, store_schema=True)
    assert peak_of_refusing(path, r"column 'nest' of .*t\.parquet must hold single values, got ") < MEGABYTE


def test_names_that_are_there_twice_are_refused_before_they_are_read(tmp_path):
    table = pa.Table.from_arrays([dictionary(), dictionary()], names=["a", "a"])
    pq.write_table(table, tmp_path / "t.parquet", store_schema=False)
    assert peak_of_refusing(tmp_path / "t.parquet", "more than one column 'a'") < MEGABYTE


def test_more_columns_than_pandas_can_manage_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.data.parquet.MAX_COLUMNS", 3)
    path = write(tmp_path / "t.parquet", {name: [1.0] for name in "abcd"})
    with pytest.raises(ValueError, match="at most 3 columns, got 4"):
        read_table(path)


@pytest.mark.parametrize("store_schema", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"data_page_version": "2.0"}, {"row_group_size": 7}, {"use_dictionary": False}]
)
def test_what_is_read_is_what_pandas_reads(tmp_path, store_schema, options):
    frame = pd.DataFrame(
        {
            "a.b": np.arange(20.0),
            "a": ["word", None, "Wörter", ""] * 5,
            "when": pd.date_range("2024-01-01", periods=20),
            "kind": pd.Categorical(["u", "v"] * 10),
            "n": pd.array([1, None] * 10, dtype="Int64"),
            "yes": [True, None] * 10,
            "raw": [b"\xff", None] * 10,
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(pa.Table.from_pandas(frame), path, store_schema=store_schema, **options)
    table = read_table(path, columns=["a.b"])
    pd.testing.assert_frame_equal(table.frame, pd.read_parquet(path))
    np.testing.assert_array_equal(table.X[:, 0], np.arange(20.0))
