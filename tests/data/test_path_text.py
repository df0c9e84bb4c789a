"""File names in tables: any bytes, and never a formula."""

import os

import pytest

from neuralbayes.data.path_text import path_cell, readable


def test_plain_names_stay_as_they_are():
    for name in ("a.png", "folder/Größe 日本.png", "with space", "100%", "$x$"):
        assert readable(name) == path_cell(name) == name


@pytest.mark.skipif(os.name == "nt", reason="names there are no bytes")
def test_bytes_that_are_no_text_are_escaped_so_that_no_two_names_become_one():
    names = [os.fsdecode(name) for name in (b"\xff.png", b"\xfe.png", b"caf\xc3\xa9.png", b"caf\xe9.png")]
    texts = [readable(name) for name in names]
    assert texts == ["\\xff.png", "\\xfe.png", "café.png", "caf\\xe9.png"]
    for text in texts:
        assert text.encode("utf-8")


@pytest.mark.parametrize("first", ["=", "+", "-", "@", "\t", "\r"])
def test_a_path_that_a_spreadsheet_would_compute_names_the_same_file_with_another_beginning(
    first, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    name = f"{first}1+1.png"
    (tmp_path / name).write_text("x")
    assert path_cell(name)[0] == "."
    assert os.path.samefile(path_cell(name), name)
