"""``neuralbayes embed``: features of images as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.options import Device, Flag, on_device
from neuralbayes.cli.outputs import check_target
from neuralbayes.cli.runs import (
    image_paths,
    limited,
    load_encoder,
    load_fitting,
    one_layer,
    skipped_file,
    tell_skipped,
)

EXAMPLES = """Writes one row per image, in order. A .parquet or .csv file has the columns index, path (for a folder), \
label and class (if there are labels) and f_0, f_1, ... A .npy file has only the features, and NAME-rows.csv next to \
it has the other columns. neuralbayes label uses the columns f_0, f_1, ... and ignores the others. Images are cropped \
and scaled to the size of the encoder. The output is complete or is not there.

[bold]Examples[/bold]

  [cyan]neuralbayes embed run my_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes embed run cifar10 --split test --layer 2 --out test.npy[/cyan]
"""

app = App(name="embed", help_epilogue=EXAMPLES)


@app.default
@on_device
def embed(
    run: Path,
    data: str,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    layer: Annotated[str, Parameter(metavar="last|1..4|relu1..relu4")] = "last",
    split: Literal["train", "test", "unlabeled"] = "train",
    limit: int | None = None,
    device: Device = "auto",
    force: Flag = False,
    quiet: Flag = False,
) -> None:
    """Write the features of images to a file.

    Parameters
    ----------
    run
        Folder of a finished run of pretrain.
    data
        A data set, a folder of pictures, a .npy or a .npz.
    out
        Output file: .parquet, .csv or .npy.
    layer
        Hidden layer: the last one, or a number or name.
    split
        Which part of DATA, train by default.
    limit
        Use only the first N images.
    device
        Device of the encoder: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    force
        Overwrite an existing file.
    quiet
        Print errors only.
    """
    from neuralbayes.data.path_text import path_cell
    from neuralbayes.features.feature_files import check_features_path, rows_file, write_features
    from neuralbayes.system.devices import torch_device

    state = one_layer(layer)
    check_features_path(out)
    check_target(out, option="--out", force=force, source=Path(data))
    if out.suffix.lower() == ".npy":
        check_target(rows_file(out), option="--out", force=force, source=Path(data))
    encoder = load_encoder(run).to(torch_device())
    images = load_fitting(encoder.shape, data, split, progress=not quiet)
    tell_skipped(images, kept_in=skipped_file(out), quiet=quiet)
    source = limited(images, limit)
    n_images, n_features = write_features(
        encoder,
        source,
        out,
        state=state,
        labels=None if images.labels is None else images.labels[: len(source)],
        class_names=images.class_names,
        names=[path_cell(path) for path in image_paths(images, limit)] or None,
        verbose=not quiet,
    )
    if not quiet:
        text = f"{n_images:,} images, {n_features:,} features of {state}: {out}"
        Console(highlight=False).print(Text(text), soft_wrap=True)
