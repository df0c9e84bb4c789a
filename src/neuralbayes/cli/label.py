"""``neuralbayes label``: cluster the rows of a table, or images."""

from __future__ import annotations

import csv
import json
import shlex
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.busy import busy
from neuralbayes.cli.label_images import image_order, label_images
from neuralbayes.cli.label_model import ModelOrder, label_with_model, with_names, write_rows
from neuralbayes.cli.label_summary import Labeling, label_outputs, summarize, with_picture
from neuralbayes.cli.options import Flag
from neuralbayes.cli.outputs import beside
from neuralbayes.cli.report_inputs import reading_options
from neuralbayes.cli.standard_streams import HYPHEN, output_file, standard_input, stream_names, to_standard_output
from neuralbayes.distributed.workers import Workers

EXAMPLES = """Writes the table again with a label for each row and the probabilities p_0, p_1, ... of all labels, \
draws a picture, and says whether the manifolds are certified disjoint.

Images get a cluster each. The table has their index, path, label and probabilities, and the picture is a contact \
sheet: a row of each cluster, from the image that is surest to be in it to the one that is least.

With --model rows and images are labelled block by block. What is finished is kept beside the output until it is \
whole: interrupted, the same command goes on. --workers shares the blocks among processes of this machine, --scheduler \
among the workers of a Dask cluster. The output is the same for any number of workers. Parquet, also a folder of \
files, need not fit into memory: it is read and written some groups of rows at a time.

[bold]Examples[/bold]

  [cyan]neuralbayes label data.csv --clusters 3[/cyan]
  [cyan]neuralbayes label export.csv.gz --sep ';' --decimal , --encoding cp1252[/cyan]
  [cyan]neuralbayes label book.xlsx --sheet Customers --out customers.csv[/cyan]
  [cyan]neuralbayes label data.parquet --columns height,weight --save model/[/cyan]
  [cyan]neuralbayes label new.parquet --model model/ --out labelled.csv[/cyan]
  [cyan]neuralbayes label large.npy --model model/ --workers 8[/cyan]
  [cyan]neuralbayes label parquet_files/ --model model/ --scheduler tcp://node0:8786[/cyan]
  [cyan]neuralbayes label my_images/ --clusters 10 --save model/[/cyan]
  [cyan]neuralbayes label photographs/ --size 96 --clusters 10[/cyan]
  [cyan]neuralbayes label mnist --split test --model model/[/cyan]
  [cyan]neuralbayes label arrays.npz --key X --clusters auto --no-picture --json[/cyan]
"""

app = App(name="label", help_epilogue=EXAMPLES)


@app.default
def label(
    file: Path,
    /,
    *,
    clusters: Annotated[str | None, Parameter(name=["--clusters", "-k"], metavar="N|auto")] = None,
    method: Literal["auto", "manifolds", "information"] = "auto",
    max_clusters: int | None = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    columns: Annotated[str | None, Parameter(metavar="A,B,...")] = None,
    keep: Annotated[str | None, Parameter(metavar="A,B,...|all")] = None,
    key: str | None = None,
    sheet: Annotated[str | None, Parameter(metavar="NAME|N")] = None,
    sep: Annotated[str | None, Parameter(metavar="MARK")] = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
    standardize: Flag = False,
    neighbors: int | None = None,
    split: Literal["train", "test", "unlabeled"] | None = None,
    limit: int | None = None,
    size: Annotated[str | None, Parameter(metavar="N|HxW")] = None,
    seed: int | None = None,
    save: Path | None = None,
    model: Path | None = None,
    workers: int = 1,
    scheduler: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    picture: Path | None = None,
    no_picture: Flag = False,
    force: Flag = False,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
) -> None:
    """Cluster the rows of a table, or images.

    Parameters
    ----------
    file
        The table: .csv, .tsv, .txt or .jsonl, which may be packed (.csv.gz, .zst, .bz2, .xz), .parquet or a folder of
        such, .arrow, .feather, .xlsx, .npy, .npz, or - for standard input. Its numeric columns are used, but not the
        classes, labels and probabilities that neuralbayes embed and label wrote. Or images: a data set such as mnist, a
        folder of pictures, a .npy or a .npz.
    clusters
        Number of clusters: at least 2, or auto, the default, which lets the data decide.
    method
        Of rows: manifolds finds groups with gaps between them and certifies these; information finds clusters that may
        touch. auto, the default, takes manifolds where all groups are certified, else information. Images always get
        information.
    max_clusters
        The largest number that auto tries, 8 by default, with information 20.
    out
        Where the labels go; the suffix chooses the format. By default beside FILE, with -labels after its name, and for
        standard input to standard output, as with -. The cells of the input stay as they are. A .npy file gets the
        labels alone, a .npz file labels and probabilities.
    columns
        The columns to use, by name, with commas between them; x0,x1,... where the file has no names.
    keep
        Columns of a .csv, .tsv or .parquet file to use although gaps between their values say nothing: constants, ids,
        codes, columns with two or few values, which are otherwise left out and named. all keeps every one. States that
        such columns alone make are never certified.
    key
        Which array of a .npz file to use.
    sheet
        Which sheet of an .xlsx file to use, by its name or its number; by default the first.
    sep
        The mark between the cells of a text file, or one of tab and space. By default it is found, as are the two
        below.
    decimal
        The decimal mark in a text file.
    encoding
        The encoding of a text file, such as cp1252.
    standardize
        Divide each column by its standard deviation first, for columns of different units.
    neighbors
        How many neighbours a row is joined to, 15 by default: fewer, such as 8, where manifolds nearly touch, more
        where one is thinly sampled.
    split
        Of images: which part of them, train by default; what is not split is all train.
    limit
        Of images: take the first N only.
    size
        Of images: scale and cut them to this many pixels a side, or to height x width. By default they stay as they
        are, but pictures of a folder are reduced to 64 pixels on their shorter side.
    seed
        Seed of the random numbers, 0 by default: the same seed gives the same labels.
    save
        Folder to save the trained model in.
    model
        Folder of a saved model: label with it instead of training one.
    workers
        With --model: processes of this machine that share the rows; they share the cores.
    scheduler
        With --model: share the rows among the workers of this Dask scheduler instead.
    picture
        Where the picture goes: .png, .svg or .pdf. By default beside the labels.
    no_picture
        Draw no picture.
    force
        Replace files that exist, and finished blocks of another job.
    json_
        Print one JSON object and nothing else.
    quiet
        Print nothing but errors.
    """
    if model is not None:
        given: dict[str, Any] = {"--clusters": clusters, "--max-clusters": max_clusters, "--neighbors": neighbors}
        given |= {"--keep": keep, "--seed": seed, "--save": save, "--standardize": standardize or None, "--size": size}
        for option, value in given.items():
            if value is not None:
                raise ValueError(f"{option} is for training a model, but with --model none is trained")
    if picture is not None and no_picture:
        raise ValueError("--picture and --no-picture contradict each other")
    from_stream, to_stream = file == HYPHEN, out == HYPHEN or (file == HYPHEN and out is None)
    if from_stream:
        file = standard_input()
    if to_stream:
        if json_:
            raise ValueError("--json prints to standard output, where the table goes; choose a file with --out")
        out, no_picture = output_file(file), no_picture or picture is None
    n_clusters = _n_clusters("auto" if clusters is None else clusters)
    if max_clusters is not None and n_clusters != "auto":
        raise ValueError(f"--max-clusters is for --clusters auto, but --clusters is {n_clusters}")
    of_tables = {"--columns": columns, "--keep": keep, "--standardize": standardize or None}
    reading = {"key": key, "sheet": sheet, "sep": sep, "decimal": decimal, "encoding": encoding}
    of_tables |= {f"--{name}": value for name, value in reading.items() if name != "key"}
    of_tables["--method manifolds"] = "manifolds" if method == "manifolds" else None
    crew = Workers(workers, scheduler)
    if crew.is_remote and model is None:
        raise ValueError("--workers and --scheduler are for labelling with --model; training takes a single process")
    if _is_images(file, key, of_tables):
        images = image_order(
            file,
            split=split or "train",
            limit=limit,
            size=size,
            settings=_settings(n_clusters, max_clusters, neighbors, seed),
            model=model,
            save=save,
            out=out,
            picture=picture,
            draw=not no_picture,
            force=force,
        )
        output: Literal["text", "json", "none"] = "json" if json_ else "none" if quiet else "text"
        label_images(images, crew, draw=not no_picture, force=force, output=output)
        return
    for option, value in {"--split": split, "--limit": limit, "--size": size}.items():
        if value is not None:
            raise ValueError(f"{option} is for images, but {file} is a table")
    if columns is not None and keep is not None:
        raise ValueError("--keep adds to the columns that are chosen by default, but --columns chooses them")
    names = None if columns is None else next(csv.reader([columns]))  # quotes allow commas in names
    kept: Any = "all" if keep == "all" else [] if keep is None else next(csv.reader([keep]))
    from neuralbayes.data.table_formats import check_format

    if not file.is_dir():
        check_format(file)
    table = beside(file, "-labels", ".parquet" if file.is_dir() else None) if out is None else out
    order = None if model is None else ModelOrder(model, file, names, reading, table)
    outputs = label_outputs(table, file, save, picture, draw=not no_picture, force=force)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # of which ConvergenceWarning is one
        with busy("labelling" if model else "training", enabled=not (quiet or json_)):
            if order is None:
                settings = _settings(n_clusters, max_clusters, neighbors, seed) | {"standardize": standardize}
                labeling = _train(file, names, reading, kept, method, settings)
            else:
                labeling = label_with_model(order, crew, force=force)
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))

    if outputs.model is not None:  # first: it is what took the time
        labeling.estimator.save(outputs.model)
    new_columns = _write(outputs.table, labeling)
    if labeling.blocks is not None:
        labeling.blocks.remove()
    if not no_picture:
        outputs = with_picture(outputs, lambda path: _draw(path, labeling), notes)
    if to_stream:
        to_standard_output(outputs.table)
    summary = summarize(labeling, outputs, new_columns, notes)
    if json_:
        Console().out(json.dumps(asdict(summary), indent=2, allow_nan=False), highlight=False)
    elif not quiet:
        console = Console(highlight=False, stderr=to_stream)
        summary.print(console, Console(stderr=True, highlight=False))
        if outputs.model is not None and not from_stream:
            _tell_next(outputs.model, file, reading, console)


def _tell_next(model: Path, file: Path, reading: dict[str, Any], console: Console) -> None:
    words = ["neuralbayes", "report", str(model), str(file), *reading_options(reading), "--open"]
    console.print(Text.assemble((f"{'next':<9}", "dim"), shlex.join(words)), soft_wrap=True)


def _settings(
    n_clusters: int | Literal["auto"], max_clusters: int | None, neighbors: int | None, seed: int | None
) -> dict[str, Any]:
    settings = {"n_clusters": n_clusters, "random_state": seed or 0}
    settings |= {} if neighbors is None else {"n_neighbors": neighbors}
    return settings | ({} if max_clusters is None else {"max_clusters": max_clusters})


def _is_images(file: Path, key: str | None, of_tables: dict[str, Any]) -> bool:
    """Whether there are images to be labelled; then what is for tables is refused."""
    from neuralbayes.data.images import holds_images
    from neuralbayes.data.parquet import is_parquet_folder

    if key is not None or is_parquet_folder(file) or not holds_images(file):
        return False
    for option, value in of_tables.items():
        if value is not None:
            raise ValueError(f"{option} is for tables, but {file} holds images")
    return True


def _n_clusters(text: str) -> int | Literal["auto"]:
    if text == "auto":
        return "auto"
    if text.isdecimal() and int(text) >= 2:
        return int(text)
    raise ValueError(f"--clusters must be a whole number of at least 2, or auto, got {text!r}")


def _train(
    file: Path,
    names: list[str] | None,
    reading: dict[str, Any],
    keep: list[str] | Literal["all"],
    method: Literal["auto", "manifolds", "information"],
    settings: dict[str, Any],
) -> Labeling:
    import neuralbayes
    from neuralbayes.data.tables import read_table

    table = read_table(file, columns=names, keep=keep, **reading)
    X = with_names(table.X, table.feature_names) if table.named else table.X
    estimator: Any = None
    if method != "information":
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            estimator = neuralbayes.ManifoldLabeler(**settings).fit(X)
        if method == "auto" and not (estimator.n_clusters_ > 1 and estimator.disjoint_.all()):
            estimator = None  # what it warned of is answered by the other method
        else:
            for warning in caught:
                warnings.warn(warning.message, stacklevel=2)
    if estimator is None:
        estimator = neuralbayes.InformationClusterer(**settings).fit(X)
    return Labeling(estimator, table, estimator.labels_, estimator.predict_proba(X), trained=True)


def _write(path: Path, labeling: Labeling) -> list[str]:
    from neuralbayes.data.table_writing import write_table

    labels, proba = labeling.labels, labeling.proba
    if labeling.rows is not None and labeling.blocks is not None:
        return write_rows(path, labeling, labeling.rows, labeling.blocks)
    match path.suffix.lower():
        case ".npy":
            return write_table(path, {"labels": labels})
        case ".npz":
            return write_table(path, {"labels": labels, "probabilities": proba})
        case _:
            return write_table(path, {"label": labels, "p": proba}, beside=labeling.table.source)


def _draw(path: Path, labeling: Labeling) -> None:
    from neuralbayes.plot import StateMapDisplay, save_picture

    table = labeling.table
    title = Path(stream_names(str(table.path))).name
    if labeling.counts is not None:
        title += f": {len(table.X):,} of {labeling.counts.sum():,} rows"
    display = StateMapDisplay(
        table.X,
        labeling.labels,
        proba=labeling.proba,
        feature_names=table.feature_names,
        standardize=bool(getattr(labeling.estimator, "standardize", False)),
    ).plot(title=title)
    save_picture(display.figure_, path)
