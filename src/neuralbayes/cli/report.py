"""``neuralbayes report``: write the page of a model or a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from neuralbayes.cli.files import check_exists, check_target, limited_memory, model_folder
from neuralbayes.cli.options import Flag, Open, Out
from neuralbayes.cli.terminal import open_page, say, working

EXAMPLES = """The page is one HTML file that works offline. A model keeps no data, so DATA must be given: the data that \
it was fitted to, or new data. For a run of `neuralbayes pretrain`, the page shows what its states respond to.

[bold]Examples[/bold]

  [cyan]neuralbayes report customers-clusters/ customers.csv --open[/cyan]
  [cyan]neuralbayes report customers-clusters/ new.csv --out new.html[/cyan]
  [cyan]neuralbayes report tickets-clusters/ tickets.csv --features mine.py:embed[/cyan]
  [cyan]neuralbayes report run/ images/[/cyan]
"""

app = App(name="report", help_epilogue=EXAMPLES)


@app.default
def report(
    model: Path,
    data: Path | None = None,
    /,
    *,
    out: Out = None,
    features: Annotated[str | None, Parameter(metavar="NETWORK|FILE")] = None,
    open_: Open = False,
    force: Flag = False,
    quiet: Flag = False,
) -> None:
    """Write the page of a model or a run.

    Parameters
    ----------
    model
        A result of neuralbayes cluster, or its model/; or a run of neuralbayes pretrain.
    data
        The data to show. A run on a named data set, such as mnist, needs none.
    out
        Output file, by default report.html in the folder of the result or run.
    features
        The features that the model was fitted to, if they are code or a file, which a model cannot name.
    open_
        Open the page in the browser.
    force
        Overwrite a file that is not the page of this model or run.
    quiet
        Print errors only.
    """
    check_exists(model)
    is_run = (model / "config.json").is_file() or (model / "encoder.json").is_file()
    folder = model if is_run else model_folder(model)
    own = (folder.parent if folder.name == "model" else folder) / "report.html"
    page = own if out is None else out
    check_target(page, force=force or page == own)
    if data is not None:
        check_exists(data, sets=True)
    with limited_memory(), working("writing the page", quiet=quiet):
        if is_run:
            _report_run(folder, data, page)
        else:
            result = open_model(folder, features)
            if data is None:
                read = str(result.points.recipe.get("data") or "DATA")
                raise ValueError(
                    "a model keeps no data, and does not open files by itself; name the data: neuralbayes report "
                    f"{shlex.quote(str(model))} {shlex.quote(read)}"
                )
            result.on(str(data)).report(page)
    if not quiet:
        say(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")
    if open_:
        open_page(page)


def _report_run(run: Path, data: Path | None, page: Path) -> None:
    from neuralbayes.cli.runs import images_of, load_encoder
    from neuralbayes.report import write_run_page

    images = images_of(run, None if data is None else str(data), load_encoder(run).shape)
    write_run_page(run, images, page)
