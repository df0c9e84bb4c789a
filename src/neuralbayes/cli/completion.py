"""``neuralbayes --install-completion``: the tab key completes commands, options and their choices."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

EXAMPLES = """Writes a completion script for the shell and adds it to the startup file. Run it again after you upgrade \
neuralbayes.

[bold]Examples[/bold]

  [cyan]neuralbayes --install-completion[/cyan]
  [cyan]neuralbayes --install-completion --shell fish[/cyan]
  [cyan]neuralbayes --install-completion --shell bash --out completion.bash[/cyan]
"""

LOADED_BY = {
    "bash": "`source {}`",
    "zsh": "`compinit`, if it is in a folder of fpath and named _neuralbayes",
    "fish": "`source {}`",
    "powershell": "`. {}`",
}

app = App(name="--install-completion", help_epilogue=EXAMPLES)


@app.default
def install_completion(
    *,
    shell: Literal["bash", "zsh", "fish", "powershell"] | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
) -> None:
    """Install tab completion.

    Parameters
    ----------
    shell
        Name of the shell. By default the current one.
    out
        Write the script to this file and do not change the startup file.
    """
    from cyclopts.completion import detect_shell
    from cyclopts.completion.detect import ShellDetectionError

    from neuralbayes.cli import app as root

    if shell is None:
        try:
            shell = detect_shell()
        except ShellDetectionError as error:
            raise ValueError(
                f"the current shell is unknown; choose one with --shell: {', '.join(LOADED_BY)}"
            ) from error
    script = root.install_completion(shell=shell, output=out, add_to_startup=out is None)
    when = "in every new shell" if out is None else f"after {LOADED_BY[shell].format(script)}"
    print(f"{script}: the tab key completes neuralbayes in {shell} {when}")
