"""The command line. Commands are named here by import path and loaded when called, so that ``--help`` is instant."""

from __future__ import annotations

import io
import os
import signal
import sys
import traceback
from collections.abc import Sequence

from cyclopts import App
from rich.console import Console

from neuralbayes import __version__
from neuralbayes.cli.errors import explain, paragraph

ABOUT = """Finds discrete structure in unlabelled data.

A small network learns p(z|x), the probability of each of a few states z given a row x. What follows from it in closed \
form, p(z), p(x|z) and how far the states are apart, says which rows belong together and whether they truly do."""

EXAMPLES = """[bold]Examples[/bold]

  See what it does, on data that need no download:
  [cyan]neuralbayes demo --out demo[/cyan]

  Label each row of a table with one of three manifolds:
  [cyan]neuralbayes label data.csv --clusters 3[/cyan]

  Let the data say how many there are, and keep the model:
  [cyan]neuralbayes label data.csv --clusters auto --save model/[/cyan]

  Label new rows with that model:
  [cyan]neuralbayes label new.csv --model model/[/cyan]

  Which image data sets there are, and which are on this computer:
  [cyan]neuralbayes data list[/cyan]

  Learn features of unlabelled images: a named set, a folder of pictures, or an array:
  [cyan]neuralbayes pretrain my_images/ --out run/[/cyan]

  Search the settings of that for those with the best features:
  [cyan]neuralbayes sweep cifar10 --search alpha=0:10 learning_rate=1e-4:1e-1:log --out sweep/[/cyan]

  See how good the features are, with labels, against a random encoder and the pixels:
  [cyan]neuralbayes probe run/ --data cifar10 --baselines[/cyan]

  Write the features of new images, or the encoder itself for other programs:
  [cyan]neuralbayes embed run/ new_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes export run/ --to onnx --out encoder.onnx[/cyan]

  Run a table of the paper, and make a page of all results:
  [cyan]neuralbayes reproduce table-batch --scale laptop --record results/[/cyan]
  [cyan]neuralbayes report results/ --out page/[/cyan]

COMMAND --help explains a command. --debug, anywhere, shows the traceback of an error.
"""

app = App(
    name="neuralbayes",
    help=ABOUT,
    help_epilogue=EXAMPLES,
    help_format="rich",
    version=__version__,
    result_action="return_value",
    suppress_keyboard_interrupt=False,  # `main` says one line about it
)
app.command("neuralbayes.cli.pretrain:app", name="pretrain", help="Learn features of unlabelled images.")
app.command("neuralbayes.cli.sweep:app", name="sweep", help="Search the settings of pretrain.")
app.command("neuralbayes.cli.probe:app", name="probe", help="Tell how good the features of an encoder are.")
app.command("neuralbayes.cli.embed:app", name="embed", help="Write the features of images to a file.")
app.command("neuralbayes.cli.export:app", name="export", help="Write an encoder for other programs.")
app.command("neuralbayes.cli.data:app", name="data", help="Named data sets: list, fetch, verify, find.")
app.command("neuralbayes.cli.demo:app", name="demo", help="Label manifolds and learn digits; write pictures.")
app.command("neuralbayes.cli.reproduce:app", name="reproduce", help="Run the tables and figures of the paper.")
app.command("neuralbayes.cli.report:app", name="report", help="Make a page of what was reproduced.")
app.command("neuralbayes.cli.label:app", name="label", help="Label the rows of a table by the manifold they lie on.")


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code of the process.

    Parameters
    ----------
    tokens : sequence of str, optional
        The words of the command line after the program's name; by default those of this process.

    Returns
    -------
    int
        0 on success, 2 if the user can mend what went wrong, 1 if not (a bug), 130 after Ctrl-C.
    """
    words = list(sys.argv[1:] if tokens is None else tokens)
    debug = "--debug" in words or os.environ.get("NEURALBAYES_DEBUG", "0") not in ("", "0")
    words = [word for word in words if word != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that the terminal cannot show must not stop a command
            stream.reconfigure(errors="backslashreplace")
    stderr = Console(stderr=True, highlight=False)
    try:
        app(words, error_console=stderr, print_error=False, exit_on_error=False)
    except KeyboardInterrupt:
        stderr.print("interrupted", style="yellow")
        return 128 + signal.SIGINT
    except Exception as error:
        if debug:
            traceback.print_exception(error)
        explanation = explain(error)
        stderr.print(paragraph(explanation), soft_wrap=not stderr.is_terminal)
        return explanation.exit_code
    return 0
