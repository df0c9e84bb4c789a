"""Table files that would unpack to far more than their size are refused before they do."""

import bz2
import gzip
import lzma
import os
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from table_files import arrow, workbook, zst

from neuralbayes.data.table_sources import read_source

pytest.importorskip("openpyxl")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zst])
def test_packed_bombs_are_refused(tmp_path, monkeypatch, pack):
    monkeypatch.setattr("neuralbayes.data.packed.MAX_PACKED_BYTES", 10_000)
    monkeypatch.setattr("neuralbayes.data.packed.MAX_PACKED_RATIO", 10)
    suffix = {gzip.compress: "gz", bz2.compress: "bz2", lzma.compress: "xz", zst: "zst"}[pack]
    (tmp_path / f"t.csv.{suffix}").write_bytes(pack(b"a,b\n" + b"1,2\n" * 100_000))
    with pytest.raises(ValueError, match="unpacks to more than"):
        read_source(tmp_path / f"t.csv.{suffix}")


def test_workbooks_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "t.xlsx"
    path.write_bytes(workbook([["a"], *[["same text"]] * 2_000]))
    monkeypatch.setattr("neuralbayes.data.workbooks.MAX_SMALL_BYTES", 1000)
    monkeypatch.setattr("neuralbayes.data.workbooks.MAX_PACKED_RATIO", 2)
    with pytest.raises(ValueError, match=r"t\.xlsx unpacks to \d+ bytes, which must be at most"):
        read_source(path)


def test_workbooks_with_a_cell_far_away_are_refused(tmp_path):
    from openpyxl import Workbook

    book = Workbook()
    book.active["A1"], book.active["XFD1048576"] = "a", 1
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match="asks for more cells than it has bytes for"):
        read_source(tmp_path / "t.xlsx")


def test_workbooks_with_a_document_type_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("xl/workbook.xml", '<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')
    with pytest.raises(ValueError, match="must not hold an XML document type"):
        read_source(tmp_path / "t.xlsx")


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_arrow_files_that_unpack_to_too_much_are_refused(tmp_path, monkeypatch, compression):
    monkeypatch.setattr("neuralbayes.data.arrow_files.MAX_PACKED_BYTES", 10_000)
    (tmp_path / "t.arrow").write_bytes(arrow({"a": np.zeros(1_000_000)}, compression=compression))
    with pytest.raises(ValueError, match=r"t\.arrow unpacks to \d+ bytes or more, which must be at most"):
        read_source(tmp_path / "t.arrow")


def test_json_lines_with_a_key_for_each_line_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.data.json_lines.MAX_PACKED_BYTES", 100_000)
    (tmp_path / "t.jsonl").write_text("".join(f'{{"{i}": 1}}\n' for i in range(2000)))
    with pytest.raises(ValueError, match=r"t\.jsonl has 2000 different keys, too many"):
        read_source(tmp_path / "t.jsonl")


def test_a_long_text_that_cells_share_is_counted_in_each(tmp_path, monkeypatch):
    monkeypatch.setattr("neuralbayes.data.arrow_files.MAX_PACKED_BYTES", 10_000)
    monkeypatch.setattr("neuralbayes.data.arrow_files.MAX_PARQUET_RATIO", 1)
    one = pa.array(["x" * 9000], pa.string_view())
    views = np.frombuffer(one.buffers()[1], np.int32)
    shared = pa.Array.from_buffers(
        pa.string_view(), 500, [None, pa.py_buffer(np.tile(views[:4], 500).tobytes()), *one.buffers()[2:]]
    )
    (tmp_path / "t.arrow").write_bytes(arrow({"a": shared}, compression="uncompressed"))
    with pytest.raises(ValueError, match=r"t\.arrow unpacks to 45\d+ bytes or more"):
        read_source(tmp_path / "t.arrow")


def test_a_file_without_permission_or_larger_than_the_memory_says_so(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("a\n1\n")
    monkeypatch.setattr("neuralbayes.data.table_sources.free_memory", lambda: 2)
    with pytest.raises(MemoryError, match=r"t\.csv has 0\.0 GB, and 0\.0 GB of memory are free"):
        read_source(path)
    monkeypatch.undo()
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(PermissionError, match=r"t\.csv"):
            read_source(path)
