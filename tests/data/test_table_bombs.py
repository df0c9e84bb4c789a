"""Table files that would unpack to far more than their size are refused before they do."""

import bz2
import gzip
import lzma
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import arrow, workbook, zst

from neuralbayes.data.tables import read_table

LONG = "x" * 2**16
POOLS: list[pa.MemoryPool] = []
"""Kept, because memory may outlive the test that allocated it."""


@pytest.fixture
def refuse(monkeypatch):
    """Reads a small file where little memory is free; returns the peak of Arrow's memory while it is refused."""

    def read(path, n_bytes):
        assert path.stat().st_size < n_bytes
        monkeypatch.setattr("neuralbayes.data.bounds.free_memory", lambda: 2 * n_bytes)
        before = pa.default_memory_pool()
        pool = pa.proxy_memory_pool(before)
        POOLS.append(pool)
        pa.set_memory_pool(pool)
        try:
            with pytest.raises(MemoryError, match=path.name):
                read_table(path)
        finally:
            pa.set_memory_pool(before)
        return pool.max_memory()

    return read


def test_a_file_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a\n1\n")
    monkeypatch.setattr("neuralbayes.data.bounds.free_memory", lambda: 4)
    with pytest.raises(MemoryError, match=r"t\.csv .*data frame"):
        read_table(tmp_path / "t.csv")
    monkeypatch.setattr("neuralbayes.data.bounds.free_memory", lambda: 100_000)
    assert len(read_table(tmp_path / "t.csv")) == 1


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zst])
def test_packed_text(tmp_path, pack, refuse):
    suffix = {gzip.compress: "gz", bz2.compress: "bz2", lzma.compress: "xz", zst: "zst"}[pack]
    (tmp_path / f"t.csv.{suffix}").write_bytes(pack(b"a,b\n" + b"1,2\n" * 100_000))
    refuse(tmp_path / f"t.csv.{suffix}", 100_000)


def test_text_of_many_short_cells(tmp_path, refuse):
    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 10_000)
    refuse(tmp_path / "t.csv", 50_000)


def test_json_lines_with_many_keys(tmp_path, refuse):
    (tmp_path / "t.jsonl").write_text("{" + ",".join(f'"{i}": 1' for i in range(100_001)) + "}")
    with pytest.raises(ValueError, match=r"t\.jsonl must have at most 100000 columns"):
        read_table(tmp_path / "t.jsonl")
    (tmp_path / "t.jsonl").write_text("".join(f'{{"{i}": 1}}\n' for i in range(2000)))
    refuse(tmp_path / "t.jsonl", 100_000)


def test_workbooks_that_unpack_to_too_much(tmp_path, refuse):
    (tmp_path / "t.xlsx").write_bytes(workbook([["a"], *[["same text"]] * 2_000]))
    refuse(tmp_path / "t.xlsx", 50_000)


def test_a_workbook_with_a_long_text_in_many_cells(tmp_path, refuse):
    (tmp_path / "t.xlsx").write_bytes(workbook([["a"], *[["x" * 30_000]] * 2_000]))
    refuse(tmp_path / "t.xlsx", 1_000_000)


def test_a_workbook_with_a_cell_far_away(tmp_path, refuse):
    from openpyxl import Workbook

    book = Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    book.save(tmp_path / "t.xlsx")
    refuse(tmp_path / "t.xlsx", 2**30)


def test_compressed_arrays(tmp_path, refuse):
    np.savez_compressed(tmp_path / "t.npz", X=np.zeros((5000, 2)))
    refuse(tmp_path / "t.npz", 10_000)


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_compressed_arrow_buffers(tmp_path, compression, refuse):
    (tmp_path / "t.arrow").write_bytes(arrow({"a": np.zeros(1_000_000)}, compression=compression))
    assert refuse(tmp_path / "t.arrow", 100_000) < 100_000


def test_an_arrow_dictionary_of_long_text(tmp_path, refuse):
    cells = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), [LONG])
    (tmp_path / "t.arrow").write_bytes(arrow({"a": cells}, compression="zstd"))
    assert refuse(tmp_path / "t.arrow", 2**20) < 2**20


def test_arrow_text_that_cells_share(tmp_path, refuse):
    one = pa.array(["x" * 9000], pa.string_view())
    views = np.tile(np.frombuffer(one.buffers()[1], np.int32)[:4], 500)
    shared = pa.Array.from_buffers(pa.string_view(), 500, [None, pa.py_buffer(views.tobytes()), *one.buffers()[2:]])
    (tmp_path / "t.arrow").write_bytes(arrow({"a": shared}, compression="uncompressed"))
    refuse(tmp_path / "t.arrow", 100_000)


PARQUET = {
    "zeros": ({"a": np.zeros(2**20)}, {}),
    "dictionary": ({"a": [None] + [LONG] * 4000}, {}),
    "category": ({"a": pd.Categorical(["y"] + [LONG] * 4000)}, {}),
    "groups": ({"a": [LONG] * 4000}, {"row_group_size": 100}),
    "plain": ({"a": [LONG] * 4000}, {"use_dictionary": False}),
    "beginnings": ({"a": [LONG] * 4000}, {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}),
}


@pytest.mark.parametrize("name", PARQUET)
def test_parquet(tmp_path, name, refuse):
    columns, options = PARQUET[name]
    table = pa.Table.from_pandas(pd.DataFrame(columns))
    pq.write_table(table, tmp_path / "t.parquet", compression="zstd", **options)
    assert refuse(tmp_path / "t.parquet", 2**20) < 2**27


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_parquet_in_a_rare_encoding_is_read(tmp_path, encoding):
    table = pa.table({"a": [f"word {i}" for i in range(200)]})
    pq.write_table(table, tmp_path / "t.parquet", use_dictionary=False, column_encoding={"a": encoding})
    assert read_table(tmp_path / "t.parquet")["a"].tolist() == table["a"].to_pylist()


def test_too_many_columns(tmp_path):
    (tmp_path / "t.csv").write_text(",".join(f"c{i}" for i in range(100_001)) + "\n")
    with pytest.raises(ValueError, match=r"t\.csv must have at most 100000 columns"):
        read_table(tmp_path / "t.csv")


def test_a_file_without_permission_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "t.csv").chmod(0)
    if not os.access(tmp_path / "t.csv", os.R_OK):
        with pytest.raises(PermissionError, match=r"t\.csv"):
            read_table(tmp_path / "t.csv")
