"""Error messages: what went wrong, what to do next, and the exit code."""

from __future__ import annotations

import difflib
import errno
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cyclopts import CycloptsError, MissingArgumentError, UnusedCliTokensError
from rich.text import Text

from neuralbayes.cli.standard_streams import stream_names

USER_ERROR = 2
BUG = 1

DAMAGED = ("BadZipFile", "SafetensorError", "EOFError", "LZMAError")
"""Other exceptions of file readers, by name, because their modules are not imported."""

PACKAGES = {"yaml": "pyyaml"}
"""Packages whose names differ from their modules."""

SMALLER = {
    "label": "Use fewer columns or rows, or --model with a .npy or .parquet file, which is read in blocks.",
    "pretrain": "Use a smaller --microbatch, --recompute, or a smaller --encoder.",
}
"""Hint for running out of memory."""


@dataclass(frozen=True)
class Explanation:
    """A message instead of a traceback."""

    message: str
    hint: str
    exit_code: int = USER_ERROR


def explain(error: Exception, words: Sequence[str] = ()) -> Explanation:
    """Explain an error to people who do not read Python.

    Parameters
    ----------
    error : Exception
    words : sequence of str
        The command line, starting with the command, for hints.

    Examples
    --------
    >>> explain(ValueError("`n_clusters` must be at least 2,\\n got 1")).message
    '`n_clusters` must be at least 2, got 1'
    >>> explain(ZeroDivisionError("division by zero")).exit_code
    1
    """
    text = _in_options(stream_names(" ".join(str(error).split())), words)  # messages of scikit-learn have several lines
    command = words[0] if words else ""
    page = " ".join(["neuralbayes", *words[:1], "--help"])
    general = f"`{page}` explains the options; --debug shows the traceback."
    match error:
        case CycloptsError():
            page = " ".join(["neuralbayes", *(error.command_chain or ()), "--help"])
            return Explanation(_usage_text(error, text), f"{_example(error)}`{page}` shows all options.")
        case ImportError():
            return Explanation(text, _install_hint(error, text))
        case FileNotFoundError():
            return Explanation(
                _file_text(error, text), _near(words, text) or "Check the spelling and the folder you are in."
            )
        case PermissionError() | OSError(errno=errno.EROFS):
            return Explanation(_file_text(error, text), "Choose a folder that you can read and write.")
        case OSError(errno=errno.ENOSPC | errno.EDQUOT):
            hint = "Free some space or write elsewhere. Existing files are unchanged."
            return Explanation(f"the disk is full ({_file_text(error, text)})", hint)
        case RuntimeError() | OSError() if "EADDRINUSE" in text or getattr(error, "errno", 0) == errno.EADDRINUSE:
            return _port_in_use(text)
        case RuntimeError() if type(error).__name__ == "DistStoreError":
            hint = "Start all of them with the same MASTER_ADDR and MASTER_PORT, which this machine must reach."
            return Explanation(f"the processes of this job could not connect to each other ({text})", hint)
        case ConnectionError():
            hint = "Run the same command to continue; --debug shows the traceback."
            return Explanation(_file_text(error, text), hint)
        case OSError():
            return Explanation(_file_text(error, text), general)
        case MemoryError() | RuntimeError() if isinstance(error, MemoryError) or _is_torch_memory(text):
            hint = SMALLER.get(command, "Close other programs, or use part of the data.")
            return Explanation(f"out of memory{': ' if text else ''}{text}", hint)
        case _ if type(error).__name__ in DAMAGED:
            return Explanation(f"a file is damaged or cut short ({text})", "Create or download it again. " + general)
        case ValueError() | TypeError():
            return Explanation(text, general)
        case _:
            hint = "This is a bug in neuralbayes; please report it with --debug's output and `neuralbayes --version`."
            return Explanation(f"{type(error).__name__}: {text}", hint, BUG)


def paragraph(explanation: Explanation) -> Text:
    """One paragraph for the terminal: ``error: message. hint``."""
    message = explanation.message
    if message[-1:] not in (".", "!", "?"):
        message += "."
    return Text.assemble(("error: ", "bold red"), message, " ", (explanation.hint, "dim"))


def _in_options(text: str, words: Sequence[str]) -> str:
    """Turn a message about a parameter into one about the option that sets it."""
    if words[:1] not in (["label"], ["report"]):
        return text
    text = re.sub(r"`(columns|keep|key|sheet|sep|decimal|encoding)`", r"--\1", text)
    return text.replace("`folder`", "--model") if words[0] == "label" else text


def _usage_text(error: CycloptsError, text: str) -> str:
    """Explain an error in a command line."""
    command = " ".join(["neuralbayes", *(error.command_chain or ())])
    match error:
        case UnusedCliTokensError(unused_tokens=[*tokens]):
            return f"`{command}` does not accept {', '.join(map(repr, tokens))}"
        case MissingArgumentError(argument=argument, keyword=None) if argument is not None and not argument.tokens:
            instead = re.search(r"Did you mean .*\?$", text)
            return f"`{command}` needs {argument.name}. {instead.group() if instead else ''}".strip()
        case MissingArgumentError(keyword=str(option)):
            return f"{option} needs a value"
        case _:
            return text


def _example(error: CycloptsError) -> str:
    """Usage of a command with a missing argument."""
    pages = (error.app.help_epilogue or "") if error.app is not None else ""
    example = re.search(r"\[cyan\](neuralbayes .*?)\[/cyan\]", pages)
    return f"For example: {example.group(1)}. " if example and isinstance(error, MissingArgumentError) else ""


def _install_hint(error: ImportError, text: str) -> str:
    """How to install a package; empty if the message already says so."""
    from neuralbayes.cli.extras import extras

    if "pip install" in text:
        return "Run this in the environment of neuralbayes."
    missing = (error.name or "").partition(".")[0]
    package = PACKAGES.get(missing, missing)
    extra = next((name for name, members in extras().items() if package in {one.name for one in members}), None)
    if extra is not None:
        return f"Run pip install 'neuralbayes[{extra}]' in the environment of neuralbayes."
    return "Install it in the environment of neuralbayes; `neuralbayes --version` shows what is installed."


def _port_in_use(text: str) -> Explanation:
    port = re.search(r"port: (\d+)", text)
    number = port.group(1) if port else os.environ.get("MASTER_PORT", "")
    other = f"torchrun takes --master-port {int(number) + 1}" if number else "torchrun takes --master-port"
    message = f"port {number or 'of this job'} is in use on this machine, perhaps by another job"
    return Explanation(message, f"Use another port: {other}, other launchers read MASTER_PORT.")


def _near(words: Sequence[str], text: str) -> str:
    """Suggest a similar path or data set for an unknown name in `text`, as a question."""
    from neuralbayes.data.catalog import names

    for word in words[1:]:
        path = Path(word).expanduser()
        if word.startswith("-") or path.name not in text or path.exists():
            continue
        folder = path.parent
        there = list(folder.iterdir()) if folder.is_dir() and os.access(folder, os.R_OK) else []
        known = {name: name for name in names()} | {entry.stem: str(entry) for entry in there}
        if close := difflib.get_close_matches(path.stem, known, n=1, cutoff=0.7):
            return f"Did you mean {known[close[0]]}?"
    return ""


def _is_torch_memory(text: str) -> bool:
    """Whether a RuntimeError of torch means out of memory, on the CPU or the GPU."""
    return "can't allocate memory" in text or "out of memory" in text


def _file_text(error: OSError, text: str) -> str:
    """``path: reason`` for errors of the system, and the message itself for errors of the library."""
    if error.strerror is None or error.filename is None:
        return text
    path = re.sub(r"\.([^/\\]+)\.\w{8}\.tmp", r"\1", str(error.filename))  # a file to be written
    return f"{path}: {error.strerror.lower()}"
