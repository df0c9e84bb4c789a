"""Types of options, their values as text, and options from a config file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import CycloptsError, Parameter, Token, UnknownOptionError
from cyclopts.config import Toml

if TYPE_CHECKING:
    from cyclopts import App, ArgumentCollection

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
"""A flag without a --no- form."""

Json = Annotated[bool, Parameter(name="--json", negative="", show_default=False)]
Open = Annotated[bool, Parameter(name="--open", negative="", show_default=False)]
Out = Annotated[Path | None, Parameter(name=["--out", "-o"])]
Device = Annotated[str, Parameter(metavar="NAME")]

READ = ("sep", "decimal", "encoding", "sheet", "key", "split", "limit", "size")
"""Keys of --read."""

FROM_FILE = {
    *("n_clusters", "method", "reject", "random_state", "preset", "encoder", "alpha", "beta", "batch_size"),
    *("microbatch_size", "marginal", "epochs", "patience", "learning_rate", "normalize", "augment", "seed", "split"),
    *("limit", "size", "tensorboard", "layer", "head", "seeds", "baselines", "device", "json_", "quiet"),
}
"""Parameters that a config file may set: numbers, choices and flags. A file may come from a stranger, so it can name
neither code that is run nor a path that is read or written, nor allow overwriting."""


def options_from(path: Path) -> Callable[[App, tuple[str, ...], ArgumentCollection], None]:
    """A function for cyclopts' `App.config` that sets the options in the TOML file `path`."""
    file = Toml(path, must_exist=True, use_commands_as_keys=False, source=str(path))

    def fill(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        try:
            keys = list(file.config)
        except CycloptsError as error:
            raise CycloptsError(msg=f"{path} is not valid TOML, in which text needs quotes ({error.msg})") from error
        known = {argument.name.lstrip("-").lower(): argument.field_info.name for argument in arguments}
        for key in keys:
            name = key.replace("_", "-").lower()
            if name not in known and name not in ("config", "debug"):
                raise UnknownOptionError(token=Token(keyword=key, source=str(path)), argument_collection=arguments)
            if known.get(name) not in FROM_FILE:
                raise CycloptsError(msg=f"{path} must not set {key}: give it on the command line")
        file(app, commands, arguments)

    return fill


def check_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Raise unless whole numbers are whole. Without this check, cyclopts would round 2.5."""
    for argument in arguments:
        for token in argument.tokens if argument.hint in (int, int | None) else ():
            if not re.fullmatch(r"[+-]?\d+", str(token.value)):
                name = argument.name if token.source == "cli" else f"{token.keyword} in {token.source}"
                raise CycloptsError(msg=f"{name} must be a whole number, got {token.value!r}")


def number_of_clusters(text: str) -> int | str:
    """Parse --clusters."""
    if text == "auto":
        return text
    if not text.isdecimal() or int(text) < 2:
        raise ValueError(f"--clusters must be a whole number of at least 2, or auto, got {text!r}")
    return int(text)


def pairs(option: str, values: Sequence[str] | None, keys: Sequence[str] | None = None) -> dict[str, str] | None:
    """Parse a repeatable option NAME=VALUE. The last = separates: names of columns may contain one.

    Examples
    --------
    >>> pairs("--kind", ["zip=category", "a=b=ignore"])
    {'zip': 'category', 'a=b': 'ignore'}
    """
    found: dict[str, str] = {}
    for text in values or ():
        name, sign, value = text.partition("=") if keys else text.rpartition("=")
        if not name or not sign:
            raise ValueError(f"{option} must be NAME=VALUE, got {text!r}")
        if keys and name not in keys:
            raise ValueError(f"{option} must be one of {', '.join(f'{key}=...' for key in keys)}, got {text!r}")
        found[name] = value
    return found or None


def reading(values: Sequence[str] | None) -> dict[str, Any] | None:
    """Parse --read KEY=VALUE, with numbers for the limit and the size.

    Examples
    --------
    >>> reading(["sep=;", "size=48x64"]), reading(["limit=100"])
    ({'sep': ';', 'size': (48, 64)}, {'limit': 100})
    """
    found: dict[str, Any] = dict(pairs("--read", values, READ) or {})
    if "limit" in found:
        if not found["limit"].isdecimal() or int(found["limit"]) < 1:
            raise ValueError(f"--read limit must be a whole number of at least 1, got {found['limit']!r}")
        found["limit"] = int(found["limit"])
    if "size" in found:
        sides = re.fullmatch(r"([1-9]\d{0,3})(?:x([1-9]\d{0,3}))?", found["size"])
        if sides is None:
            raise ValueError(f"--read size must be a number of pixels, or two as in 48x64, got {found['size']!r}")
        found["size"] = (int(sides[1]), int(sides[2] or sides[1]))
    if found.get("sheet", "").isdecimal():
        found["sheet"] = int(found["sheet"])
    return found or None
