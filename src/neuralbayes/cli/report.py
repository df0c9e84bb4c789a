"""``neuralbayes report``: write a page on a run or a model."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.progress import Progress
from rich.text import Text

from neuralbayes.cli.browser import open_if_wanted
from neuralbayes.cli.busy import busy
from neuralbayes.cli.options import Device, Flag, on_device
from neuralbayes.cli.report_inputs import Asked, open_input

EXAMPLES = """FOLDER is a saved model (neuralbayes label --save) or a run (neuralbayes pretrain --out). The page is a \
single HTML file that works offline. It shows the clusters or states with their typical and borderline members, \
warnings, and a map.

[bold]Examples[/bold]

  [cyan]neuralbayes report run --open[/cyan]
  [cyan]neuralbayes report run cifar10 --split test --out test.html[/cyan]
  [cyan]neuralbayes report model data.csv --labels species[/cyan]
  [cyan]neuralbayes report model photos/ --features timm:resnet50.a1_in1k[/cyan]
  [cyan]neuralbayes report model tickets.csv --text body --features mine.py:network[/cyan]
  [cyan]neuralbayes report run --against other_run[/cyan]
"""

app = App(name="report", help_epilogue=EXAMPLES)

MOST_SAMPLES = 20_000


@app.default
@on_device
def report(
    folder: Path,
    data: str | None = None,
    /,
    *,
    against: Path | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    split: Literal["train", "test", "unlabeled"] | None = None,
    limit: int | None = None,
    labels: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    text: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    features: Annotated[str | None, Parameter(metavar="NETWORK|FILE.npy")] = None,
    size: Annotated[str | None, Parameter(metavar="N|HxW")] = None,
    key: str | None = None,
    sheet: Annotated[str | None, Parameter(metavar="NAME|N")] = None,
    sep: Annotated[str | None, Parameter(metavar="MARK")] = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
    samples: int = 5000,
    map_: Annotated[Literal["tsne", "pca"], Parameter(name="--map")] = "tsne",
    device: Device = "auto",
    open_: Annotated[Flag, Parameter(name="--open")] = False,
    quiet: Flag = False,
) -> None:
    """Write a page that explains a model or a run.

    Parameters
    ----------
    folder
        A finished run or a saved model.
    data
        The data to show: images for a run (by default those it was trained on), images or a table for a model.
    against
        Another run or model to compare with.
    out
        Output file, report.html by default.
    split
        Which part of the images. By default the one that the run was trained on.
    limit
        For images: use only the first N.
    labels
        Column of a table with the true classes, to compare with the clusters.
    text
        The column of the texts, for a model of texts (neuralbayes label --text).
    features
        The network or .npy file that the model was fitted to (neuralbayes label --features). Features that label kept
        next to the labels are reused. Others are computed and kept next to the page.
    size
        With --features, for images: the image size, as for neuralbayes label.
    key
        Which array of a .npz file to use.
    sheet
        Sheet of an .xlsx file, by name or number. By default the first.
    sep
        Separator of a text file, or one of tab and space. Detected by default, like the next two options.
    decimal
        Decimal mark of a text file.
    encoding
        Encoding of a text file, such as cp1252.
    samples
        Maximum number of samples on the page.
    map_
        Method that maps the samples of an encoder to the plane.
    device
        Device of the networks: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    open_
        Open the page in the browser.
    quiet
        Print errors only.
    """
    reading = {"key": key, "sheet": sheet, "sep": sep, "decimal": decimal, "encoding": encoding}
    kinds = [(one, _kind(one)) for one in (folder, against) if one is not None]
    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    if not 2 <= samples <= MOST_SAMPLES:
        raise ValueError(f"--samples must be from 2 to {MOST_SAMPLES:,}, got {samples}")
    page = Path("report.html") if out is None else out
    _check_page(page)
    start = time.perf_counter()
    console = Console(highlight=False)
    with busy("reading", enabled=not quiet) as shown:

        def watch(doing: str) -> None:
            if isinstance(shown, Progress):
                shown.update(shown.task_ids[0], description=doing)

        asked = Asked(data, split, labels, text, features, size, limit, page, reading, progress=not quiet)
        inputs = [open_input(one, kind, asked) for one, kind in kinds]
        # Two sides with the same samples share their pictures; otherwise each has fewer of its own.
        shared: dict[Any, Any] = {}
        n = samples if len({one.looks_at for one in inputs}) == 1 else max(2, 3 * samples // 5)
        sides = [one.side(n, shared, map_, watch) for one in inputs]
        if len({side.title for side in sides}) < len(sides):
            sides = [replace(side, title=str(one.folder)) for side, one in zip(sides, inputs, strict=True)]
        watch("writing")
        from neuralbayes.report.explorer import write_page

        write_page(sides, page)
    if not quiet:
        seconds = time.perf_counter() - start
        megabytes = page.stat().st_size / 1e6
        console.print(Text(f"{page} ({megabytes:.1f} MB, {seconds:.0f} s)"), soft_wrap=True)
        for side in sides:
            for warning in side.warnings:
                console.print(Text(f"{side.title}: {warning}", style="yellow"), soft_wrap=not console.is_terminal)
    if open_:
        open_if_wanted(page, True)


def _kind(folder: Path) -> Literal["model", "run"]:
    """The kind of a folder, by its files."""
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is not a folder with a run or a model")
    if (folder / "model.json").is_file():
        return "model"
    if (folder / "encoder.json").is_file() or (folder / "config.json").is_file():
        return "run"
    raise FileNotFoundError(
        f"{folder} holds no results: it must be a run of neuralbayes pretrain (config.json), or a model of neuralbayes "
        "label --save (model.json)"
    )


def _check_page(page: Path) -> None:
    """Raise unless the page may be written there, before anything is computed."""
    from neuralbayes.cli.outputs import check_target
    from neuralbayes.report.explorer.page import is_page

    if page.is_file() and not is_page(page):
        raise FileExistsError(
            f"{page} exists and was not written by neuralbayes report; choose another file with --out"
        )
    check_target(page, option="--out", force=True)
