"""``neuralbayes demo``: both objectives of the paper, on data without a download."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from neuralbayes.cli.browser import open_if_wanted
from neuralbayes.cli.options import Flag
from neuralbayes.cli.outputs import check_target

if TYPE_CHECKING:
    from neuralbayes.demo import Watch
    from neuralbayes.demo.digits import DigitsResult
    from neuralbayes.demo.manifolds import ManifoldResult
    from neuralbayes.demo.result import DemoResult

EXAMPLES = """Learns features of handwritten digits without labels, labels the four toy sets of the paper in 512 \
dimensions and a ring that cannot be divided, and compares the results with k-means. It downloads nothing, and writes \
one HTML page that works offline.

[bold]Examples[/bold]

  [cyan]neuralbayes demo[/cyan]
  [cyan]neuralbayes demo --open[/cyan]
  [cyan]neuralbayes demo --out elsewhere/ --seed 7[/cyan]
  [cyan]neuralbayes demo --json[/cyan]
"""

DOING = {"manifolds": "labelling manifolds", "digits": "learning digits", "page": "writing the page"}

app = App(name="demo", help_epilogue=EXAMPLES)


@app.default
def demo(
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])] = Path("demo"),
    seed: int = 0,
    open_: Annotated[bool | None, Parameter(name="--open", negative="--no-open", show_default=False)] = None,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
) -> None:
    """Cluster and learn features of sample data, and write a page with the results.

    Parameters
    ----------
    out
        Folder for demo.html, two pictures and result.json. Files of an earlier demo are replaced.
    seed
        Random seed of the data and the training.
    open_
        Open the page in the browser. By default, the command asks if it runs in a terminal.
    json_
        Print one JSON object and nothing else.
    quiet
        Print errors only.
    """
    if seed < 0:
        raise ValueError(f"--seed must be 0 or more, got {seed}")
    _check_folder(out)
    with _bars(enabled=not (quiet or json_)) as watch:
        from neuralbayes.demo import run  # takes a second or two, while the bars are already visible

        result = run(out, seed=seed, watch=watch)
    if json_:
        Console().out(json.dumps(result.to_dict(), indent=2, allow_nan=False), highlight=False)
    elif not quiet:
        _print(result, Console(highlight=False))
    if "page" in result.files:
        open_if_wanted(result.files["page"], False if open_ is None and (quiet or json_) else open_)


def _check_folder(out: Path) -> None:
    """Raise unless the demo may write there, before anything is computed."""
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"{out} is a file; choose a folder with --out")
    result, page = out / "result.json", out / "demo.html"
    if result.is_file():
        from neuralbayes.system.files import read_json

        content = read_json(result)
        if not (isinstance(content, dict) and {"manifolds", "digits"} <= content.keys()):
            raise FileExistsError(f"{result} was not written by neuralbayes demo; choose another folder with --out")
    elif page.is_file():
        from neuralbayes.report.explorer.page import is_page

        if not is_page(page):
            raise FileExistsError(f"{page} was not written by neuralbayes demo; choose another folder with --out")
    check_target(result, option="--out", force=True)


@contextmanager
def _bars(*, enabled: bool) -> Iterator[Watch]:
    """Show a bar for each part of the demo while the block runs, only in a terminal, and remove them at the end."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", style="dim", markup=False),
    )
    shown = enabled and console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        tasks = {part: progress.add_task(doing, total=None, start=False, what="") for part, doing in DOING.items()}

        def watch(part: str, what: str, done: int, total: int) -> None:
            if done == 0:
                progress.start_task(tasks[part])
            progress.update(tasks[part], completed=done, total=total, what=what)

        yield watch


def _print(result: DemoResult, console: Console) -> None:
    first = result.manifolds[0]
    _heading(console, f"Manifolds: {first.n_points:,} points of the plane, rotated into {first.n_features} dimensions")
    console.print(_manifold_table(result.manifolds))
    digits = result.digits
    console.print()
    _heading(console, f"Digits: features of {digits.n_train:,} images, learnt without labels")
    console.print(_probe_table(digits))
    console.print(_information_table(digits))
    console.print(Text(_verdict(result), style="bold"), soft_wrap=not console.is_terminal)
    # soft_wrap: a path on two lines cannot be copied
    for name, path in result.files.items():
        if name != "page":
            console.print(Text.assemble((f"{name:<10}", "dim"), str(path)), soft_wrap=True)
    page = result.files.get("page")
    if page is None:
        console.print(Text("No page was written; see the warning.", style="yellow"), soft_wrap=True)
    else:
        console.print(Text("All results, with pictures and an explorer of the states, on one page:"), soft_wrap=True)
        console.print(Text(str(page), style=f"bold cyan link {page.absolute().as_uri()}"), soft_wrap=True)


def _heading(console: Console, text: str) -> None:
    console.print(Text(text, style="bold"), soft_wrap=not console.is_terminal)


def _manifold_table(results: list[ManifoldResult]) -> Table:
    table = _table("set", "manifolds", "right", "k-means", "separation", "certified", "auto", "time")
    for r in results:
        table.add_row(
            r.name,
            str(r.n_clusters),
            "-" if r.right is None else f"{r.right:,}",
            "-" if r.kmeans_right is None else f"{r.kmeans_right:,}",
            f"{r.separation_percent:.1f}",
            Text("yes", style="green") if r.certified else Text("refused", style="yellow"),
            str(r.n_clusters_auto),
            f"{r.seconds:.1f} s",
        )
    table.caption = (
        "right: points with the correct label. separation: 0 to 100, of the weakest manifold. auto: the number of "
        "manifolds that is found if none is given."
    )
    return table


def _probe_table(digits: DigitsResult) -> Table:
    counts = list(digits.probes[0].accuracy)
    table = _table("features", "number", *(f"{n} labels per class" if n != "all" else "all labels" for n in counts))
    best = {n: max(probe.accuracy[n] for probe in digits.probes) for n in counts}
    for probe in digits.probes:
        cells = [
            Text(f"{100 * probe.accuracy[n]:.1f} %", style="green" if probe.accuracy[n] == best[n] else "")
            for n in counts
        ]
        table.add_row(probe.features, str(probe.n_features), *cells)
    table.caption = (
        f"Accuracy of a linear classifier on {digits.n_test} test images. With few labels, the mean of several draws. "
        "k-means: similarity to as many centres, learnt from the same images."
    )
    return table


def _information_table(digits: DigitsResult) -> Table:
    table = _table("layer", "states", "I(x; z) before", "after", "bound log K")
    for layer in digits.layers:
        nats = [f"{value:.2f} nats" for value in (layer.curve[0], layer.information, layer.bound)]
        table.add_row(layer.name, str(layer.n_states), *nats)
    return table


def _table(*headings: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, caption_justify="left")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="left" if i == 0 else "right", no_wrap=True)
    return table


def _verdict(result: DemoResult) -> str:
    whole = [r for r in result.manifolds if r.right is not None]
    perfect = sum(r.right == r.n_points and r.certified for r in whole)
    refused = [r.name for r in result.manifolds if r.right is None and not r.certified]
    parts = [f"{perfect} of {len(whole)} sets are labelled without an error and certified"]
    parts += [f"the certificate is refused for {', '.join(refused)}"] if refused else []
    return f"{'; '.join(parts)}; computed in {result.seconds:.0f} seconds."
