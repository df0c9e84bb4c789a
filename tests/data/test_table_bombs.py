"""Table files that would unpack to far more than their size are refused before they do."""

import bz2
import gzip
import io
import lzma
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table_files import arrow, workbook, zst

from neuralbayes.data.tables import read_table

ROWS = b"a,b\n" + b"1,2\n" * 100_000
LONG = "x" * 2**16
POOLS: list[pa.MemoryPool] = []  # kept, because memory may outlive the test that allocated it


def a_cell_far_away():
    from openpyxl import Workbook

    book, file = Workbook(), io.BytesIO()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    book.save(file)
    return file.getvalue()


def array():
    file = io.BytesIO()
    np.savez_compressed(file, X=np.zeros((5000, 2)))
    return file.getvalue()


def zeros(compression):
    return arrow({"a": np.zeros(1_000_000)}, compression=compression)


def dictionary():
    cells = pa.DictionaryArray.from_arrays(pa.array(np.zeros(20_000, np.int32)), [LONG])
    return arrow({"a": cells}, compression="zstd")


def shared_text():
    one = pa.array(["x" * 9000], pa.string_view())
    views = np.tile(np.frombuffer(one.buffers()[1], np.int32)[:4], 500)
    shared = pa.Array.from_buffers(pa.string_view(), 500, [None, pa.py_buffer(views.tobytes()), *one.buffers()[2:]])
    return arrow({"a": shared}, compression="uncompressed")


def parquet(cells, **options):
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pandas(pd.DataFrame({"a": cells})), file, compression="zstd", **options)
    return file.getvalue()


BEGINNINGS = {"use_dictionary": False, "column_encoding": {"a": "DELTA_BYTE_ARRAY"}}
CASES = {  # the content, half of the free memory, and how much of it Arrow may take before it refuses
    "a.csv.gz": (lambda: gzip.compress(ROWS), 100_000, None),
    "a.csv.bz2": (lambda: bz2.compress(ROWS), 100_000, None),
    "a.csv.xz": (lambda: lzma.compress(ROWS), 100_000, None),
    "a.csv.zst": (lambda: zst(ROWS), 100_000, None),
    "short-cells.csv": (lambda: b"a\n" + b"1\n" * 10_000, 50_000, None),
    "many-keys.jsonl": (lambda: b"".join(b'{"%d": 1}\n' % i for i in range(2000)), 100_000, None),
    "text.xlsx": (lambda: workbook([["a"], *[["same text"]] * 2_000]), 50_000, None),
    "long-text.xlsx": (lambda: workbook([["a"], *[["x" * 30_000]] * 2_000]), 1_000_000, None),
    "far-away.xlsx": (a_cell_far_away, 2**30, None),
    "zeros.npz": (array, 10_000, None),
    "zstd.arrow": (lambda: zeros("zstd"), 100_000, 100_000),
    "lz4.arrow": (lambda: zeros("lz4"), 100_000, 100_000),
    "dictionary.arrow": (dictionary, 2**20, 2**20),
    "shared-text.arrow": (shared_text, 100_000, None),
    "zeros.parquet": (lambda: parquet(np.zeros(2**20)), 2**20, 2**27),
    "dictionary.parquet": (lambda: parquet([None] + [LONG] * 4000), 2**20, 2**27),
    "category.parquet": (lambda: parquet(pd.Categorical(["y"] + [LONG] * 4000)), 2**20, 2**27),
    "groups.parquet": (lambda: parquet([LONG] * 4000, row_group_size=100), 2**20, 2**27),
    "plain.parquet": (lambda: parquet([LONG] * 4000, use_dictionary=False), 2**20, 2**27),
    "beginnings.parquet": (lambda: parquet([LONG] * 4000, **BEGINNINGS), 2**20, 2**27),
}


@pytest.mark.parametrize("name", CASES)
def test_a_small_file_that_unpacks_to_much_is_refused(tmp_path, monkeypatch, name):
    make, n_bytes, peak = CASES[name]
    (tmp_path / name).write_bytes(make())
    assert (tmp_path / name).stat().st_size < n_bytes
    monkeypatch.setattr("neuralbayes.data.bounds.free_memory", lambda: 2 * n_bytes)
    before = pa.default_memory_pool()
    POOLS.append(pa.proxy_memory_pool(before))
    pa.set_memory_pool(POOLS[-1])
    try:
        with pytest.raises(MemoryError, match=name):
            read_table(tmp_path / name)
    finally:
        pa.set_memory_pool(before)
    assert peak is None or POOLS[-1].max_memory() < peak


def test_a_file_larger_than_the_memory_is_refused(tmp_path, monkeypatch):
    (tmp_path / "t.csv").write_text("a\n1\n")
    monkeypatch.setattr("neuralbayes.data.bounds.free_memory", lambda: 4)
    with pytest.raises(MemoryError, match=r"t\.csv .*data frame"):
        read_table(tmp_path / "t.csv")
    monkeypatch.setattr("neuralbayes.data.bounds.free_memory", lambda: 100_000)
    assert len(read_table(tmp_path / "t.csv")) == 1


def test_too_many_columns(tmp_path):
    names = [f"c{i}" for i in range(100_001)]
    (tmp_path / "t.csv").write_text(",".join(names) + "\n")
    (tmp_path / "t.jsonl").write_text("{" + ",".join(f'"{name}": 1' for name in names) + "}")
    for name in ("t.csv", "t.jsonl"):
        with pytest.raises(ValueError, match=f"{name} must have at most 100000 columns"):
            read_table(tmp_path / name)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY"])
def test_parquet_in_a_rare_encoding_is_read(tmp_path, encoding):
    words = [f"word {i}" for i in range(200)]
    (tmp_path / "t.parquet").write_bytes(parquet(words, use_dictionary=False, column_encoding={"a": encoding}))
    assert read_table(tmp_path / "t.parquet")["a"].tolist() == words


def test_a_file_without_permission_says_so(tmp_path):
    (tmp_path / "t.csv").write_text("a\n1\n")
    (tmp_path / "t.csv").chmod(0)
    if not os.access(tmp_path / "t.csv", os.R_OK):
        with pytest.raises(PermissionError, match=r"t\.csv"):
            read_table(tmp_path / "t.csv")
