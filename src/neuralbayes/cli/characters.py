"""Replace characters that a terminal cannot show, by ASCII if there is a usual spelling, otherwise by their number."""

from __future__ import annotations

import codecs
import io
import sys

SPELLINGS = {"±": "+-", "…": "...", "━": "-", "─": "-", "│": "|", "✓": "*", "•": "*"}


def _spell(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    character = error.object[error.start]
    if character in SPELLINGS:
        return SPELLINGS[character], error.start + 1
    error.end = error.start + 1
    return codecs.backslashreplace_errors(error)


def never_fail_to_print() -> None:
    """Make printing succeed for any character, whatever the encoding of the terminal or file."""
    codecs.register_error("neuralbayes", _spell)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="neuralbayes")
