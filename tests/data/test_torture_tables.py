"""Typical and broken files: each is read cell by cell, or refused with the right reason."""

import bz2
import gzip
import io
import lzma
import math
import os
import sys
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from table_files import arrow, workbook, zst

from neuralbayes.data.tables import read_table, write_table

pytest.importorskip("openpyxl")

NAN = float("nan")
PLAIN = {"a": [0.5, 2.0], "name": ["x", "y"]}
UMLAUTS = {"a": [1, 2], "größe": ["süß", "ß"]}


def written(write, *arguments, **options):
    """What `write(file, ...)` writes."""
    file = io.BytesIO()
    write(file, *arguments, **options)
    return file.getvalue()


npy, npz = partial(written, np.save), partial(written, np.savez_compressed)


class Bomb:
    def __reduce__(self):
        return sys.exit, ("unpickled",)


BOMB = np.array([[1.0, Bomb()]], dtype=object)
NOISE = np.random.default_rng(0).normal(size=(500, 2))


def arrow_stream(columns):
    file, table = io.BytesIO(), pa.table(columns)
    with pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def parquet(columns):
    return pd.DataFrame(columns).to_parquet()


def no_array(file):
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("X.npy", b"no array")  # which NumPy returns as bytes


TEXTS = {
    "comma.csv": (b"a,name\n0.5,x\n2,y\n", PLAIN),
    "semicolon.csv": (b"a;name\n0.5;x\n2;y\n", PLAIN),
    "tab.tsv": (b"a\tname\n0.5\tx\n2\ty\n", PLAIN),
    "bar.csv": (b"a|name\n0.5|x\n2|y\n", PLAIN),
    "blanks.txt": (b"  a   name\n 0.5  x\n 2.0  y\n", PLAIN),
    "blanks-quoted.txt": (b'a name\n0.5  "x y"\n2 "z"\n', {"a": [0.5, 2.0], "name": ["x y", "z"]}),
    "windows.csv": (b"a,name\r\n0.5,x\r\n2,y\r\n", PLAIN),
    "old-mac.csv": (b"a,name\r0.5,x\r2,y\r", PLAIN),
    "no-end.csv": (b"a,name\n0.5,x\n2,y", PLAIN),
    "blank-lines.csv": (b"\n\na,name\n\n0.5,x\n\n\n2,y\n\n", PLAIN),
    "mark.csv": (b"\xef\xbb\xbfa,name\n0.5,x\n2,y\n", PLAIN),
    "utf-16.csv": ("a;größe\n1;süß\n2;ß\n".encode("utf-16"), UMLAUTS),
    "utf-16-be.csv": ("\ufeffa\tgröße\n1\tsüß\n2\tß\n".encode("utf-16-be"), UMLAUTS),
    "utf-16-no-mark.csv": ("a,größe\n1,süß\n2,ß\n".encode("utf-16-le"), UMLAUTS),
    "cp1252.csv": ("a;größe;Preis\n1;süß;5 €\n2;ß;7 €\n".encode("cp1252"), UMLAUTS | {"Preis": [5, 7]}),
    "latin-1.csv": (b"a,b\n1,\x81\xe4\n2,\xf6\n", {"a": [1, 2], "b": ["\x81ä", "ö"]}),
    "late-cp1252.csv": (
        b"a,b\n" + b"1,xxxxxxxxxxxxx\n" * 20_000 + b"2,\xe4\n",
        {"a": [1] * 20_000 + [2], "b": ["x" * 13] * 20_000 + ["ä"]},
    ),
    "decimal-comma.csv": (b"a;b\n0,5;1.234,5\n-2,25;1.000\n", {"a": [0.5, -2.25], "b": [1234.5, 1000.0]}),
    "quoted-decimal-comma.csv": (b'a,b\n"0,5",x\n"2,25",y\n', {"a": [0.5, 2.25], "b": ["x", "y"]}),
    "thousands.csv": (b'a,b\n"1,234.5",7\n"12,345,678.25",8\n', {"a": [1234.5, 12345678.25], "b": [7, 8]}),
    "thousands-whole.csv": (b'a,b\n"1,234",0.5\n"12,345",1.5\n', {"a": [1234, 12345], "b": [0.5, 1.5]}),
    "thousands-blank.csv": (
        "a;b\n1 234,5;1\u202f234\n999,5;12\u00a0000\n".encode(),
        {"a": [1234.5, 999.5], "b": [1234, 12000]},
    ),
    "apostrophe.csv": ("a;b\n1'234.5;1’000\n7.25;2\n".encode(), {"a": [1234.5, 7.25], "b": [1000, 2]}),  # noqa: RUF001
    "money.csv": ("a,b,c\n$5.50,12 %,−1\n$7,3.5%,+2\n".encode(), {"a": [5.5, 7.0], "b": [12.0, 3.5], "c": [-1, 2]}),  # noqa: RUF001
    "mixed-units.csv": ("a,b\n$5,5%\n7€,6\n".encode(), {"a": ["$5", "7€"], "b": ["5%", "6"]}),
    "missing.csv": (
        b"a,b,c,d\n1,x,0.5,true\nNA,N/A,null,\n-,?,nan,false\n4,None,,NULL\n",
        {
            "a": [1.0, NAN, NAN, 4.0],
            "b": ["x", None, None, None],
            "c": [0.5, NAN, NAN, NAN],
            "d": [True, None, False, None],
        },
    ),
    "signs.csv": (b"id,rhesus\n1,+\n2,-\n3,+\n", {"id": [1, 2, 3], "rhesus": ["+", "-", "+"]}),
    "codes.csv": (
        b"zip,card,hex,n\n02750,12345678901234567890,0x1f,2.5e-1\n10001,12345678901234567891,0x20,2\n",
        {
            "zip": ["02750", "10001"],
            "card": ["12345678901234567890", "12345678901234567891"],
            "hex": ["0x1f", "0x20"],
            "n": [0.25, 2.0],
        },
    ),
    "long-ids.csv": (b"id,b\n9007199254740993,1\n,2\n", {"id": [9007199254740993, None], "b": [1, 2]}),
    "booleans.csv": (b"a,b\nTrue,yes\nFALSE,no\n", {"a": [True, False], "b": ["yes", "no"]}),
    "dates.csv": (
        b"day,time\n2024-01-31,12:30\n2024-02-01,08:00\n",
        {"day": ["2024-01-31", "2024-02-01"], "time": ["12:30", "08:00"]},
    ),
    "semicolons-in-text.csv": (b"1,a;b\n2,c;d\n3,e;f\n", {"1": [2, 3], "a;b": ["c;d", "e;f"]}),
    "column-numbers.csv": (b"0,1\n0.5,2\n", {"0": [0.5], "1": [2]}),
    "quotes.csv": (
        b'a,"the ""name"""\n1,"x, y"\n2,"two\nlines"\n3,5" pipe\n4,""\n',
        {"a": [1, 2, 3, 4], 'the "name"': ["x, y", "two\nlines", '5" pipe', None]},
    ),
    "no-header.csv": (b"5.1,3.5,setosa\n4.9,3,setosa\n", {"x0": [5.1, 4.9], "x1": [3.5, 3.0], "x2": ["setosa"] * 2}),
    "only-numbers.csv": (b"1;2\n3;4\n", {"x0": [1, 3], "x1": [2, 4]}),
    "years.csv": (b"country,2023,2024\nA,1,2\nB,3,4\n", {"country": ["A", "B"], "2023": [1, 3], "2024": [2, 4]}),
    "excel-hint.csv": (b"sep=;\r\na;name\r\n0,5;x\r\n2;y\r\n", PLAIN),
    "preamble.csv": (b"# made by a machine\nMonthly export\n\na,name\n0.5,x\n2,y\n", PLAIN),
    "title-before-data.csv": (b"Monthly export\n\nday;sum\nMo;1,5\nTu;2\n", {"day": ["Mo", "Tu"], "sum": [1.5, 2.0]}),
    "remarks-before-data.csv": (b"# made by a machine\n#\n1.5 2.5\n3 4\n", {"x0": [1.5, 3.0], "x1": [2.5, 4.0]}),
    "one-column.csv": (b"a\n1\n2\n", {"a": [1, 2]}),
    "one-text.txt": (b"text\nhello world\nhow are you all\n", {"text": ["hello world", "how are you all"]}),
    "empty-column.csv": (b"a,,b\n1,,x\n2,,y\n", {"a": [1, 2], "Unnamed: 1": [NAN, NAN], "b": ["x", "y"]}),
    "wide.csv": (
        ",".join(f"c{i}" for i in range(1000)).encode() + b"\n" + b"\n".join([b",".join([b"1.5"] * 1000)] * 2) + b"\n",
        {f"c{i}": [1.5, 1.5] for i in range(1000)},
    ),
    "long-cell.csv": (b'a,b\n1,"' + b"x" * 3_000_000 + b'"\n2,y\n', {"a": [1, 2], "b": ["x" * 3_000_000, "y"]}),
    "packed.csv.gz": (gzip.compress(b"a,name\n0.5,x\n2,y\n"), PLAIN),
    "packed.tsv.bz2": (bz2.compress(b"a\tname\n0.5\tx\n2\ty\n"), PLAIN),
    "packed.txt.xz": (lzma.compress(b"a;name\r\n0,5;x\r\n2;y\r\n"), PLAIN),
    "packed.csv.zst": (zst(b"a,name\n0.5,x\n2,y\n"), PLAIN),
    "packed-utf-16.csv.gz": (gzip.compress("a,name\n0.5,x\n2,y\n".encode("utf-16")), PLAIN),
    "rows.jsonl": (
        b'{"a": 0.5, "name": "x", "day": "2024-01-31"}\n\n{"a": 2, "name": "y", "day": null}\n',
        {**PLAIN, "day": ["2024-01-31", None]},
    ),
    "sparse.jsonl": (  # with whole numbers among others
        b'{"a": 1}\n{"a": 2, "c": true}\n{"b": "x"}\n{"a": 2.5, "c": false}\n{"d": null}',
        {"a": [1.0, 2.0, NAN, 2.5, NAN], "c": [None, True, None, False, None], "b": [None, None, "x", None, None]}
        | {"d": [NAN] * 5},
    ),
    "rows.ndjson.gz": (gzip.compress(b'{"a": 0.5, "name": "x"}\r\n{"a":2.0,"name":"y"}'), PLAIN),
}

OTHERS = {
    "rows.xlsx": (workbook([["a", "name"], [0.5, "x"], [2, "y"]]), PLAIN),
    "moved.xlsx": (
        workbook([[], [None, "a", "zip", None, "n"], [None, 1, "02750", None, "1.5"], [None, None, "#N/A", None, "2"]]),
        {"a": [1.0, NAN], "zip": ["02750", None], "n": [1.5, 2.0]},
    ),
    "rows.arrow": (arrow(PLAIN, compression="zstd"), PLAIN),
    "rows.feather": (arrow({"a": pa.array([0.5, 2.0]), "name": pa.array(["x", "y"], pa.string_view())}), PLAIN),
    "stream.arrow": (arrow_stream(PLAIN), PLAIN),
    "rows.parquet": (parquet(PLAIN), PLAIN),
    "rows.npy": (npy(np.array([[0.5, 1.0], [2.0, 3.0]])), {"x0": [0.5, 2.0], "x1": [1.0, 3.0]}),
    "rows.npz": (npz(X=np.array([[0.5, NAN]])), {"x0": [0.5], "x1": [NAN]}),
}


def same_cell(got, wanted):
    if wanted is None or (isinstance(wanted, float) and math.isnan(wanted)):
        return pd.isna(got)
    return type(got) is type(wanted) and got == wanted


def check(frame, wanted):
    if isinstance(frame, np.ndarray):
        frame = pd.DataFrame(frame).add_prefix("x")
    assert list(frame) == list(wanted)
    for name, cells in wanted.items():
        got = frame[name].tolist()
        assert len(got) == len(cells), name
        assert all(map(same_cell, got, cells)), (name, got[:10], cells[:10])


@pytest.mark.parametrize("name", [*TEXTS, *OTHERS])
def test_every_cell_is_read(tmp_path, name):
    data, wanted = (TEXTS | OTHERS)[name]
    (tmp_path / name).write_bytes(data)
    check(read_table(tmp_path / name), wanted)


BROKEN = {
    "empty.csv": (b"", "is empty"),
    "blank.csv": (b"\n\n\n", "is empty: it has no columns"),
    "header-only.csv": (b"a,b\n", "is empty: it has 0 rows and 2 columns"),
    "long-row.csv": (b"a,b\n1,2\n3,4,5\n6,7\n", r"row 2 \(line 3\) has 3 cells.*`sep`"),
    "short-row.csv": (b'a,b\n1,"x\ny"\n3\n6,7\n', r"row 2 \(line 4\) has 1 cell,.*`sep`"),
    "ragged-blanks.txt": (b"a b c\n1 2 3\n4 5 6\n7 8\n", r"row 3 \(line 4\) has 2 cells.*`sep`"),
    "open-quote.csv": (b'a,b\n1,x\n2,"y\n3,z\n4,z\n', r"a quoted cell in line 3 never ends"),
    "twice.csv": (b"a,b,a\n1,2,3\n", "more than one column 'a'"),
    "junk.csv": (bytes(range(256)) * 40, "is not a text file"),
    "parquet.csv": (parquet(PLAIN), "is not a text file"),
    "excel.csv": (workbook([["a"], [1]]), "is not a text file"),
    "gzip.csv": (gzip.compress(b"a\n1\n"), "is not a text file"),
    "text.csv.gz": (b"a,b\n1,2\n", r"is not a valid \.gz file"),
    "cut.csv.gz": (gzip.compress(os.urandom(9000).hex().encode())[:5000], r"not a valid \.gz file .*cut short"),
    "cut.csv.bz2": (bz2.compress(os.urandom(9000).hex().encode())[:5000], r"not a valid \.bz2 file .*cut short"),
    "cut.csv.xz": (lzma.compress(os.urandom(9000).hex().encode())[:5000], r"not a valid \.xz file .*cut short"),
    "cut.csv.zst": (zst(os.urandom(9000).hex().encode())[:5000], r"not a valid \.zst file .*cut short"),
    "old.xlsx": (b"\xd0\xcf\x11\xe0" * 99, "is not a valid Excel file"),
    "archive.xlsx": (npz(X=np.zeros(3)), "is not a valid Excel file"),
    "cut.xlsx": (workbook([["a"], [1]])[:2000], "is not a valid Excel file"),
    "no-cells.xlsx": (workbook([]), "`sheet`"),
    "text.npy": (b"a,b\n1,2\n" * 20, r"is not a valid \.npy file"),
    "text.parquet": (b"a,b\n1,2\n" * 20, "is not a valid Parquet file"),
    "cut.npy": (npy(NOISE)[:4000], "is not a valid .* cut short"),
    "cut.npz": (npz(X=NOISE)[:4000], "is not a valid .* cut short"),
    "flipped.npz": (npz(X=NOISE)[:3000] + bytes(10) + npz(X=NOISE)[3010:], "is not a valid"),
    "cut.parquet": (parquet({"a": NOISE[:, 0]})[:-99], "is not a valid .* cut short"),
    "no-array.npz": (written(no_array), "is not a valid"),
    "pickle.npy": (npy(BOMB), "pickle"),
    "pickle.npz": (npz(X=BOMB), "pickle"),
    "three-axes.npy": (npy(np.zeros((2, 3, 4))), "must hold a 2-D array"),
    "text-cells.npz": (npz(X=np.array([["a"]])), "must hold a 2-D array"),
    "no-rows.npz": (npz(X=np.zeros((0, 3))), "is empty: it has"),
    "cut.arrow": (arrow({"a": np.random.default_rng(0).normal(size=999)})[:4000], "is not a valid Arrow file"),
    "nested.arrow": (arrow({"a": [[1, 2], [3]]}), "column 'a' .* must hold single values"),
    "list.jsonl": (b'{"a": [1, 2]}\n', "column 'a' .* must hold single values"),
    "kinds.jsonl": (b'{"a": 1}\n\n{"a": "x"}\n', "column 'a' .* got 1 and 'x'"),
    "broken.jsonl": (b'{"a": 1}\n{"a": \n', "line 2 is not a JSON object"),
    "deep.jsonl": (b'{"a":' * 5000 + b"1" + b"}" * 5000, "line 1 is not a JSON object"),
    "array.jsonl": (b"[1, 2]\n", "line 1 must hold a JSON object, got list"),
    "twice.parquet.gz": (gzip.compress(parquet(PLAIN)), "must end in one of"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_read_says_why(tmp_path, name):
    data, message = BROKEN[name]
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message) as caught:
        read_table(tmp_path / name)
    assert name in str(caught.value)


SHEETS = workbook([["a"], [1]], "One", [("Two", [["b"], [2]])])


@pytest.mark.parametrize(
    ("content", "options", "wanted"),
    [
        (SHEETS, {"sheet": None}, {"a": [1]}),
        (SHEETS, {"sheet": "Two"}, {"b": [2]}),
        (SHEETS, {"sheet": "2"}, {"b": [2]}),
        (b"a:b\n1:2\n3:4\n", {"sep": ":"}, {"a": [1, 3], "b": [2, 4]}),
        (b"a b\n1 x\n2 y\n", {"sep": "tab"}, {"a b": ["1 x", "2 y"]}),
        (b"a;b\n1,234;x\n2,345;y\n", {}, {"a": [1.234, 2.345], "b": ["x", "y"]}),
        (b"a;b\n1,234;x\n2,345;y\n", {"decimal": "."}, {"a": [1234, 2345], "b": ["x", "y"]}),
        (b"a\tb\n1.234\tx\n2.345\ty\n", {"decimal": ","}, {"a": [1234, 2345], "b": ["x", "y"]}),
        (b"a,b\n1,\xc4\n", {"encoding": "latin-1"}, {"a": [1], "b": ["Ä"]}),
        (b"a,b\n1,\xc4\n", {"encoding": "cp437"}, {"a": [1], "b": ["─"]}),
    ],
)
def test_what_is_known_of_a_file_can_be_said(tmp_path, content, options, wanted):
    path = tmp_path / ("t.xlsx" if "sheet" in options else "t.csv")
    path.write_bytes(content)
    check(read_table(path, **options), wanted)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("t.csv", {"sep": "ab"}, "`sep`"),
        ("t.csv", {"decimal": ";"}, "`decimal`"),
        ("t.csv", {"encoding": "utf-9"}, "`encoding` .*'utf-9'"),
        ("t.csv", {"encoding": "rot13"}, "`encoding`"),
        ("t.csv", {"encoding": "utf-8"}, r"t\.csv .*`encoding`"),
        ("t.csv", {"encoding": "utf-16"}, r"t\.csv .*`encoding`"),
        ("t.csv", {"sheet": "1"}, "`sheet`"),
        ("t.csv", {"key": "X"}, "`key`"),
        ("t.npy", {"sep": ","}, "`sep`"),
        ("t.xlsx", {"sheet": "Three"}, "`sheet` must be one of 'One', 'Two'"),
    ],
)
def test_what_is_said_wrongly_of_a_file_is_refused(tmp_path, name, options, message):
    (tmp_path / "t.csv").write_bytes(b"a,b\n1,2\n33,\xe4\n")
    (tmp_path / "t.npy").write_bytes(npy(np.zeros((2, 2))))
    (tmp_path / "t.xlsx").write_bytes(SHEETS)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / name, **options)


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".txt.xz", ".jsonl.zst", ".parquet", ".arrow", ".xlsx"])
@pytest.mark.parametrize("name", ["missing.csv", "codes.csv", "rows.xlsx", "rows.parquet", "rows.jsonl"])
def test_a_table_may_change_its_format(tmp_path, name, suffix):
    data, wanted = (TEXTS | OTHERS)[name]
    (tmp_path / name).write_bytes(data)
    write_table(tmp_path / f"out{suffix}", read_table(tmp_path / name))
    check(read_table(tmp_path / f"out{suffix}"), wanted)


def test_a_folder_of_parquet_files_is_one_table(tmp_path):
    for i in range(3):
        pd.DataFrame({"a": [i], "b": ["x"]}).to_parquet(tmp_path / f"{i}.parquet")
    check(read_table(tmp_path), {"a": [0, 1, 2], "b": ["x"] * 3})
    pd.DataFrame({"c": [1]}).to_parquet(tmp_path / "9.parquet")
    with pytest.raises(ValueError, match=r"9\.parquet has other columns"):
        read_table(tmp_path)
