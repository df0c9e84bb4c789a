"""``neuralbayes predict``: assign new samples to the clusters of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from neuralbayes.cli.files import beside, check_exists, check_target, model_folder, standard_input, table_suffix
from neuralbayes.cli.options import FeaturesAgain, Force, Out, Quiet, Reject
from neuralbayes.cli.terminal import say, working
from neuralbayes.system.limits import limited_memory

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
    data: str,
    /,
    *,
    out: Out = None,
    reject: Reject = None,
    features: FeaturesAgain = None,
    scheduler: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Assign new samples to the clusters of a model.

    Args:
        model: A result of neuralbayes cluster, or its model/.
        data: New data of the same kind, or - for a table from standard input.
        out: Output file, or a folder for a folder of Parquet files. By default DATA-labels next to DATA.
        scheduler: Address of a Dask scheduler whose workers can read MODEL and DATA. By default this machine.
    """
    folder, path = model_folder(model), Path(data)
    check_exists(data)
    in_parts = scheduler is not None or (path.is_dir() and any(path.rglob("*.parquet")) and not (out and out.suffix))
    suffix = (table_suffix(path) if path.is_file() else "").replace(".txt", "") or ".csv"  # as that of the data
    out = beside(path, "-labels" if in_parts else f"-labels{suffix}") if out is None else out
    check_target(out, force=force, source=path)
    with limited_memory(data), standard_input(data) as source, working(f"labelling {data}", quiet=quiet):
        if in_parts:
            from neuralbayes.predicting import predict_parquet

            n = predict_parquet(folder, source, out, reject=reject, features=features, scheduler=scheduler)
        else:
            import neuralbayes

            result = neuralbayes.load(folder).on(source, reject=reject, features=features)
            result.write(out)
            n = len(result.labels)
    if not quiet:
        for note in () if in_parts else result.notes:
            say(note, style="yellow")
        say(f"{n:,} samples labelled: {out}")
