"""Files that unpack to gigabytes, and the real command line with a soft limit of memory."""

import gzip
import json
import re
import subprocess
import sys
import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the limit is of Linux")]

LIMIT = 2 * 2**30  # of memory, in bytes: a small machine


def dictionary(folder):
    """An Arrow file of 20,000 rows of three texts of 100,000 characters."""
    cells = pa.DictionaryArray.from_arrays(np.arange(20_000, dtype=np.int32) % 3, [c * 100_000 for c in "abc"])
    with pa.ipc.new_file(folder / "bomb.arrow", pa.schema({"a": cells.type})) as file:
        file.write(pa.record_batch({"a": cells}))
    return folder / "bomb.arrow"


def many_keys(folder):
    line = json.dumps({f"k{j}": 1 for j in range(20_000)}) + "\n"
    (folder / "bomb.jsonl.gz").write_bytes(gzip.compress(line.encode() * 3000, 1))
    return folder / "bomb.jsonl.gz"


def long_text(folder):
    pq.write_table(pa.table({"a": ["x" * 100_000] * 100_000}), folder / "bomb.parquet", compression="zstd")
    return folder / "bomb.parquet"


def nested(folder):
    pq.write_table(pa.table({"a": [[[0] * 1000] * 100] * 1000}), folder / "bomb.parquet", compression="zstd")
    return folder / "bomb.parquet"


def zeros(folder):
    pq.write_table(pa.table({"a": np.zeros(10**8)}), folder / "bomb.parquet")
    return folder / "bomb.parquet"


def packed_text(folder):
    block = gzip.compress(b"1,2\n" * 2**22, 9)
    (folder / "bomb.csv.gz").write_bytes(gzip.compress(b"a,b\n") + block * 320)
    return folder / "bomb.csv.gz"


def workbook(folder):
    sheet = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
    with zipfile.ZipFile(folder / "bomb.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        pd.DataFrame({"a": [1, 2]}).to_excel(folder / "small.xlsx", index=False)
        with zipfile.ZipFile(folder / "small.xlsx") as small:
            for name in small.namelist():
                if not name.endswith("sheet1.xml"):
                    archive.writestr(name, small.read(name))
        with archive.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as file:
            file.write(sheet)
            for _ in range(3000):
                file.write(b'<row><c t="n"><v>1</v></c></row>' * 2**15)
    (folder / "small.xlsx").unlink()
    return folder / "bomb.xlsx"


def arrays(folder):
    archive = zipfile.ZipFile(folder / "bomb.npz", "w", zipfile.ZIP_DEFLATED)
    with archive, archive.open("X.npy", "w", force_zip64=True) as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (2**29, 1)})
        for _ in range(256):
            file.write(bytes(2**24))
    return folder / "bomb.npz"


def huge_cell(folder):
    (folder / "bomb.csv").write_bytes(b"a,b\n1," + b"x" * 300 * 2**20 + b"\n2,y\n")
    return folder / "bomb.csv"


def many_columns(folder):
    rows = [",".join(f"c{i}" for i in range(100_000)), *[",".join(["1.5"] * 100_000)] * 20]
    (folder / "bomb.csv").write_text("\n".join(rows))
    return folder / "bomb.csv"


def large_picture(folder):
    (folder / "bomb").mkdir()
    for k in range(3):
        Image.new("L", (10_000, 10_000)).save(folder / "bomb" / f"{k}.png")
    return folder / "bomb"


def many_pages(folder):
    (folder / "bomb").mkdir()
    page = Image.new("L", (40, 40))
    page.save(folder / "bomb" / "a.tif", save_all=True, append_images=[page] * 9_999)
    return folder / "bomb"


BOMBS = (dictionary, many_keys, long_text, nested, zeros, packed_text, workbook, arrays, huge_cell)
BOMBS += (many_columns, large_picture, many_pages)


COMMAND = f"""
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_DATA, ({LIMIT}, {LIMIT}))
try:
    runpy.run_module("neuralbayes", run_name="__main__", alter_sys=True)
finally:
    with open("/proc/self/status") as file:
        print(*(line.split()[1] for line in file if line.startswith("VmHWM")))
"""
"""`python -m neuralbayes`, which prints its peak of memory in kilobytes at the end."""


@pytest.mark.parametrize("make", BOMBS, ids=lambda make: make.__name__)
def test_a_bomb_ends_in_a_clear_error_and_nothing_written(make, tmp_path):
    source = make(tmp_path)
    words = [sys.executable, "-c", COMMAND, "cluster", str(source), "--quiet"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    print(f"{make.__name__}: {int(done.stdout or 0) / 2**20:.2f} GB, exit code {done.returncode}, {done.stderr}")
    assert int(done.stdout) < (LIMIT + 2**28) / 2**10, done.stderr
    assert done.returncode in (0, 2), done.stderr
    if done.returncode:
        assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
        assert source.name in done.stderr or "at least 2 images" in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == [source.name]
