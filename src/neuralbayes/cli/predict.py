"""``neuralbayes predict``: assign new samples to the clusters of a model."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from neuralbayes.cli.files import (
    TABLES,
    beside,
    check_exists,
    check_target,
    limited_memory,
    model_folder,
    standard_input,
)
from neuralbayes.cli.options import Flag, Out
from neuralbayes.cli.terminal import say, working

EXAMPLES = """Writes the input with the columns cluster, name, probability and, for models that have one, typicality. \
DATA is read as the data that the model was fitted to. A folder of Parquet files is labelled in parallel with Dask \
(pip install 'neuralbayes\\[cluster]') and need not fit into memory; the result is again a folder of Parquet files.

[bold]Examples[/bold]

  [cyan]neuralbayes predict customers-clusters/ new.csv[/cyan]
  [cyan]neuralbayes predict customers-clusters/ new.csv --reject 0.01 --out new.parquet[/cyan]
  [cyan]neuralbayes predict tickets-clusters/ new.csv --features mine.py:embed[/cyan]
  [cyan]neuralbayes predict model/ parquet_files/ --scheduler tcp://10.0.0.1:8786[/cyan]
"""

app = App(name="predict", help_epilogue=EXAMPLES)


@app.default
def predict(
    model: Path,
    data: Path,
    /,
    *,
    out: Out = None,
    reject: Annotated[float | None, Parameter(metavar="SHARE")] = None,
    features: Annotated[str | None, Parameter(metavar="NETWORK|FILE")] = None,
    scheduler: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    force: Flag = False,
    quiet: Flag = False,
) -> None:
    """Assign new samples to the clusters of a model.

    Parameters
    ----------
    model
        A result of neuralbayes cluster, or its model/.
    data
        New data of the same kind, or - for a table from standard input.
    out
        Output file, or a folder for a folder of Parquet files. By default DATA-labels next to DATA.
    reject
        Give outliers the label -1: samples whose typicality is at most this share, such as 0.01, of ordinary samples.
    features
        The features that the model was fitted to, if they are code or a file, which a model cannot name: file.py:name
        or FILE.npy.
    scheduler
        Address of a Dask scheduler, for Parquet files that its workers can read. By default this machine.
    force
        Overwrite existing files.
    quiet
        Print errors only.
    """
    folder = model_folder(model)
    check_exists(data, sets=True)
    in_parts = scheduler is not None or (data.is_dir() and out is None and any(data.rglob("*.parquet")))
    in_parts = in_parts or (data.is_dir() and out is not None and not out.suffix)
    suffix = next((suffix for suffix in TABLES if data.is_file() and suffix in data.suffixes[-2:]), ".csv")
    out = beside(data, "-labels" if in_parts else f"-labels{suffix}") if out is None else out
    if in_parts:
        n = _predict_in_parts(folder, data, out, reject, features, scheduler, force, quiet)
    else:
        check_target(out, force=force, source=data)
        with limited_memory(), standard_input(data) as source, working(f"labelling {data}", quiet=quiet):
            result = open_model(folder, features).on(str(source), reject=reject)
            result.write(out)
            n = len(result.labels)
        for note in result.notes if not quiet else ():
            say(note, style="yellow")
    if not quiet:
        say(f"{n:,} samples labelled: {out}")


def _predict_in_parts(
    folder: Path,
    data: Path,
    out: Path,
    reject: float | None,
    features: str | None,
    scheduler: str | None,
    force: bool,
    quiet: bool,
) -> int:
    from neuralbayes.predicting import predict_parquet

    if out.is_file() or (out.is_dir() and not force):
        raise FileExistsError(f"{out} exists already; replace it with --force or choose another folder with --out")
    if out.is_dir() and any(path.suffix != ".parquet" for path in out.iterdir()):
        raise FileExistsError(f"{out} contains other files than Parquet; choose another folder with --out")
    if out.is_dir() and out.samefile(data):
        raise ValueError(f"{out} is the input itself; choose another folder with --out")
    new = out.with_name(f".{out.name}.new") if out.is_dir() else out
    with working(f"labelling {data}", quiet=quiet):
        n = predict_parquet(folder, data, new, reject=reject, features=features, scheduler=scheduler)
    if new != out:
        shutil.rmtree(out)
        new.rename(out)
    return n
