"""The command line. Each command is a file that parses its options, calls the library and prints the result."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Group, Parameter

from neuralbayes.cli.errors import explain
from neuralbayes.cli.options import READ, check_numbers, options_from
from neuralbayes.cli.terminal import Flowing, never_fail_to_print, tell

ABOUT = """Cluster tables, photographs and texts without labels, and explain the clusters.

It also learns features of images without labels."""

EXAMPLES = """[bold]Examples[/bold]

  Cluster the rows of a table, the pictures in a folder, the texts in a column:
  [cyan]neuralbayes cluster customers.csv --open[/cyan]
  [cyan]neuralbayes cluster photos/ --open[/cyan]
  [cyan]neuralbayes cluster tickets.csv --text body --open[/cyan]

  Assign new rows to the same clusters:
  [cyan]neuralbayes predict customers-clusters/ new.csv[/cyan]

  Learn features of unlabelled images, and compute them for new ones:
  [cyan]neuralbayes pretrain images/ --out run/[/cyan]
  [cyan]neuralbayes embed run/ new_images/ --out features.parquet[/cyan]

Use COMMAND --help for the options of a command.
"""

COMMANDS = {  # with their descriptions, in groups, in the order of use
    "Clusters": {
        "cluster": "Cluster a table, pictures or texts: labels, a page and a model.",
        "predict": "Assign new samples to the clusters of a model.",
        "report": "Write the page of a model or a run.",
    },
    "Features of images": {
        "pretrain": "Learn features of unlabelled images.",
        "embed": "Write the features of images to a file.",
        "probe": "Evaluate features with a classifier.",
    },
    "More": {
        "export": "Export an encoder or a clusterer to ONNX or torch.export.",
        "demo": "Run the methods on sample data and write a page.",
    },
}

EVERYWHERE = Group("Everywhere", sort_key=len(COMMANDS))
INTERRUPTED, NOBODY_READS = 128 + 2, 128 + 13  # as shells report SIGINT and SIGPIPE


app = App(
    name="neuralbayes",
    help=ABOUT,
    help_epilogue=EXAMPLES,
    help_format="rich",
    help_formatter=Flowing(),
    version=lambda: import_module("neuralbayes.cli.version").version_report(),  # it imports torch
    default_parameter=Parameter(negative_iterable=()),
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # `main` prints one line about it
)
for place, (title, commands) in enumerate(COMMANDS.items()):
    group = Group(title, sort_key=place)
    for number, (name, text) in enumerate(commands.items()):  # imported when called, so that --help is fast
        app.command(f"neuralbayes.cli.{name}:app", name=name, help=text, group=group, sort_key=number)
app.register_install_completion_command(help="Install tab completion for bash, zsh or fish.", group=group)
for flag in ("--help", "--version"):
    app[flag].group = (group,)
app.meta.suppress_keyboard_interrupt = False
app.meta.config = ()  # otherwise it would use that of `app`


@app.meta.default
def _launch(
    *tokens: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    config: Annotated[Path | None, Parameter(metavar="FILE", group=EVERYWHERE)] = None,
    debug: Annotated[bool, Parameter(negative="", show_default=False, group=EVERYWHERE)] = False,
) -> Any:
    """Run a command with options from the command line and from a file.

    Args:
        config: Read numbers, choices and flags from a TOML file, such as epochs = 3. The command line takes
            precedence. Paths and code are only accepted on the command line.
        debug: Show the traceback of an error.
    """
    app.config = (*(() if config is None else (options_from(config),)), check_numbers)
    return app(tokens)


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command, by default that of this process, and return its exit code.

    It is 0 on success, 2 for an error that the user can fix, 1 for a bug, 130 after Ctrl-C, 141 if nobody reads.
    """
    words = list(sys.argv[1:] if tokens is None else tokens)
    words = ["./-" if word == "-" else word for word in words]  # standard input, not an option
    if words[:1] == ["help"]:
        words = [*words[1:], "--help"]
    debug = "--debug" in words or os.environ.get("NEURALBAYES_DEBUG", "0") not in ("", "0")
    never_fail_to_print()
    os.environ["PYTHONSAFEPATH"] = "1"  # processes that a command starts must not import from the current folder
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # beside other programs, threads that spin take minutes
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Image size .* could be decompression bomb")  # it is refused in words
            warnings.showwarning = lambda text, *_, **__: tell(
                " ".join(["warning:", *str(text).split()]), style="yellow"
            )
            app.meta(words, print_error=False, exit_on_error=False)
        sys.stdout.flush()
    except KeyboardInterrupt as interrupt:
        tell(": ".join(["interrupted", *map(str, interrupt.args)]), style="yellow")
        return INTERRUPTED
    except (Exception, SystemExit) as error:
        if isinstance(error.__context__ if isinstance(error, SystemExit) else error, BrokenPipeError):
            with suppress(OSError):  # the reader, such as `head`, has exited: discard the rest
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return NOBODY_READS
        if isinstance(error, SystemExit):
            raise
        if debug:
            traceback.print_exception(error)
        failed: BaseException | None = error
        while failed is not None:  # free what did not fit, because the message needs some memory too
            traceback.clear_frames(failed.__traceback__)
            failed = failed.__cause__ or failed.__context__
        command = next((word for word in words if word in app and word[0] != "-"), "")
        options = {key: f"--read {key}=..." for key in READ} if command == "cluster" else {}
        for argument in app[command].assemble_argument_collection() if command else ():
            options[argument.field_info.name] = argument.name  # parameters have the names of the library
        message, hint, code = explain(error, command, options)
        tell(("error: ", "bold red"), f"{message} ", (hint, "dim"))
        return code
    return 0
