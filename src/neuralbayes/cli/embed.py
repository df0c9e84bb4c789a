"""``neuralbayes embed``: write the features of images to a file."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from neuralbayes.cli.files import check_exists, check_target
from neuralbayes.cli.options import Device, Force, Layer, OutFile, Quiet, Split
from neuralbayes.cli.runs import hidden_state, load_encoder, load_fitting
from neuralbayes.cli.terminal import say

EXAMPLES = """Writes one row per image, in order. A .parquet or .csv file has the columns index, path (for a folder), \
label and class (if there are labels) and f_0, f_1, ... A .npy file has only the features, and NAME-rows.csv next to \
it has the other columns. `neuralbayes cluster` uses the columns f_0, f_1, ... and ignores the others. Images are \
cropped and scaled to the size of the encoder. The output is complete or is not there.

[bold]Examples[/bold]

  [cyan]neuralbayes embed run my_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes embed run cifar10 --split test --layer 2 --out test.npy[/cyan]
"""

app = App(name="embed", help_epilogue=EXAMPLES)


@app.default
def embed(
    run: Path,
    data: str,
    /,
    *,
    out: OutFile,
    layer: Layer = "last",
    split: Split = "train",
    device: Device = "auto",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write the features of images to a file.

    Args:
        run: Folder of a finished run of pretrain.
        data: A data set, a folder of pictures, a .npy or a .npz.
        out: Output file: .parquet, .csv or .npy.
    """
    check_exists(run)
    check_exists(data)
    state = hidden_state(layer)
    check_target(out, force=force, source=Path(data))
    from neuralbayes import write_features
    from neuralbayes.data.pictures import path_cell
    from neuralbayes.system.devices import torch_device

    encoder = load_encoder(run).to(torch_device(device))
    images = load_fitting(encoder, data, split, quiet=quiet)
    n_images, n_features = write_features(
        encoder,
        images,
        out,
        state=state,
        labels=images.labels,
        class_names=images.class_names,
        names=[path_cell(path) for path in getattr(images.source, "paths", ())] or None,
        verbose=not quiet,
    )
    if not quiet:
        say(f"{n_images:,} images, {n_features:,} features of {state}: {out}")
