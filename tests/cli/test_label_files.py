"""`neuralbayes label` on typical files and on standard input."""

import gzip
import io
import sys

import numpy as np
import pandas as pd
import pytest

from neuralbayes.cli import main

LABEL = ["--clusters", "2", "--method", "manifolds", "--no-picture"]


@pytest.fixture
def rows():
    """Write a file with two clusters, as Excel does in Germany."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 30])
    lines = [f"{a:.3f};{b:.3f};{i:05d}".replace(".", ",") for i, (a, b) in enumerate(X)]
    return "\r\n".join(["Größe;Länge;PLZ", *lines, ""]).encode("cp1252")


def pipe(monkeypatch, data):
    output = io.TextIOWrapper(io.BytesIO(), "utf-8")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    monkeypatch.setattr(sys, "stdout", output)
    return output.buffer


def without_labels(data):
    return b"\r\n".join(b";".join(line.split(b";")[:3]) for line in data.split(b"\r\n"))


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input_goes_to_standard_output(monkeypatch, capfd, rows, pack):
    output = pipe(monkeypatch, pack(rows))
    assert main(["label", "-", *LABEL]) == 0
    assert without_labels(output.getvalue()) == rows
    assert output.getvalue().startswith("Größe;Länge;PLZ;label;p_0;p_1\r\n".encode("cp1252"))
    assert "standard input: 80 rows" in capfd.readouterr().err


def test_standard_input_may_go_to_a_file_and_a_file_to_standard_output(monkeypatch, tmp_path, rows):
    assert pipe(monkeypatch, rows).getvalue() == b""
    assert main(["label", "-", "--out", str(tmp_path / "out.parquet"), "--quiet", *LABEL]) == 0
    frame = pd.read_parquet(tmp_path / "out.parquet")
    assert frame["PLZ"].iloc[7] == "00007"
    assert set(frame["label"]) == {0, 1}
    (tmp_path / "rows.csv").write_bytes(rows)
    output = pipe(monkeypatch, b"")
    assert main(["label", str(tmp_path / "rows.csv"), "--out", "-", "--quiet", *LABEL]) == 0
    assert without_labels(output.getvalue()) == rows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.parquet", "rows.csv"]


def test_a_packed_file_is_written_packed_beside_it(tmp_path, rows):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(rows))
    assert main(["label", str(tmp_path / "rows.csv.gz"), "--quiet", *LABEL]) == 0
    assert without_labels(gzip.decompress((tmp_path / "rows-labels.csv.gz").read_bytes())) == rows


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sep", "ab"], "--sep must be a single mark"),
        (["--encoding", "utf-8"], "is not utf-8 text: line 1 holds other bytes; give its encoding with --encoding"),
        (["--sep", ","], "row 1 (line 2) has 3 cells, but the header has 1"),
        (["--sheet", "2"], "--sheet names a sheet of an .xlsx file, but"),
        (["--out", "-", "--json"], "--json prints to standard output, where the table goes"),
    ],
)
def test_errors_are_in_the_words_of_the_command_line(capsys, tmp_path, rows, options, message):
    (tmp_path / "rows.csv").write_bytes(rows)
    assert main(["label", str(tmp_path / "rows.csv"), *options]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("data", "message"), [(b"", "standard input is empty"), (b"a,a\n1,2\n", "standard input has")])
def test_errors_name_standard_input(monkeypatch, capfd, data, message):
    pipe(monkeypatch, data)
    assert main(["label", "-"]) == 2
    assert message in " ".join(capfd.readouterr().err.split())
