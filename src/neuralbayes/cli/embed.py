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

EXAMPLES = """One row for each image, in their order. A .parquet or .csv file has the columns index, path (for a \
folder), label and class (where there are labels and names for them) and f_0, f_1, ..., which alone are features to \
neuralbayes label. A .npy file has the features alone, and the other columns are in a file beside it, NAME-rows.csv. \
Images of another size than the encoder's are cut and scaled to it.

Images are done a thousand at a time. What is finished is kept beside the file until it is whole: interrupted, the \
same command goes on. --workers shares the images among processes of this machine, --scheduler among the workers of \
a Dask cluster. The file is the same for any number of workers.

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
        Folder of a finished pretraining.
    data
        A data set, a folder of pictures, a .npy or a .npz.
    out
        Where the features go: .parquet, .csv or .npy.
    layer
        Which hidden layer: the last one, or one by its number or name.
    split
        Which part of DATA; what is not split is all train.
    limit
        Take the first N images only.
    device
        Where the encoder computes, in every worker: cpu, cuda, cuda:1 or mps; auto is the best one there is.
    workers
        Processes of this machine that share the images; they share the cores.
    scheduler
        Share the images among the workers of this Dask scheduler instead.
    force
        Replace a file that exists, and finished blocks of another job.
    quiet
        Print nothing but errors.
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
    model = encoder, state, named_device("auto")  # a worker does not know what this process was told
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
