"""``neuralbayes demo``: run the methods on sample data and write a page."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from neuralbayes.cli.options import Open, OutFile, Quiet
from neuralbayes.cli.terminal import open_page, say, working

EXAMPLES = """Clusters a table, photographs and manifolds, learns features of digits, and writes one page with the \
results and the command for each. It downloads nothing, and the page works offline.

[bold]Examples[/bold]

  [cyan]neuralbayes demo[/cyan]
  [cyan]neuralbayes demo --out elsewhere/ --open[/cyan]
"""

app = App(name="demo", help_epilogue=EXAMPLES)


@app.default
def demo(*, out: OutFile = Path("demo"), open_: Open = False, quiet: Quiet = False) -> None:
    """Run the methods on sample data and write a page.

    Args:
        out: Folder for the page. Files of an earlier demo are replaced.
    """
    with working("computing", quiet=quiet) as doing:
        from neuralbayes.demo import run_demo

        page = run_demo(out, progress=doing)
    if not quiet:
        say(f"All results, on one page: {page}")
    if open_:
        open_page(page)
