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
    ImageBlocks,
    image_blocks,
    image_paths,
    limited,
    load_encoder,
    load_fitting,
    one_layer,
    skipped_file,
    tell_skipped,
)
from neuralbayes.distributed.workers import Workers

EXAMPLES = """Writes one row per image, in order. A .parquet or .csv file has the columns index, path (for a folder), \
label and class (if there are labels) and f_0, f_1, ... A .npy file has only the features, and NAME-rows.csv next to \
it has the other columns. neuralbayes label uses the columns f_0, f_1, ... and ignores the others. Images are cropped \
and scaled to the size of the encoder.

Images are processed in blocks of a thousand. Finished blocks are kept next to the output, so an interrupted command \
continues when you run it again. --workers shares the blocks among processes of this machine, --scheduler among the \
workers of a Dask cluster. The output does not depend on the number of workers.

[bold]Examples[/bold]

  [cyan]neuralbayes embed run my_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes embed run cifar10 --split test --layer 2 --out test.npy[/cyan]
  [cyan]neuralbayes embed run my_images/ --workers 8 --out features.parquet[/cyan]
  [cyan]neuralbayes embed run my_images/ --scheduler tcp://node0:8786 --out f.npy[/cyan]
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
    workers: int = 1,
    scheduler: Annotated[str | None, Parameter(metavar="ADDRESS")] = None,
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
        Device of the encoder, in every worker: cpu, cuda, cuda:1 or mps; auto uses the best one available.
    workers
        Number of processes that share the images and the cores of this machine.
    scheduler
        Share the images among the workers of this Dask scheduler instead.
    force
        Overwrite an existing file and finished blocks of another job.
    quiet
        Print errors only.
    """
    from neuralbayes.data.path_text import path_cell
    from neuralbayes.distributed.blocks import digest
    from neuralbayes.features.feature_files import (
        BLOCK,
        check_features_path,
        feature_block,
        rows_file,
        write_features,
    )
    from neuralbayes.system.devices import named_device

    state = one_layer(layer)
    crew = Workers(workers, scheduler)
    check_features_path(out)
    check_target(out, option="--out", force=force, source=Path(data))
    if out.suffix.lower() == ".npy":
        check_target(rows_file(out), option="--out", force=force, source=Path(data))
    encoder = load_encoder(run)
    images = load_fitting(encoder.shape, data, split, progress=not quiet)
    tell_skipped(images, kept_in=skipped_file(out), quiet=quiet)
    weights = digest((run / name).read_bytes() for name in ("encoder.json", "encoder.safetensors"))
    job = {"command": "embed", "encoder": weights, "layer": state}
    order = ImageBlocks(data, split, limit, BLOCK, out, job)
    model = encoder, state, named_device("auto")  # workers do not know the options of this process
    blocks = image_blocks(order, images, crew, feature_block, model, force=force, quiet=quiet)
    source = limited(images, limit)
    n_images, n_features = write_features(
        encoder,
        source,
        out,
        labels=None if images.labels is None else images.labels[: len(source)],
        class_names=images.class_names,
        names=[path_cell(path) for path in image_paths(images, limit)] or None,
        features=blocks,
    )
    blocks.remove()
    if not quiet:
        text = f"{n_images:,} images, {n_features:,} features of {state}: {out}"
        Console(highlight=False).print(Text(text), soft_wrap=True)
