"""Names of files as text that every table, page and picture can hold, whatever bytes they are made of."""

from __future__ import annotations

import os
from pathlib import Path

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that spreadsheets take for a formula."""


def readable(name: str | Path) -> str:
    r"""A name as text: bytes that are not UTF-8 are written as ``\xff``.

    Examples
    --------
    >>> print(readable(os.fsdecode(b"caf\xe9.png")))
    caf\xe9.png
    """
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def path_cell(path: str | Path) -> str:
    """A path as a cell of a table; ``./`` before one that a spreadsheet would compute, which names the same file.

    Examples
    --------
    >>> path_cell("=1+1.png"), path_cell("folder/=1+1.png")
    ('./=1+1.png', 'folder/=1+1.png')
    """
    text = readable(path)
    return f"./{text}" if text.startswith(FORMULA) else text
