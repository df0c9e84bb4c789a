"""``neuralbayes label``: cluster the rows of a table, or images."""

from __future__ import annotations

import csv
import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.busy import busy
from neuralbayes.cli.label_columns import kinds_said, show_columns
from neuralbayes.cli.label_images import Sorting, image_order, label_images
from neuralbayes.cli.label_model import DRAWN, ModelOrder, label_with_model, write_rows
from neuralbayes.cli.label_outliers import check_level
from neuralbayes.cli.label_rows import OpenedRows, Training, opened_rows
from neuralbayes.cli.label_summary import Labeling, label_outputs, next_step, summarize, with_picture
from neuralbayes.cli.label_texts import OpenedTexts, opened_texts
from neuralbayes.cli.options import Device, Flag, on_device
from neuralbayes.cli.outputs import beside
from neuralbayes.cli.report_inputs import reading_options
from neuralbayes.cli.standard_streams import HYPHEN, output_file, standard_input, stream_names, to_standard_output

EXAMPLES = """Writes the table with a label for each row and the probabilities p_0, p_1, ... of all labels, draws a \
picture, and prints what each cluster is.

For images, the table has their index, path, label and probabilities. The picture is a contact sheet with one row per \
cluster, from its most typical image to its least typical.

With --reject 0.01, outliers get the label -1, and the table shows the typicality of each row: the share of ordinary \
rows that lie at least as far out. At most 1 % of ordinary new rows are rejected.

With --model, Parquet files and folders need not fit into memory, if the output is a Parquet file.

[bold]Examples[/bold]

  [cyan]neuralbayes label data.csv --clusters 3[/cyan]
  [cyan]neuralbayes label export.csv.gz --sep ';' --decimal , --encoding cp1252[/cyan]
  [cyan]neuralbayes label book.xlsx --sheet Customers --out customers.csv[/cyan]
  [cyan]neuralbayes label data.parquet --columns height,weight --save model/[/cyan]
  [cyan]neuralbayes label new.parquet --model model/ --out labelled.csv[/cyan]
  [cyan]neuralbayes label new.csv --model model/ --reject 0.01[/cyan]
  [cyan]neuralbayes label parquet_files/ --model model/[/cyan]
  [cyan]neuralbayes label my_images/ --clusters 10 --save model/[/cyan]
  [cyan]neuralbayes label photographs/ --features timm:resnet50[/cyan]
  [cyan]neuralbayes label photographs/ -k 20 --sort-into by_cluster/[/cyan]
  [cyan]neuralbayes label tickets.csv --text body --features mine.py:embed[/cyan]
  [cyan]neuralbayes label mnist --split test --model model/[/cyan]
  [cyan]neuralbayes label arrays.npz --key X --clusters auto --no-picture --json[/cyan]
"""

app = App(name="label", help_epilogue=EXAMPLES)


@app.default
@on_device
def label(
    file: Path,
    /,
    *,
    clusters: Annotated[str | None, Parameter(name=["--clusters", "-k"], metavar="N|auto")] = None,
    method: Literal["auto", "manifolds", "information"] = "auto",
    max_clusters: int | None = None,
    reject: Annotated[float | None, Parameter(metavar="SHARE")] = None,
    out: Annotated[Path | None, Parameter(name=["--out", "-o"])] = None,
    columns: Annotated[str | None, Parameter(metavar="A,B,...")] = None,
    as_: Annotated[list[str] | None, Parameter(name="--as", metavar="COLUMN=KIND")] = None,
    missing: Literal["impute", "mask", "drop"] | None = None,
    key: str | None = None,
    sheet: Annotated[str | None, Parameter(metavar="NAME|N")] = None,
    sep: Annotated[str | None, Parameter(metavar="MARK")] = None,
    decimal: Literal[".", ","] | None = None,
    encoding: str | None = None,
    standardize: Annotated[bool | None, Parameter(show_default=False)] = None,
    neighbors: int | None = None,
    split: Literal["train", "test", "unlabeled"] | None = None,
    limit: int | None = None,
    size: Annotated[str | None, Parameter(metavar="N|HxW")] = None,
    text: Annotated[str | None, Parameter(metavar="COLUMN")] = None,
    features: Annotated[str | None, Parameter(metavar="NETWORK|FILE.npy")] = None,
    sort_into: Annotated[Path | None, Parameter(metavar="FOLDER")] = None,
    copy: Flag = False,
    seed: int | None = None,
    device: Device = "auto",
    save: Path | None = None,
    model: Path | None = None,
    picture: Path | None = None,
    no_picture: Flag = False,
    force: Flag = False,
    json_: Annotated[Flag, Parameter(name="--json")] = False,
    quiet: Flag = False,
) -> None:
    """Cluster the rows of a table, texts or images.

    Parameters
    ----------
    file
        A table: .csv, .tsv, .txt or .jsonl, optionally compressed (.csv.gz, .zst, .bz2, .xz), .parquet or a folder of
        them, .arrow, .feather, .xlsx, .npy, .npz, or - for standard input. Columns may hold numbers, categories, dates
        and text, with missing cells. Or images: a data set such as mnist, a folder of pictures, a .npy or a .npz.
    clusters
        Number of clusters: at least 2, or auto (the default) to let the data decide.
    method
        For rows: manifolds finds and certifies disjoint manifolds in the numeric columns; information finds clusters
        that may touch, using all columns. auto (the default) uses manifolds if all of them are certified, and
        information otherwise. Images always use information.
    max_clusters
        The largest number that auto tries: 8 by default, or 200 with --method information.
    reject
        Give outliers the label -1: samples whose typicality is at most this share, such as 0.01. It bounds the share of
        ordinary new samples that are rejected. Tables then use --method information.
    out
        Output file; the suffix determines the format. By default FILE-labels next to FILE, or standard output if FILE
        is standard input. The cells of the input are not changed. A .npy file gets only the labels, a .npz file labels
        and probabilities.
    columns
        Columns to use, separated by commas (x0,x1,... if the file has no names). By default all columns except ids,
        constants, empty columns, and labels or indices written by neuralbayes embed and label. A table shows which
        columns are used and why.
    as_
        Override the kind of a column: number, boolean, category, date or text, or ignore to leave it out. May be
        repeated.
    missing
        How to treat missing cells: impute (the default) predicts them from the other cells of the row; mask also tells
        the network where cells are missing; drop trains on complete rows only. All rows get a label.
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
    standardize
        Scale each numeric column to unit variance and pull in outliers. This is the default for tables with column
        names, except features of neuralbayes embed. Use --no-standardize if all columns have the same unit.
    neighbors
        Number of neighbours of each row, 15 by default. Use fewer (such as 8) if manifolds almost touch, and more if a
        manifold has few rows.
    split
        For images: which part of the data set, train by default.
    limit
        For images: use only the first N.
    size
        For images: scale and crop them to this many pixels per side, or to height x width. By default, pictures in a
        folder are reduced to 64 pixels on the shorter side, and other images stay as they are.
    text
        Cluster the rows of a table by the text in this column, using the --features of a network. Without --features,
        texts are compared by their character n-grams, which is much coarser.
    features
        Cluster by the features of a pretrained network. For images: timm:NAME (extra vision). For texts:
        sentence-transformers:NAME or the folder of such a network (extra text). For both: file.py:function, a function
        that takes uint8 images (n, H, W, 3) or a list of texts. Features are computed once and kept next to the
        labels. Or a .npy file with one row of features for each image or row.
    sort_into
        For a folder of pictures: create this folder, with a sub-folder of links to the pictures of each cluster.
    copy
        With --sort-into: copy the pictures instead of linking to them.
    seed
        Random seed, 0 by default. The same seed gives the same labels.
    device
        Device of the networks: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    save
        Folder to save the trained model in.
    model
        Folder of a saved model to label with, instead of training a new one.
    picture
        File of the picture: .png, .svg or .pdf. By default next to the labels.
    no_picture
        Do not draw a picture.
    force
        Overwrite existing files.
    json_
        Print one JSON object and nothing else.
    quiet
        Print errors only.
    """
    if model is not None:
        given: dict[str, Any] = {"--clusters": clusters, "--max-clusters": max_clusters, "--neighbors": neighbors}
        given |= {"--seed": seed, "--save": save, "--standardize": standardize}
        given |= {"--size": size if features is None else None}
        given |= {"--as": as_, "--missing": missing}
        for option, value in given.items():
            if value is not None:
                raise ValueError(f"{option} is for training a model, but with --model none is trained")
    if picture is not None and no_picture:
        raise ValueError("--picture and --no-picture contradict each other")
    check_level(reject, method)
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
    of_tables = {"--columns": columns, "--as": as_, "--missing": missing, "--standardize": standardize, "--text": text}
    reading = {"key": key, "sheet": sheet, "sep": sep, "decimal": decimal, "encoding": encoding}
    of_tables |= {f"--{name}": value for name, value in reading.items() if name != "key"}
    of_tables["--method manifolds"] = "manifolds" if method == "manifolds" else None
    if _is_images(file, key, of_tables):
        images = image_order(
            file,
            split=split or "train",
            limit=limit,
            size=size,
            features=features,
            settings=_settings(n_clusters, max_clusters, neighbors, seed),
            reject=reject,
            model=model,
            save=save,
            out=out,
            picture=picture,
            draw=not no_picture,
            force=force,
            sorting=_sorting(file, sort_into, copy),
        )
        output: Literal["text", "json", "none"] = "json" if json_ else "none" if quiet else "text"
        label_images(images, draw=not no_picture, output=output)
        return
    of_images = {"--split": split, "--limit": limit, "--size": size, "--sort-into": sort_into, "--copy": copy or None}
    for option, value in of_images.items():
        if value is not None:
            raise ValueError(f"{option} is for images, but {file} is a table")
    by_features = text is not None or features is not None
    of_columns = {"--columns": columns, "--as": as_, "--missing": missing, "--standardize": standardize}
    of_columns |= {"--method manifolds": "manifolds" if method == "manifolds" else None}
    for option, value in of_columns.items() if by_features else ():
        if value is not None:
            raise ValueError(f"{option} is for columns of a table, but --text and --features replace them")
    names = None if columns is None else next(csv.reader([columns]))  # quotes allow commas in names
    kinds = kinds_said(as_ or [])
    from neuralbayes.data.table_formats import check_format

    if not file.is_dir():
        check_format(file)
    table = beside(file, "-labels", ".parquet" if file.is_dir() else None) if out is None else out
    order = None if model is None else ModelOrder(model, file, names, reading, table, reject)
    outputs = label_outputs(table, file, save, picture, draw=not no_picture, force=force)

    console = Console(highlight=False, stderr=to_stream)
    talks = not (quiet or json_)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)  # includes ConvergenceWarning
        if order is None or by_features:
            settings = _settings(n_clusters, max_clusters, neighbors, seed)
            training = Training(
                method if reject is None else "information", settings, kinds, missing, standardize, reject
            )
            with busy("reading", enabled=talks):
                rows: OpenedRows | OpenedTexts = (
                    opened_texts(
                        file,
                        reading,
                        text,
                        features,
                        out=table,
                        model=model,
                        settings=settings,
                        reject=reject,
                        verbose=talks,
                    )
                    if by_features
                    else opened_rows(file, reading, names, training)
                )
            if talks and rows.source.named:
                show_columns(stream_names(str(file)), rows.n_rows, rows.columns, console)
            with busy("training", enabled=talks and not by_features):  # shows its own progress
                labeling = rows.train()
        else:
            with busy("labelling", enabled=talks):
                labeling = label_with_model(order)
    notes = list(dict.fromkeys(str(warning.message) for warning in caught))

    if outputs.model is not None:  # first, because it took the time
        labeling.estimator.save(outputs.model)
    new_columns = _write(outputs.table, labeling)
    if not no_picture:
        outputs = with_picture(outputs, lambda path: _draw(path, labeling), notes)
    if to_stream:
        to_standard_output(outputs.table)
    if talks and not labeling.table.named:  # others were shown before
        console.print(Text(f"{stream_names(str(file))}: {labeling.n_rows:,} rows", style="bold"), soft_wrap=True)
    summary = summarize(labeling, outputs, new_columns, notes)
    if json_:
        Console().out(json.dumps(asdict(summary), indent=2, allow_nan=False), highlight=False)
    elif not quiet:
        summary.print(console, Console(stderr=True, highlight=False))
        if not from_stream:
            options = reading_options({**reading, "text": text, "features": features})
            step = next_step(summary, outputs.model or model, file, options)
            console.print(Text.assemble((f"{'next':<9}", "dim"), step), soft_wrap=True)


def _sorting(file: Path, folder: Path | None, copy: bool) -> Sorting | None:
    """The target of --sort-into, checked before anything is computed."""
    if folder is None:
        if copy:
            raise ValueError("--copy is for --sort-into, which is not given")
        return None
    if not file.is_dir():
        raise ValueError(f"--sort-into is for a folder of pictures, but {file} is not a folder")
    from neuralbayes.data.sorted_folders import check_sorted

    check_sorted(folder, file)
    return Sorting(folder, copy)


def _settings(
    n_clusters: int | Literal["auto"], max_clusters: int | None, neighbors: int | None, seed: int | None
) -> dict[str, Any]:
    settings = {"n_clusters": n_clusters, "random_state": seed or 0}
    settings |= {} if neighbors is None else {"n_neighbors": neighbors}
    return settings | ({} if max_clusters is None else {"max_clusters": max_clusters})


def _is_images(file: Path, key: str | None, of_tables: dict[str, Any]) -> bool:
    """Whether the input is images; then options for tables are refused."""
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


def _write(path: Path, labeling: Labeling) -> list[str]:
    from neuralbayes.data.table_writing import write_table
    from neuralbayes.data.written import TYPICALITY

    labels, proba = labeling.labels, labeling.proba
    typical = {} if labeling.typicality is None else {TYPICALITY: labeling.typicality}
    if labeling.rows is not None and labeling.blocks is not None:
        return write_rows(path, labeling, labeling.rows, labeling.blocks)
    match path.suffix.lower():
        case ".npy":
            return write_table(path, {"labels": labels})
        case ".npz":
            return write_table(path, {"labels": labels, "probabilities": proba} | typical)
        case _:
            return write_table(path, {"label": labels, "p": proba} | typical, beside=labeling.table.source)


def _draw(path: Path, labeling: Labeling) -> None:
    import numpy as np

    from neuralbayes.explain.prototypes import some
    from neuralbayes.plot import StateMapDisplay, save_picture

    table = labeling.table
    X, labels, proba = table.X, labeling.labels, labeling.proba
    if (labels < 0).any():  # outliers are far out and would shrink the rest to a point
        kept = some(np.flatnonzero(labels >= 0), DRAWN, np.random.default_rng(0))
        if not len(kept):
            raise ValueError("all rows are outliers")
        X, labels, proba = X[kept], labels[kept], proba[kept]
    title = Path(stream_names(str(table.path))).name
    n_rejected = int(labeling.label_counts()[0])
    if len(X) < labeling.n_rows - n_rejected:
        title += f": {len(X):,} of {labeling.n_rows:,} rows"
    if n_rejected:
        title += f", without {n_rejected:,} {'outlier' if n_rejected == 1 else 'outliers'}"
    display = StateMapDisplay(
        X,
        labels,
        proba=proba,
        feature_names=table.feature_names,
        standardize=labeling.scaled,
    ).plot(title=title)
    save_picture(display.figure_, path)
