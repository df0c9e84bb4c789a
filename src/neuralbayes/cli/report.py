"""``neuralbayes report``: write the page of a model or a run."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import NoReturn

from cyclopts import App

from neuralbayes.cli.files import check_exists, check_target, model_folder
from neuralbayes.cli.options import FeaturesAgain, Force, Open, Out, Quiet
from neuralbayes.cli.runs import is_run, load_encoder, load_fitting
from neuralbayes.cli.terminal import open_page, say, working
from neuralbayes.system.limits import limited_memory

EXAMPLES = """The page is one HTML file that works offline. A model does not keep your data, so DATA must be \
given: the data that it was fitted to, or new data. For a run of `neuralbayes pretrain`, it shows what the \
states respond to.

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
    data: str | None = None,
    /,
    *,
    out: Out = None,
    features: FeaturesAgain = None,
    open_: Open = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the page of a model or a run.

    Args:
        model: A result of neuralbayes cluster, or its model/; or a run of neuralbayes pretrain.
        data: The data to show.
        out: Output file, by default report.html in the folder of the result or run.
    """
    check_exists(model)
    folder = model if is_run(model) else model_folder(model)
    own = (folder.parent if folder.name == "model" else folder) / "report.html"
    page = own if out is None else out
    check_target(page, force=force or page == own)
    check_exists(data if data is not None else _remembered(model, folder))
    with limited_memory(data), working("writing the page", quiet=quiet):
        if is_run(model):
            from neuralbayes.report.run import write_run_page

            write_run_page(model, load_fitting(load_encoder(model), str(data), "train", quiet=quiet), page)
        else:
            import neuralbayes

            neuralbayes.load(folder).on(data, features=features).report(page)
    if not quiet:
        say(f"{page} ({page.stat().st_size / 1e6:.1f} MB)")
    if open_:
        open_page(page)


def _remembered(model: Path, folder: Path) -> NoReturn:
    """Raise an error that shows the data that a model or run was fitted to, which it never opens by itself."""
    from neuralbayes.system.files import read_json

    path = folder / ("data.json" if is_run(folder) else "model.json")
    known = read_json(path) if path.is_file() else {}
    for key in ("about", "recipe"):
        known = known.get(key, known) if isinstance(known, dict) else {}
    remembered = str(known.get("data", "DATA")) if isinstance(known, dict) else "DATA"
    command = f"neuralbayes report {shlex.quote(str(model))} {shlex.quote(remembered)}"
    raise ValueError(f"a model does not keep your data and opens no file by itself; name the data: {command}")
