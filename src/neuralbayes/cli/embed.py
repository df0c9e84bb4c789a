"""``neuralbayes embed``: features of images as a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from rich.console import Console
from rich.text import Text

from neuralbayes.cli.options import Flag
from neuralbayes.cli.outputs import check_target
from neuralbayes.cli.runs import data_name, limited, load_encoder, load_fitting, one_layer, skipped_file, tell_skipped
from neuralbayes.cli.workers import check_workers, command_words, lead, resumable
from neuralbayes.distributed.launch import Share, launched_share

if TYPE_CHECKING:
    from neuralbayes.data.sources import ImageSource
    from neuralbayes.features.encoder import ImageEncoder
    from neuralbayes.parts import Parts

EXAMPLES = """One row for each image, in their order. A .parquet file has the columns index, path (for a folder), \
label (where there are labels) and f_0, f_1, ...; a .npy file has the features alone. Only f_0, f_1, ... are features \
to neuralbayes label. Images of another size than the \
encoder's are cut and scaled to it.

More than a thousand images are done in parts, which are kept beside the file until it is whole: interrupted, the same \
command goes on. --workers shares the parts among processes; so do torchrun and Slurm's srun, on several machines that \
see the same folder. The file is the same for any number of processes.

[bold]Examples[/bold]

  [cyan]neuralbayes embed run my_images/ --out features.parquet[/cyan]
  [cyan]neuralbayes embed run cifar10 --split test --layer 2 --out test.npy[/cyan]
  [cyan]neuralbayes embed run my_images/ --workers 8 --out features.parquet[/cyan]
  [cyan]srun -n 64 neuralbayes embed run my_images/ --out features.parquet[/cyan]
"""

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
    workers: int = 1,
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
    workers
        Processes of this machine that share the work; they share the cores.
    force
        Replace a file that exists, and parts of another job.
    quiet
        Print nothing but errors.
    """
    share = launched_share()
    check_workers(workers, share)
    order = _Order(run, data, split, limit, one_layer(layer), out)
    with resumable(order.folder, quiet=quiet):
        if workers > 1:
            words = command_words(
                "embed", run, data, out=out, layer=layer, split=split, limit=limit, force=force, quiet=quiet
            )
            lead(words, workers)
        elif share.rank:
            _help(order, share)
        else:
            _write(order, share, force=force, quiet=quiet)


@dataclass(frozen=True)
class _Order:
    """What was asked for."""

    run: Path
    data: str
    split: str
    limit: int | None
    state: str
    out: Path

    @property
    def folder(self) -> Path:
        """Where the parts go."""
        from neuralbayes.parts import parts_folder

        return parts_folder(self.out)

    def to_dict(self) -> dict[str, Any]:
        """All that determines the features, as JSON can hold it."""
        from neuralbayes.data.catalog import is_name
        from neuralbayes.parts import contents, file_stamp

        return {
            "command": "embed",
            "encoder": contents(self.run / "encoder.json", self.run / "encoder.safetensors"),
            "layer": self.state,
            "images": data_name(self.data),
            "file": None if is_name(self.data) else file_stamp(Path(self.data).expanduser()),
            "split": self.split,
            "limit": self.limit,
        }


def _write(order: _Order, share: Share, *, force: bool, quiet: bool) -> None:
    """Write the features, alone or as process 0 of several."""
    from neuralbayes.data.path_text import path_cell
    from neuralbayes.features.export import check_features_path, write_features
    from neuralbayes.parts import announced

    check_features_path(order.out)
    check_target(order.out, option="--out", force=force, source=Path(order.data))
    with announced(order.folder, share):
        encoder = load_encoder(order.run)
        images = load_fitting(encoder.shape, order.data, order.split, progress=not quiet)
        source = limited(images, order.limit)
        tell_skipped(images, kept_in=skipped_file(order.out), quiet=quiet)
        paths = getattr(images.source, "paths", ())[: len(source)]
        parts = _begin(order, encoder, source, paths, share, force=force)
    n_images, n_features = write_features(
        encoder,
        source,
        order.out,
        state=order.state,
        labels=None if images.labels is None else images.labels[: len(source)],
        names=[path_cell(path) for path in paths] or None,
        verbose=not quiet,
        parts=parts,
    )
    if parts is not None:
        parts.remove()
    if not quiet:
        text = f"{n_images:,} images, {n_features:,} features of {order.state}: {order.out}"
        Console(highlight=False).print(Text(text), soft_wrap=True)


def _begin(
    order: _Order, encoder: ImageEncoder, source: ImageSource, paths: Sequence[Path], share: Share, *, force: bool
) -> Parts | None:
    """Begin the parts, or go on with them; a single one by a single process needs no file."""
    from neuralbayes.data.listed import listing_of
    from neuralbayes.data.sources import SubsetSource
    from neuralbayes.features import export
    from neuralbayes.parts import begin, stamps

    if share.world == 1 and len(source) <= export.BLOCK:
        return None
    return begin(
        order.folder,
        order.to_dict(),
        data=stamps(paths) if paths else None,
        n_rows=len(source),
        part_rows=export.BLOCK,
        like=encoder.features(SubsetSource(source, [0]), order.state, max_size=export.MAX_FEATURES),
        listing=listing_of(paths, source.shape) if paths else None,
        share=share,
        force=force,
    )


def _help(order: _Order, share: Share) -> None:
    """Compute the share of another process than process 0."""
    from neuralbayes.parts import join

    parts = join(order.folder, order.to_dict(), order.out, share)
    if parts is None:
        return
    from neuralbayes.data.listed import ListedSource
    from neuralbayes.features.export import write_features

    encoder = load_encoder(order.run)
    listing = parts.listing()
    source: ImageSource
    if listing is None:
        source = limited(load_fitting(encoder.shape, order.data, order.split, progress=False), order.limit)
    else:
        source = ListedSource.from_listing(listing)
    write_features(encoder, source, order.out, state=order.state, parts=parts)
