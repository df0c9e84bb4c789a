"""Errors in words: what went wrong, what to do next, and the exit code."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError

USER_ERROR, BUG = 2, 1

BY_NAME = {
    "BadZipFile": "a file is damaged or cut short",
    "SafetensorError": "a file is damaged or cut short",
    "EOFError": "a file is damaged or cut short",
    "LZMAError": "a file is damaged or cut short",
    "DistStoreError": "the processes of this job could not connect to each other",
    "DistNetworkError": "the processes of this job could not connect to each other",
}
"""Other errors that a user can fix, by name, because their modules are not imported."""


def explain(error: BaseException, command: str = "", options: Mapping[str, str] | None = None) -> tuple[str, str, int]:
    """Explain an error to people who do not read Python.

    Parameters
    ----------
    error : Exception
    command : str
        The command that failed.
    options : mapping of str to str
        Options of the command by the name of the parameter, which messages have in backticks.

    Returns
    -------
    message, hint : str
    exit_code : int

    Examples
    --------
    >>> explain(ValueError("`n_clusters` must be at least 2,\\n got 1"), "cluster", {"n_clusters": "--clusters"})[0]
    '--clusters must be at least 2, got 1.'
    >>> explain(ZeroDivisionError("division by zero"))[2]
    1
    """
    text = " ".join(str(error).split())  # some messages have several lines
    text = re.sub(r"`(\w+)`", lambda found: (options or {}).get(found[1], found[0]), text)
    page = f"`{' '.join(['neuralbayes', *command.split(), '--help'])}`"
    hint, code = f"{page} explains the options; --debug shows the traceback.", USER_ERROR
    match error:
        case CycloptsError():
            text, hint = _usage(error, text), f"{_example(error)}{page} shows all options."
        case ImportError():
            extra = "" if "pip install" in text else " `neuralbayes --version` shows what is installed."
            hint = f"Install it in the environment of neuralbayes.{extra}"
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or _is_memory(text):
            text, hint = f"out of memory{': ' if text else ''}{text}", "Nothing half-written is left. Use part of the "
            hint += "data, smaller images (--read size=64) or a machine with more memory."
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            text = f"the disk is full ({_of_file(error, text)})"
            hint = "Free some space or write elsewhere. Existing files are unchanged."
        case PermissionError() | OSError(errno=errno.EROFS):
            text, hint = _of_file(error, text), "Choose a folder that you can read and write."
        case FileNotFoundError():
            text, hint = _of_file(error, text), "" if "Did you mean" in text else "Check the spelling and the folder."
        case ConnectionError():
            text, hint = _of_file(error, text), "Run the same command again; --debug shows the traceback."
        case OSError():
            text = _of_file(error, text)
        case _ if type(error).__name__ in BY_NAME:
            text = f"{BY_NAME[type(error).__name__]} ({text})"
        case ValueError():
            pass
        case TypeError() if "must be" in text:
            pass
        case _:
            text, code = f"{type(error).__name__}: {text}", BUG
            hint = "This is a bug in neuralbayes; please report it with --debug's output and `neuralbayes --version`."
    return text if text[-1:] in (".", "!", "?") else f"{text}.", hint, code


def _usage(error: CycloptsError, text: str) -> str:
    """Explain an error in a command line."""
    command = " ".join(["neuralbayes", *(error.command_chain or ())])
    match error:
        case UnusedCliTokensError(unused_tokens=[*tokens]):
            return f"`{command}` does not accept {', '.join(map(repr, tokens))}"
        case MissingArgumentError(argument=argument, keyword=None) if argument is not None and not argument.tokens:
            _, sign, instead = text.partition("Did you mean")
            return f"`{command}` needs {argument.name}.{f' {sign}{instead}' if sign else ''}"
        case MissingArgumentError(keyword=str(option)):
            return f"{option} needs a value"
    return text


def _example(error: CycloptsError) -> str:
    """The first example of a command of which an argument is missing."""
    pages = (error.app.help_epilogue or "") if error.app is not None else ""
    example = re.search(r"\[cyan\](neuralbayes .*?)\[/cyan\]", str(pages))
    return f"For example: {example.group(1)}. " if example and isinstance(error, MissingArgumentError) else ""


def _is_memory(text: str) -> bool:
    """Whether a RuntimeError of torch means out of memory, on the CPU or the GPU."""
    return "can't allocate memory" in text or "out of memory" in text


def _of_file(error: OSError, text: str) -> str:
    """``path: reason`` for errors of the system, and the message itself for errors of the library."""
    named = error.strerror is not None and error.filename is not None
    return f"{error.filename}: {error.strerror.lower()}" if named else text
