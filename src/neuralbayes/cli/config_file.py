"""Options of a command from a TOML or YAML file. A file contains only values: no tags, includes or variables."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from cyclopts import App, ArgumentCollection, CycloptsError, Token, UnknownOptionError

from neuralbayes.cli.options import Kind, key_of

RUN = "objective"
"""The option that names code to run. A config file, which may be untrusted, cannot set it."""


def options_from(path: Path) -> Callable[[App, tuple[str, ...], ArgumentCollection], None]:
    """A function for cyclopts' `App.config` that sets the options in the file `path`.

    Unlike `cyclopts.config.Toml`, it also sets positional arguments, and refuses tables named after commands.
    """

    def fill(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        known = {key_of(argument): argument for argument in arguments if argument.parse}
        for key, value in read_config(path).items():
            argument = known.get(str(key).replace("-", "_"))
            if argument is None:
                raise UnknownOptionError(token=Token(keyword=str(key), source=str(path)), argument_collection=arguments)
            if key == RUN:
                raise CycloptsError(msg=f"{key} in {path} would run code; give it on the command line, with --{RUN}")
            kind = Kind.of(argument.hint)
            if isinstance(value, dict) or (isinstance(value, list) and not kind.many):
                raise CycloptsError(msg=f"{key} in {path} must be {kind.words()}, got a {type(value).__name__}")
            if value is None or argument.has_tokens:  # null keeps the default; the command line wins
                continue
            for index, item in enumerate(value if isinstance(value, list) else [value]):
                argument.append(Token(keyword=str(key), value=str(item), source=str(path), index=index))

    return fill


def read_config(path: Path) -> dict[str, Any]:
    """The keys and values of a config file.

    Raises
    ------
    CycloptsError
        Unless it is TOML or YAML, by its suffix, with keys at the top level.
    ImportError
        If the file is YAML and PyYAML is not installed.
    """
    readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise CycloptsError(msg=f"--config must be a file that ends in {', '.join(readers)}, got {path}")
    try:
        content = reader(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        kind = "TOML, in which text needs quotes" if reader is _read_toml else "YAML"
        raise CycloptsError(msg=f"{path} is not valid {kind}: {error}") from error
    if not isinstance(content, dict):
        raise CycloptsError(msg=f"{path} must contain keys and values, got a {type(content).__name__}")
    return content


def _read_toml(text: str) -> Any:
    return tomllib.loads(text)


def _read_yaml(text: str) -> Any:
    try:
        yaml = import_module("yaml")
    except ImportError as error:
        raise ImportError("a config file in YAML needs PyYAML; TOML needs nothing", name="yaml") from error

    class Loader(yaml.SafeLoader):  # type: ignore[misc, name-defined]
        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):  # a few of them can expand to more than fits into memory
                raise ValueError("*aliases are not supported: write the value out")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value]
            if len(keys) > len(set(map(str, keys))):
                again = next(key for key in keys if keys.count(key) > 1)
                raise ValueError(f"the key {again!r} appears twice")
            return super().construct_mapping(node, deep)

    try:
        content = yaml.load(text, Loader)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error
    return {} if content is None else content
