"""Common parts of the commands on images: run folders, their data, and names of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from neuralbayes.data.sources import Images, ImageSource
    from neuralbayes.features.encoder import ImageEncoder

DATA_FILE = "data.json"
SKIPPED_FILE = "skipped.txt"
LAYERS = ("relu1", "relu2", "relu3", "relu4")
SHOWN = 5  # skipped files named on the screen


@dataclass(frozen=True)
class DataChoice:
    """The training images of a run, stored as data.json in its folder."""

    data: str  # a name, or an absolute path
    split: str
    limit: int | None
    size: int | None
    channels: int | None

    def keep(self, run: Path) -> None:
        """Write data.json, or raise if the folder contains a run on other images, or other files."""
        from neuralbayes.system.files import write_json

        # Without config.json, no run has started: an earlier attempt failed on its settings or images.
        begun = (run / "config.json").is_file()
        # Hidden files are the lock and partial files of a killed process.
        there = {path.name for path in run.iterdir() if path.name[0] != "."} if run.is_dir() else set()
        if not begun and there - {DATA_FILE, SKIPPED_FILE}:
            raise ValueError(f"{run} contains files that are not a run; choose another folder with --out")
        earlier = DataChoice.of(run) if begun else None
        if earlier is not None and earlier != self:
            was = [f"{name} was {value!r}" for name, value in asdict(earlier).items() if getattr(self, name) != value]
            raise ValueError(f"{run} holds a run on other images ({', '.join(was)}); choose another folder with --out")
        write_json(run / DATA_FILE, asdict(self))

    @classmethod
    def of(cls, run: Path) -> DataChoice | None:
        """Read data.json; None if it does not exist."""
        from neuralbayes.system.files import read_json

        if not (run / DATA_FILE).is_file():
            return None
        try:
            choice = cls(**read_json(run / DATA_FILE))
        except TypeError as error:
            raise ValueError(f"{run / DATA_FILE} does not say which images were used ({error})") from error
        numbers = (choice.limit, choice.size, choice.channels)
        words = (choice.data, choice.split)
        if not all(isinstance(w, str) for w in words) or not all(isinstance(n, int | None) for n in numbers):
            raise ValueError(f"{run / DATA_FILE} does not say which images were used ({choice})")
        return choice


def data_name(data: str) -> str:
    """The name of a data set, or an absolute path, which works from anywhere."""
    from neuralbayes.data.catalog import is_name

    return data if is_name(data) else str(Path(data).expanduser().absolute())


def load_encoder(run: Path) -> ImageEncoder:
    """The encoder of a finished run."""
    from neuralbayes.features.encoder import ImageEncoder

    if (run / "config.json").is_file() and not (run / "encoder.json").is_file():
        raise ValueError(f"the run in {run} has not finished; run the same pretrain command to continue it")
    return ImageEncoder.load(run)


def load_fitting(shape: Sequence[int], data: str, split: str, *, progress: bool) -> Images:
    """Images by name or path, in the shape (H, W, C) of an encoder or model."""
    from neuralbayes.data.images import load_images

    height, width, channels = shape
    return load_images(data, split=split, size=(height, width), channels=channels, progress=progress)


def limited(images: Images, limit: int | None) -> ImageSource:
    """The first `limit` images, or all."""
    import numpy as np

    from neuralbayes.data.sources import SubsetSource

    if limit is None or limit >= len(images):
        return images.source
    if limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    return SubsetSource(images.source, np.arange(limit))


def image_paths(images: Images, limit: int | None) -> Sequence[Path]:
    """The files of the first `limit` images, or of all; empty if they do not come from a folder."""
    paths: Sequence[Path] = getattr(images.source, "paths", ())
    return paths[:limit]


def layer_names(layer: str) -> tuple[str, ...]:
    """Hidden states by their user-facing names.

    Examples
    --------
    >>> layer_names("last"), layer_names("2"), layer_names("relu3")
    (('relu4',), ('relu2',), ('relu3',))
    """
    if layer == "all":
        return LAYERS
    name = {"last": "relu4"}.get(layer, f"relu{layer}" if layer.isdecimal() else layer)
    if name not in LAYERS:
        raise ValueError(
            f"--layer must be last, all, a number from 1 to 4, or one of {', '.join(LAYERS)}, got {layer!r}"
        )
    return (name,)


def one_layer(layer: str) -> str:
    """Like :func:`layer_names`, for a single layer."""
    if layer == "all":
        raise ValueError(f"--layer must be one layer here: last, a number from 1 to 4, or one of {', '.join(LAYERS)}")
    return layer_names(layer)[0]


def tell_reduced(images: Images, *, quiet: bool) -> None:
    """Report if pictures of a folder were reduced by default."""
    original = getattr(images.source, "reduced_from", None)
    if original is None or quiet:
        return
    sizes = ["x".join(map(str, size)) for size in (original, images.shape[:2])]
    text = f"pictures are reduced from {sizes[0]} to {sizes[1]} pixels (height x width); --size asks for another size"
    Console(stderr=True, highlight=False).print(Text(text, style="yellow"), soft_wrap=True)


def skipped_file(out: Path) -> Path:
    """The list of skipped files, next to the output.

    Examples
    --------
    >>> skipped_file(Path("features.parquet")).name
    'features-skipped.txt'
    """
    return out.with_name(f"{out.stem}-{SKIPPED_FILE}")


def tell_skipped(images: Images, *, kept_in: Path, quiet: bool) -> None:
    """List skipped files: the first few on the screen, all of them in the file `kept_in`."""
    if not images.skipped:
        return
    from neuralbayes.data.path_text import readable
    from neuralbayes.system.files import atomic_write

    lines = [(readable(path), why) for path, why in images.skipped]
    with atomic_write(kept_in) as temporary:
        temporary.write_text("".join(f"{path}\t{why}\n" for path, why in lines), encoding="utf-8")
    if quiet:
        return
    console = Console(stderr=True, highlight=False)
    first = f"the first {SHOWN} are" if len(lines) > SHOWN else "they are" if len(lines) > 1 else "it is"
    count = "1 file was skipped" if len(lines) == 1 else f"{len(lines):,} files were skipped"
    console.print(Text(f"{count} (all in {kept_in}); {first}:", style="yellow"), soft_wrap=True)
    for path, why in lines[:SHOWN]:
        console.print(Text(f"  {path}: {why}"), soft_wrap=True)
