"""``neuralbayes config``: an example of a config file."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from neuralbayes.cli.config_file import RUN
from neuralbayes.cli.options import Kind, key_of

if TYPE_CHECKING:
    from cyclopts import Argument

EXAMPLES = """Prints all options of a command in TOML, explained and commented out. Every command reads such a file \
with --config. Options on the command line take precedence. A YAML file has the same keys.

[bold]Examples[/bold]

  [cyan]neuralbayes config pretrain > run.toml[/cyan]
  [cyan]neuralbayes pretrain --config run.toml --epochs 3[/cyan]
"""

WIDTH = 100

Command = Literal["demo", "doctor", "label", "pretrain", "sweep", "probe", "embed", "export", "reproduce", "report"]
app = App(name="config", help_epilogue=EXAMPLES)


@app.default
def config(command: Annotated[Command, Parameter(show_choices=True)], /) -> None:
    """Print an example config file.

    Parameters
    ----------
    command
        Name of the command.
    """
    from neuralbayes.cli import app as root

    arguments = root[command].assemble_argument_collection(parse_docstring=True)
    lines = [
        f"# Options of `neuralbayes {command} --config FILE`. Remove the # in front of an option to use it.",
        *(line for argument in arguments if key_of(argument) != RUN for line in ("", *_entry(argument))),
    ]
    print("\n".join(lines))


def _entry(argument: Argument) -> list[str]:
    """The description, type and default of an option, as comments."""
    kind = Kind.of(argument.hint)
    takes = [kind.words().capitalize()]
    takes += ["in quotes"] if kind.type in (str, Path) else []
    takes += ["required"] if argument.required else []
    about = " ".join(f"{argument.parameter.help or ''} {', '.join(takes)}.".split())
    default = argument.field_info.default
    value = "" if argument.required or default is None else f" {_toml(default)}"
    return [*textwrap.wrap(about, WIDTH, initial_indent="# ", subsequent_indent="# "), f"#{key_of(argument)} ={value}"]


def _toml(value: Any) -> str:
    """Format a default as TOML, which for numbers, booleans and text is the same as JSON."""
    return json.dumps(str(value) if isinstance(value, Path) else value)
