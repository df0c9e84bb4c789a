"""``neuralbayes cluster``: cluster a table, pictures or texts."""

from __future__ import annotations

import csv
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.text import Text

from neuralbayes.cli.files import beside, check_exists, check_folder, check_target, standard_input, table_suffix
from neuralbayes.cli.options import READ, Device, Force, Json, Open, Out, Quiet, Reject, pairs
from neuralbayes.cli.terminal import open_page, plain, say, say_paths, say_table, working
from neuralbayes.system.files import remove_temporaries
from neuralbayes.system.limits import limited_memory

if TYPE_CHECKING:
    from neuralbayes.clustering import Clustering

EXAMPLES = """Writes labels.csv (the input with the cluster of each row, its name and its probability), report.html (a \
page that explains the clusters) and model/ (for `neuralbayes predict`) into a folder. An --out that ends in .csv, \
.parquet or another suffix of a table gets that table alone.

[bold]Examples[/bold]

  [cyan]neuralbayes cluster customers.csv --open[/cyan]
  [cyan]neuralbayes cluster customers.csv -k 5 --columns age,income --out five/[/cyan]
  [cyan]neuralbayes cluster customers.csv --kind zip=category --describe churn[/cyan]
  [cyan]neuralbayes cluster customers.csv --known segment --reject 0.01[/cyan]
  [cyan]neuralbayes cluster export.csv.gz --read sep=';' --read decimal=,[/cyan]
  [cyan]neuralbayes cluster book.xlsx --read sheet=Customers --out labels.parquet[/cyan]
  [cyan]neuralbayes cluster photos/ --features timm:resnet50.a1_in1k[/cyan]
  [cyan]neuralbayes cluster tickets.csv --text body --features mine.py:embed[/cyan]
  [cyan]neuralbayes cluster mnist -k 10 --read split=test --read limit=2000[/cyan]
  [cyan]cat rows.csv | neuralbayes cluster - --json > summary.json[/cyan]
"""

PARTS = ("model", "labels.csv", "report.html")  # of the folder; the model first, because it took the time
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#777777")  # as on the page
MANY_COLUMNS = 40

app = App(name="cluster", help_epilogue=EXAMPLES)


@app.default
def cluster(
    data: str,
    /,
    *,
    n_clusters: Annotated[int | Literal["auto"], Parameter(name=["--clusters", "-k"], metavar="N|auto")] = "auto",
    out: Out = None,
    method: Literal["auto", "manifolds", "information"] = "auto",
    columns: Annotated[str | None, Parameter(metavar="A,B,...")] = None,
    kinds: Annotated[list[str] | None, Parameter(name="--kind", metavar="COLUMN=KIND")] = None,
    text: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    features: Annotated[str, Parameter(metavar="NETWORK|FILE")] = "auto",
    known: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    reject: Reject = None,
    describe: Annotated[list[str] | None, Parameter(metavar="COLUMN")] = None,
    read: Annotated[list[str] | None, Parameter(metavar="KEY=VALUE")] = None,
    random_state: Annotated[int, Parameter(name="--seed")] = 0,
    device: Device = "auto",
    open_: Open = False,
    force: Force = False,
    json_: Json = False,
    quiet: Quiet = False,
) -> None:
    """Cluster a table, pictures or texts: labels, a page and a model.

    Args:
        data: A table: .csv, .tsv, .jsonl (also .gz, .zst, .bz2, .xz), .parquet or a folder of them, .arrow,
            .feather, .xlsx, .npy, .npz, or - for standard input. A folder of pictures, or a data set such as
            mnist. A .txt file with a sentence a line.
        n_clusters: Number of clusters: at least 2, or auto to let the data decide.
        out: Folder for the results, or a file for the labels alone. By default DATA-clusters next to DATA.
        method: For tables: manifolds finds and certifies disjoint manifolds in the numeric columns; information
            finds clusters that may touch, using all columns; auto uses manifolds if all of them are certified.
        columns: Columns to use, separated by commas. By default all except ids, constants and empty columns.
        kinds: Kind of a column: number, boolean, category, date, text, or ignore to leave it out. Repeatable.
        text: Cluster the rows of a table by the text in this column.
        features: Compare pictures or texts by a network: timm:NAME, sentence-transformers:NAME, a function
            file.py:name, or a .npy file. auto takes the best one installed; pixels uses images as they are.
        known: A column with the known classes of some rows; the other cells are empty.
        describe: A column that describes the clusters but is not used to find them. Repeatable.
        read: sep, decimal, encoding, sheet or key of a table; split, limit or size of images. Repeatable.
        random_state: Random seed. The same seed gives the same labels.
    """
    check_exists(data)
    out = beside(Path(data), "-clusters") if out is None else out
    alone = bool(table_suffix(out))
    if alone:
        check_target(out, force=force, source=Path(data))
    else:
        check_folder(out, PARTS, force=force)
    shown = not (quiet or json_)
    by_network = not Path(data).is_file() or text is not None or features != "auto"  # which shows bars of its own
    options: dict[str, Any] = {"method": method, "text": text, "features": features, "known": known, "reject": reject}
    options |= {"columns": None if columns is None else next(csv.reader([columns]))}  # quotes allow commas in names
    options |= {"kinds": pairs("--kind", kinds), "describe": describe or (), "read": pairs("--read", read, READ)}
    options |= {"random_state": random_state, "device": device, "progress": by_network and shown}
    with limited_memory(data), standard_input(data) as source:
        with working(f"clustering {data}", quiet=by_network or not shown):
            import neuralbayes

            result = neuralbayes.cluster(source, n_clusters, **options)
        with working("writing", quiet=not shown):
            files = _write(result, out, alone)
    if json_:
        summary = result.summary() | {"files": list(map(str, files))}
        print(json.dumps(summary, indent=2, default=lambda value: value.tolist()))  # of NumPy
    elif shown:
        show(result)
        say_paths(**{path.stem: path for path in files})
        if not alone:
            say_paths(next=f"neuralbayes predict {shlex.quote(str(out))} NEW_DATA")
    if open_ and not alone:
        open_page(files[-1])


def _write(result: Clustering, out: Path, alone: bool) -> list[Path]:
    if alone:
        return [result.write(out)]
    model, labels, page = files = [out / part for part in PARTS]
    result.save(model)  # each part is old or new, but whole
    result.write(labels)
    result.report(page)
    remove_temporaries(out)  # of a killed process
    return files


def show(result: Clustering) -> None:
    """Print how the columns are used, the verdict and a table of the clusters."""
    points, clusters = result.points, result.clusters
    say(f"{points.title}: {len(result.labels):,} {points.noun}s", style="bold")
    listed = [column for column in points.columns if len(points.columns) <= MANY_COLUMNS or not column.used]
    rows: list[list[object]] = []
    for column in listed[:MANY_COLUMNS]:
        style, kind = ("", column.kind) if column.used else ("dim", f"left out: {column.kind}")
        rows.append([Text(plain(cell), style=style) for cell in (column.name, kind, column.reason)])
    if rows:
        say_table(["column", "kind", "why"], rows)
    for note in result.notes:
        say(note, style="yellow")
    say(result.sentence, style="bold")
    rows = []
    for k, row in enumerate(clusters.to_dict("records")):
        mark, share = Text("●", style=COLORS[k % len(COLORS)]), f"{100 * row['share']:.1f} %"
        stable = "" if row["stability"] is None else f"{row['stability']:.2f}"
        first = next(iter([*row["claims"], *row["differences"]]), "")
        rows.append([mark, k, row["name"], f"{row['size']:,}", share, stable, first])
    headings = ["", "cluster", "name", "size", "share", "stability", "what sets it apart"]
    known = [j for j in range(len(headings)) if any(str(row[j]) for row in rows)]  # images have no differences
    shown = [[row[j] for j in known] for row in rows]
    say_table([headings[j] for j in known], shown, numbers=["cluster", "size", "share", "stability"])
