"""Errors in words: what went wrong, what to do next, and the exit code."""

from __future__ import annotations

import errno
import re
from collections.abc import Mapping

from cyclopts import CycloptsError, MissingArgumentError

USER_ERROR, BUG = 2, 1
DAMAGED = ("BadZipFile", "SafetensorError", "EOFError", "LZMAError")
# Other errors that a user can fix, by name, because their modules are not imported.
CONNECTION = ("DistStoreError", "DistNetworkError")


def explain(error: BaseException, command: str = "", options: Mapping[str, str] | None = None) -> tuple[str, str, int]:
    """The message, a hint and the exit code; `options` are by the names of parameters, which are in backticks."""
    text = " ".join(str(error).split())  # some messages have several lines
    text = re.sub(r"`(\w+)`", lambda found: (options or {}).get(found[1], found[0]), text)
    page = f"`{' '.join(['neuralbayes', *command.split(), '--help'])}`"
    hint, code = f"{page} explains the options; --debug shows the traceback.", USER_ERROR
    if isinstance(error, OSError) and error.strerror is not None and error.filename is not None:
        text = f"{error.filename}: {error.strerror.lower()}"
    match error:
        case CycloptsError():
            epilogue = str(error.app.help_epilogue) if isinstance(error, MissingArgumentError) and error.app else ""
            example = re.search(r"\[cyan\](neuralbayes .*?)\[/cyan\]", epilogue)
            hint = f"{f'For example: {example.group(1)}. ' if example else ''}{page} shows all options."
        case ImportError() if "pip install" in text or not (error.name or "neuralbayes").startswith("neuralbayes"):
            hint = "Install it in the environment of neuralbayes; `neuralbayes --version` shows what is installed."
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or "t allocate memory" in text:
            text = f"out of memory{': ' if text else ''}{text}"
            hint = "Use part of the data, smaller images, or a smaller --microbatch. Nothing half-written is left."
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            text = f"the disk is full ({text})"
            hint = "Free some space or write elsewhere. Existing files are unchanged."
        case PermissionError() | OSError(errno=errno.EROFS):
            hint = "Choose a folder that you can read and write."
        case FileNotFoundError():
            hint = "" if "Did you mean" in text else "Check the spelling and the folder that you are in."
        case ConnectionError():
            hint = "Run the same command again; --debug shows the traceback."
        case _ if type(error).__name__ in DAMAGED:
            text = f"a file is damaged or cut short ({text})"
        case _ if type(error).__name__ in CONNECTION:
            text = f"the processes of this job could not connect to each other ({text})"
        case FloatingPointError():
            hint = "The training diverged: try a smaller --learning-rate, with another --out."
        case ValueError() | OSError():
            pass
        case TypeError() if "must be" in text:
            pass
        case _:
            text, code = f"{type(error).__name__}: {text}", BUG
            hint = "This is a bug in neuralbayes; please report it with --debug's output and `neuralbayes --version`."
    return text if text[-1:] in (".", "!", "?") else f"{text}.", hint, code
