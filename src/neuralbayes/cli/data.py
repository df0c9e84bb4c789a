"""``neuralbayes data``: list, download, verify and locate named data sets."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

EXAMPLES = """[bold]Examples[/bold]

  [cyan]neuralbayes data list[/cyan]
  [cyan]neuralbayes data get mnist cifar10[/cyan]
  [cyan]neuralbayes data get stl10 --offline --root /my/data[/cyan]
  [cyan]neuralbayes data check[/cyan]
  [cyan]neuralbayes data where cifar10[/cyan]
"""

app = App(name="data", help="Named data sets: list, get, check, where.", help_epilogue=EXAMPLES)

Root = Annotated[Path | None, Parameter(help="The data folder; default $NEURALBAYES_DATA, or the system's cache.")]
Quiet = Annotated[bool, Parameter(negative="", help="Print nothing but errors.")]


@app.command(name="list")
def list_datasets(*, root: Root = None, quiet: Quiet = False) -> None:
    """List the data sets: their sizes, and whether they are on this computer."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    from neuralbayes.data.inventory import inventory

    table = Table(box=box.SIMPLE, pad_edge=False, padding=0, collapse_padding=True)
    for column in ("name", "images", "shape", "here"):
        table.add_column(column, no_wrap=True)
    table.add_column("from", overflow="fold")
    for status in inventory(root):
        entry = status.entry
        counts = " + ".join(f"{part.n:,}" for part in entry.parts.values())
        here = f"{status.n_bytes / 1e6:.1f} MB" if status.present else "no"
        shape = "x".join(map(str, entry.shape))
        table.add_row(entry.name, counts, shape, here, status.source)
    if not quiet:
        Console().print(table)
        print("images: train + test (+ unlabeled)")


@app.command
def get(
    *names: str,
    root: Root = None,
    offline: Annotated[bool, Parameter(negative="", help="Look in the data folder only.")] = False,
    force: Annotated[bool, Parameter(negative="", help="Read it again even if it is there.")] = False,
    quiet: Quiet = False,
) -> None:
    """Download data sets, verify them and store them decoded.

    Parameters
    ----------
    names
        Names of data sets, see `neuralbayes data list`.
    """
    from neuralbayes.data.catalog import find_entry
    from neuralbayes.data.loading import decoded_folder, load_entry
    from neuralbayes.data.places import data_folder

    folder = data_folder(root)
    if not names:
        raise ValueError("`names` must name at least one data set; `neuralbayes data list` shows them")
    for entry in [find_entry(name) for name in names]:  # check all names before the first download
        try:
            data = load_entry(entry, folder, offline=offline, progress=not quiet, fresh=force)
        except FileNotFoundError as error:
            # Several lines of advice: print them as they are, not as one paragraph.
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from error
        if not quiet:
            print(f"{entry.name}: {len(data.train):,} train, {len(data.test):,} test, from {data.source}")
            print(f"  in {decoded_folder(entry, folder)}")


@app.command
def check(*names: str, root: Root = None, quiet: Quiet = False) -> None:
    """Verify the SHA-256 checksums of stored data sets.

    Parameters
    ----------
    names
        Names of data sets. By default all that are on this computer.
    """
    from neuralbayes.data.inventory import check as check_arrays
    from neuralbayes.data.inventory import inventory

    wrong: list[str] = []
    for name in names or [status.entry.name for status in inventory(root) if status.present]:
        for result in check_arrays(name, root):
            verdict = "ok" if result.ok else f"WRONG, must be {result.expected}"
            note = "" if result.published else " (as when it was fetched; no published value)"
            if not result.ok:
                wrong.append(f"{name} {result.array}")
            if not quiet:
                print(f"{name} {result.array}: {result.sha256} {verdict}{note}")
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: damaged on the disk; `neuralbayes data get NAME --force` reads it again")


@app.command
def where(name: str | None = None, /, *, root: Root = None) -> None:
    """Print the data folder, or the folder of one data set.

    Parameters
    ----------
    name
        Name of a data set.
    """
    from neuralbayes.data.catalog import find_entry
    from neuralbayes.data.loading import decoded_folder
    from neuralbayes.data.places import data_folder

    folder = data_folder(root)
    print(folder if name is None else decoded_folder(find_entry(name), folder))
