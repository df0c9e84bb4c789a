"""The command line. Commands are registered by import path and loaded when called, so that ``--help`` is fast."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from itertools import dropwhile
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Group, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.characters import never_fail_to_print
from neuralbayes.cli.config_file import options_from
from neuralbayes.cli.errors import explain, paragraph
from neuralbayes.cli.help import Flowing
from neuralbayes.cli.options import check_numbers

ABOUT = """Cluster unlabelled tables, images and texts, and explain the clusters.

It also learns features of images without labels."""

EXAMPLES = """[bold]Examples[/bold]

  See what it does, on data that needs no download:
  [cyan]neuralbayes demo --out demo[/cyan]

  Cluster the rows of a table, and keep the model:
  [cyan]neuralbayes label data.csv --clusters auto --save model/[/cyan]

  Explain the clusters on a page:
  [cyan]neuralbayes report model/ data.csv --open[/cyan]

  Label new rows with that model:
  [cyan]neuralbayes label new.csv --model model/[/cyan]

  Learn features of unlabelled images (a named data set, a folder, or an array):
  [cyan]neuralbayes pretrain my_images/ --out run/[/cyan]

  Measure how good the features are, compared with pixels:
  [cyan]neuralbayes probe run/ --data cifar10 --baselines[/cyan]

  Write the features of new images, or the encoder itself for other programs:
  [cyan]neuralbayes embed run/ new_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes export run/ --to onnx --out encoder.onnx[/cyan]

  See what a run has learnt:
  [cyan]neuralbayes report run/ --open[/cyan]

Use COMMAND --help for the options of a command.
"""

COMMANDS = {
    "First steps": {
        "demo": "Cluster and learn features of sample data, and write a page with the results.",
    },
    "Tables": {
        "label": "Cluster the rows of a table, texts or images.",
    },
    "Images": {
        "pretrain": "Learn features of unlabelled images.",
        "probe": "Measure how good the features of an encoder are.",
        "embed": "Write the features of images to a file.",
        "export": "Export an encoder or a clusterer to ONNX or torch.export.",
    },
    "Results": {
        "report": "Write a page that explains a model or a run.",
    },
}
"""Commands with their descriptions, in groups, in the order of use."""

EVERYWHERE = Group("Everywhere", sort_key=len(COMMANDS))
"""Options of every command."""

NOBODY_READS = 128 + 13  # exit code of a program that SIGPIPE ended


def _version_report() -> str:
    from neuralbayes.cli.version import version_report  # imported when asked for

    return version_report()


app = App(
    name="neuralbayes",
    help=ABOUT,
    help_epilogue=EXAMPLES,
    help_format="rich",
    help_formatter=Flowing(),
    version=_version_report,
    default_parameter=Parameter(negative_iterable=()),
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # `main` prints one line about it
)


def _register() -> None:
    for place, (title, commands) in enumerate(COMMANDS.items()):
        group = Group(title, sort_key=place)
        for number, (name, text) in enumerate(commands.items()):
            app.command(f"neuralbayes.cli.{name}:app", name=name, help=text, group=group, sort_key=number)
    text = "Install tab completion for bash, zsh or fish."
    app.command("neuralbayes.cli.completion:app", name="--install-completion", help=text, group=group)
    for flag in ("--help", "--version"):
        app[flag].group = (group,)


_register()
app.meta.suppress_keyboard_interrupt = False
app.meta.config = ()  # otherwise it would use that of `app`


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(metavar="FILE", group=EVERYWHERE)] = None,
    debug: Annotated[bool, Parameter(negative="", show_default=False, group=EVERYWHERE)] = False,
) -> Any:
    """Run a command with options from the command line and from a file.

    Parameters
    ----------
    config
        Read options from a TOML or YAML file. Options on the command line take precedence.
    debug
        Show the traceback of an error.
    """
    app.config = (*(() if config is None else (options_from(config),)), check_numbers)
    return app(tokens)


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process.

    Parameters
    ----------
    tokens : sequence of str, optional
        Arguments after the name of the program; by default those of this process.

    Returns
    -------
    int
        0 on success, 2 for an error that the user can fix, 1 for a bug, 130 after Ctrl-C, 141 if the output is closed;
        or the result of the command.
    """
    words = list(sys.argv[1:] if tokens is None else tokens)
    words = ["./-" if word == "-" else word for word in words]  # a stream, not an option
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    debug = "--debug" in words or os.environ.get("NEURALBAYES_DEBUG", "0") not in ("", "0")
    never_fail_to_print()
    stderr = Console(stderr=True, highlight=False)

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        stderr.print(Text(f"warning: {message}", style="yellow"), soft_wrap=not stderr.is_terminal)

    try:
        with warnings.catch_warnings():
            warnings.showwarning = show
            code = app.meta(words, error_console=stderr, print_error=False, exit_on_error=False)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        stderr.print(Text(": ".join(["interrupted", *map(str, interrupt.args)]), style="yellow"), soft_wrap=True)
        return 128 + signal.SIGINT
    except (Exception, SystemExit) as error:
        if _nobody_reads(error):
            return NOBODY_READS
        if isinstance(error, SystemExit):
            raise
        if debug:
            traceback.print_exception(error)
        explanation = explain(error, list(dropwhile(lambda word: word not in app, words)))
        stderr.print(paragraph(explanation), soft_wrap=not stderr.is_terminal)
        return explanation.exit_code
    return code if isinstance(code, int) else 0


def _nobody_reads(error: BaseException) -> bool:
    """Whether the reader of our output, such as `head`, has exited, which rich turns into a SystemExit.

    Remaining output is then discarded.
    """
    cause = error.__context__ if isinstance(error, SystemExit) else error
    if not isinstance(cause, BrokenPipeError):
        return False
    with suppress(OSError):  # an output that is not a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return True
