"""File names as text for tables, pages and pictures, whatever bytes they contain."""

from __future__ import annotations

import os
from pathlib import Path

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of cells that spreadsheets read as formulas."""


def readable(name: str | Path) -> str:
    r"""A name as text, with bytes that are not UTF-8 written as ``\xff``.

    Examples
    --------
    >>> print(readable(os.fsdecode(b"caf\xe9.png")))
    caf\xe9.png
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def path_cell(path: str | Path) -> str:
    """A path as a table cell, with ``./`` in front if a spreadsheet would read it as a formula.

    Examples
    --------
    >>> path_cell("=1+1.png"), path_cell("folder/=1+1.png")
    ('./=1+1.png', 'folder/=1+1.png')
    """
    text = readable(path)
    return f"./{text}" if text.startswith(FORMULA) else text
