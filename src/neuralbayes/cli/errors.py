"""Errors in words: what went wrong, what to do next, and the exit code."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from cyclopts import CycloptsError
from rich.text import Text

USER_ERROR = 2
BUG = 1


@dataclass(frozen=True)
class Explanation:
    """What is printed instead of a traceback."""

    message: str
    hint: str
    exit_code: int = USER_ERROR


def explain(error: Exception) -> Explanation:
    """Put an error into words for somebody who does not read Python.

    Examples
    --------
    >>> explain(ValueError("`n_clusters` must be at least 2,\\n got 1")).message
    '`n_clusters` must be at least 2, got 1'
    >>> explain(ZeroDivisionError("division by zero")).exit_code
    1
    """
    text = " ".join(str(error).split())  # scikit-learn's messages have several lines
    match error:
        case CycloptsError():
            command = " ".join(["neuralbayes", *(error.command_chain or ()), "--help"])
            return Explanation(text, f"`{command}` shows what can be given.")
        case ImportError():
            return Explanation(text, "Install it into the environment that runs neuralbayes.")
        case FileNotFoundError():
            return Explanation(_file_text(error, text), "Check the spelling and the folder you are in.")
        case PermissionError():
            return Explanation(_file_text(error, text), "Choose a place where you may read and write.")
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            hint = "Make room or write elsewhere; what was there before is unchanged."
            return Explanation(f"the disk is full ({_file_text(error, text)})", hint)
        case OSError():
            return Explanation(_file_text(error, text), "--debug shows where it happened.")
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or _is_torch_memory(text):
            hint = "Use fewer columns or rows, or a .npy file, which is read piece by piece."
            return Explanation(f"the memory is not enough{': ' if text else ''}{text}", hint)
        case ValueError() | TypeError():
            return Explanation(text, "--debug shows where it happened.")
        case _:
            hint = "This is a bug in neuralbayes: please report it with what --debug prints."
            return Explanation(f"{type(error).__name__}: {text}", hint, BUG)


def paragraph(explanation: Explanation) -> Text:
    """One paragraph for the terminal: ``error: message. hint``."""
    message = explanation.message
    if message[-1:] not in (".", "!", "?"):
        message += "."
    return Text.assemble(("error: ", "bold red"), message, " ", (explanation.hint, "dim"))


def _is_torch_memory(text: str) -> bool:
    """Whether a RuntimeError is torch's way of saying that the memory, or that of the graphics card, is full."""
    return "can't allocate memory" in text or "out of memory" in text


def _file_text(error: OSError, text: str) -> str:
    """``path: reason`` where the system raised the error, its own words where the library did."""
    if error.strerror is None or error.filename is None:
        return text
    return f"{error.filename}: {error.strerror.lower()}"
