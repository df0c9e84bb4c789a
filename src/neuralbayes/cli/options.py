"""Options that several commands share, their values as text, and options from a config file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from cyclopts import CycloptsError, Parameter, Token, UnknownOptionError
from cyclopts.config import Toml

if TYPE_CHECKING:
    from cyclopts import App, ArgumentCollection


Flag = Annotated[bool, Parameter(negative="", show_default=False)]
Out = Annotated[Path | None, Parameter(name=["--out", "-o"])]
OutFile = Annotated[Path, Parameter(name=["--out", "-o"])]
Force = Annotated[Flag, Parameter(name="--force", help="Overwrite existing files.")]
Json = Annotated[Flag, Parameter(name="--json", help="Print one JSON object and nothing else.")]
Open = Annotated[Flag, Parameter(name="--open", help="Open the page in the browser.")]
Quiet = Annotated[Flag, Parameter(name="--quiet", help="Print errors only.")]
Split = Annotated[Literal["train", "test", "unlabeled"], Parameter(help="Which part of DATA.")]
Layer = Annotated[Literal["last", "1", "2", "3", "4"], Parameter(help="Hidden layer of the encoder.")]
DEVICE = "Device of networks: cpu, cuda, cuda:1 or mps; auto uses the best one available."
Device = Annotated[str, Parameter(metavar="NAME", help=DEVICE)]
REJECT = "Give outliers the label -1: samples of at most this typicality. 0.01 rejects 1 % of ordinary new samples."
Reject = Annotated[float | None, Parameter(metavar="SHARE", help=REJECT)]
AGAIN = "The features that the model was fitted to, where it may not name them: file.py:function, FILE.npy, a network."
FeaturesAgain = Annotated[str | None, Parameter(name="--features", metavar="FILE", help=AGAIN)]

READ = ("sep", "decimal", "encoding", "sheet", "key", "split", "limit", "size")  # keys of --read

# Options that a config file may set: numbers, choices and flags. A file may come from a stranger, so it can name
# neither code that is run nor a path that is read or written, nor allow overwriting.
FROM_FILE = {
    *("alpha", "baselines", "batch", "beta", "clusters", "device", "encoder", "epochs", "head", "json"),
    *("layer", "learning-rate", "limit", "method", "microbatch", "preset", "quiet", "reject", "seed"),
    *("seeds", "size", "split"),
}

MOST_BYTES = 10_000  # of a config file: a key of many parts takes memory by the square of its length


def options_from(path: Path) -> Callable[[App, tuple[str, ...], ArgumentCollection], None]:
    """A function for cyclopts' `App.config` that sets the options in the TOML file `path`."""
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise CycloptsError(msg=f"{path} must have at most {MOST_BYTES} bytes, which is enough for all options")
    file = Toml(path, must_exist=True, use_commands_as_keys=False, source=str(path))

    def fill(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        try:
            keys = list(file.config)
        except CycloptsError as error:
            raise CycloptsError(msg=f"{path} is not valid TOML, in which text needs quotes ({error.msg})") from error
        known = {argument.name.lstrip("-").lower() for argument in arguments}
        for key in keys:
            name = key.replace("_", "-").lower()
            if name in known | {"config", "debug"} and name not in FROM_FILE:
                raise CycloptsError(msg=f"{path} must not set {key}: give it on the command line")
            if name not in known:
                raise UnknownOptionError(token=Token(keyword=key, source=str(path)), argument_collection=arguments)
        file(app, commands, arguments)

    return fill


def check_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Raise unless whole numbers are whole. Without this check, cyclopts would round 2.5."""
    for argument in arguments:
        for token in argument.tokens if int in (argument.hint, *get_args(argument.hint)) else ():
            if not re.fullmatch(r"[+-]?\d+|auto", str(token.value)):
                name = argument.name if token.source == "cli" else f"{token.keyword} in {token.source}"
                raise CycloptsError(msg=f"{name} must be a whole number, got {token.value!r}")


def pairs(option: str, values: Sequence[str] | None, keys: Sequence[str] = ()) -> dict[str, Any] | None:
    """Parse a repeatable option NAME=VALUE, where NAME may contain a =, or is one of `keys`."""
    found: dict[str, Any] = {}
    for text in values or ():
        name, sign, value = text.partition("=") if keys else text.rpartition("=")
        if not name or not sign or (keys and name not in keys):
            forms = ", ".join(f"{key}=..." for key in keys) or "NAME=VALUE"
            raise ValueError(f"{option} must be {'one of ' * bool(keys)}{forms}, got {text!r}")
        found[name] = value
    return found or None
