"""Command lines that are parsed but not run."""

import shlex

from neuralbayes.cli import app
from neuralbayes.cli.config_file import options_from
from neuralbayes.cli.options import check_numbers


def parse(line):
    """Parse a shell line that calls neuralbayes like `main`; raises an error if `main` would refuse it."""
    words = shlex.split(line.split(" > ")[0].split(" | ")[0].replace("\\\n", " "), comments=True)
    quiet = {"print_error": False, "exit_on_error": False}
    _, bound, _ = app.meta.parse_args(words[words.index("neuralbayes") + 1 :], **quiet)
    file = bound.arguments.get("config")
    app.config = (*(() if file is None else (options_from(file),)), check_numbers)
    return app.parse_args(bound.arguments.get("tokens", ()), **quiet)
