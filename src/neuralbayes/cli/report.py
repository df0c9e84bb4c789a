"""``neuralbayes report``: the results page, from the numbers that `neuralbayes reproduce` recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

EXAMPLES = """Nothing is computed but means: the page says what the JSON files in the folder say.

[bold]Examples[/bold]

  [cyan]neuralbayes report results/reproduce --out docs[/cyan]
  [cyan]neuralbayes report reproduce --out page[/cyan]
"""

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
app = App(name="report", help_epilogue=EXAMPLES)


@app.default
def report(
    results: Path,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    quiet: Flag = False,
) -> None:
    """Write the results page: each claim of the paper in a line, tables and pictures.

    Parameters
    ----------
    results
        Folder that `neuralbayes reproduce` recorded into by --record, or its --out.
    out
        Folder for results.md; pictures go into pictures/ in it.
    quiet
        Print nothing but errors.
    """
    from neuralbayes.reproduce.page import write_page

    if not results.is_dir():
        raise FileNotFoundError(f"{results} is not a folder of results")
    written = write_page(results, out)
    if not quiet:
        console = Console(highlight=False)
        for path in written:
            console.print(Text(str(path)), soft_wrap=True)
