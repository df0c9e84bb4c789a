"""``neuralbayes embed``: features of images as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.outputs import check_target
from neuralbayes.cli.runs import limited, load_encoder, load_fitting, one_layer, tell_skipped

EXAMPLES = """One row for each image, in their order. A .parquet file has the columns index, path (for a folder), \
label (where there are labels) and f_0, f_1, ...; a .npy file has the features alone. Images of another size than the \
encoder's are cut and scaled to it.

[bold]Examples[/bold]

  [cyan]neuralbayes embed run my_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes embed run cifar10 --split test --layer 2 --out test.npy[/cyan]
"""

Flag = Annotated[bool, Parameter(negative="", show_default=False)]
app = App(name="embed", help_epilogue=EXAMPLES)


@app.default
def embed(
    run: Path,
    data: str,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    layer: Annotated[str, Parameter(metavar="last|1..4|relu1..relu4")] = "last",
    split: Literal["train", "test", "unlabeled"] = "train",
    limit: int | None = None,
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
        Where the features go: .parquet or .npy.
    layer
        Which hidden layer: the last one, or one by its number or name.
    split
        Which part of DATA; what is not split is all train.
    limit
        Take the first N images only.
    force
        Replace a file that exists.
    quiet
        Print nothing but errors.
    """
    from neuralbayes.export import check_features_path, write_features

    state = one_layer(layer)
    check_features_path(out)
    check_target(out, option="--out", force=force, source=Path(data))
    encoder = load_encoder(run)
    images = load_fitting(encoder, data, split, progress=not quiet)
    source = limited(images, limit)
    tell_skipped(images, kept_in=None, quiet=quiet)
    paths = getattr(images.source, "paths", None)
    n_images, n_features = write_features(
        encoder,
        source,
        out,
        state=state,
        labels=None if images.labels is None else images.labels[: len(source)],
        names=None if paths is None else [str(path) for path in paths[: len(source)]],
        verbose=not quiet,
    )
    if not quiet:
        text = f"{n_images:,} images, {n_features:,} features of {state}: {out}"
        Console(highlight=False).print(Text(text), soft_wrap=True)
