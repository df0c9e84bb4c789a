"""Folders of `neuralbayes pretrain`: their images and their encoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.terminal import tell

if TYPE_CHECKING:
    from neuralbayes.data.images import Images
    from neuralbayes.features.encoder import ImageEncoder


def is_run(folder: Path) -> bool:
    """Whether a folder is that of a run, finished or not."""
    return (folder / "config.json").is_file() or (folder / "encoder.json").is_file()


def keep_choice(run: Path, choice: dict[str, Any]) -> None:
    """Write data.json, which says what the run is trained on, or raise if it was started on other images."""
    from neuralbayes.system.files import read_json, write_json

    path = run / "data.json"
    if (run / "config.json").is_file() and path.is_file() and read_json(path) != choice:
        raise ValueError(f"{run} holds a run on other images, {read_json(path)}; choose another folder with --out")
    write_json(path, choice)


def load_encoder(run: Path) -> ImageEncoder:
    """The encoder of a finished run."""
    from neuralbayes.features.encoder import ImageEncoder

    if (run / "config.json").is_file() and not (run / "encoder.json").is_file():
        raise ValueError(f"the run in {run} has not finished; run the same pretrain command to continue it")
    return ImageEncoder.load(run)


def load_fitting(encoder: ImageEncoder, data: str, split: str, *, quiet: bool) -> Images:
    """Images in the shape of an encoder."""
    from neuralbayes import load_images

    height, width, channels = encoder.shape
    images = load_images(data, split=split, size=(height, width), channels=channels, progress=not quiet)
    tell_skipped(images, quiet=quiet)
    return images


def some(images: Images, limit: int | None) -> Images:
    """At most `limit` images, evenly spaced, because folders are sorted by class."""
    import numpy as np

    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    if limit is None or limit >= len(images):
        return images
    return images.take(np.linspace(0, len(images) - 1, limit).astype(np.int64))


def hidden_state(layer: str) -> str:
    """The hidden state of --layer."""
    return f"relu{layer.replace('last', '4')}"


def tell_skipped(images: Images, *, quiet: bool) -> None:
    """Name the first files that could not be read."""
    if images.skipped and not quiet:
        lines = [f"  {path}: {why}" for path, why in images.skipped[:5]]
        files = "file was" if len(images.skipped) == 1 else "files were"
        for line in (f"{len(images.skipped):,} {files} skipped:", *lines):
            tell(line, style="yellow")
