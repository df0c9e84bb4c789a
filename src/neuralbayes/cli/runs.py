"""Folders of `neuralbayes pretrain`: which images they were trained on, and their encoder."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neuralbayes.cli.terminal import tell

if TYPE_CHECKING:
    from neuralbayes.data.images import Images
    from neuralbayes.features.encoder import ImageEncoder

DATA, SKIPPED = "data.json", "skipped.txt"
LAYERS = ("relu1", "relu2", "relu3", "relu4")
SHOWN = 5
"""Number of skipped files that are named on the screen."""


def keep_data(run: Path, data: str, options: Mapping[str, Any]) -> None:
    """Write data.json, or raise if the folder contains a run on other images, or other files."""
    from neuralbayes.data.catalog import is_name
    from neuralbayes.system.files import read_json, write_json

    now = {"data": data if is_name(data) else str(Path(data).expanduser().absolute()), **options}
    begun = (run / "config.json").is_file()  # otherwise an earlier attempt failed on its settings or images
    there = {path.name for path in run.iterdir() if path.name[0] != "."} if run.is_dir() else set()
    if not begun and there - {DATA, SKIPPED}:
        raise ValueError(f"{run} contains files that are not a run; choose another folder with --out")
    earlier = read_json(run / DATA) if begun and (run / DATA).is_file() else now
    if earlier != now:
        known = earlier if isinstance(earlier, dict) else {}
        was = [f"{name} was {known.get(name)!r}" for name in now if known.get(name) != now[name]]
        raise ValueError(f"{run} holds a run on other images ({', '.join(was)}); choose another folder with --out")
    write_json(run / DATA, now)


def data_of(run: Path, data: str | None, command: str) -> str:
    """The images for a command: `data` or, if there are none, the named data set that the run was trained on."""
    from neuralbayes.data.catalog import is_name
    from neuralbayes.system.files import read_json

    if data is not None:
        return data
    kept = read_json(run / DATA) if (run / DATA).is_file() else {}
    recorded = kept.get("data") if isinstance(kept, dict) else None
    if isinstance(recorded, str) and is_name(recorded) and not os.path.exists(recorded):
        return recorded
    again = f"neuralbayes {command} {shlex.quote(str(run))} {shlex.quote(str(recorded or 'DATA'))}"
    raise ValueError(f"a run does not open files by itself; name the images: {again}")


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
    return load_images(data, split=split, size=(height, width), channels=channels, progress=not quiet)


def first(images: Images, limit: int | None) -> Images:
    """At most `limit` images, evenly spaced, because folders are sorted by class."""
    import numpy as np

    from neuralbayes.data.sources import Images, SubsetSource

    if limit is not None and limit < 1:
        raise ValueError(f"--limit must be at least 1, got {limit}")
    if limit is None or limit >= len(images):
        return images
    rows = np.linspace(0, len(images) - 1, limit).astype(np.int64)
    labels = None if images.labels is None else images.labels[rows]
    return Images(images.name, images.split, SubsetSource(images.source, rows), labels, images.class_names)


def hidden_state(layer: str) -> str:
    """The hidden state by its name on the command line.

    Examples
    --------
    >>> hidden_state("last"), hidden_state("2"), hidden_state("relu3")
    ('relu4', 'relu2', 'relu3')
    """
    name = {"last": LAYERS[-1]}.get(layer, f"relu{layer}" if layer.isdecimal() else layer)
    if name not in LAYERS:
        raise ValueError(f"--layer must be last, a number from 1 to 4, or one of {', '.join(LAYERS)}, got {layer!r}")
    return name


def tell_skipped(images: Images, kept_in: Path, *, quiet: bool) -> None:
    """List files that could not be read: the first few on the screen, all of them in the file `kept_in`."""
    if not images.skipped:
        return
    from neuralbayes.system.files import atomic_write

    lines = [(os.fsencode(path).decode("utf-8", "backslashreplace"), why) for path, why in images.skipped]
    with atomic_write(kept_in) as temporary:
        temporary.write_text("".join(f"{path}\t{why}\n" for path, why in lines), encoding="utf-8")
    for text in () if quiet else (f"{len(lines):,} files were skipped (all in {kept_in}):", *lines[:SHOWN]):
        tell(text if isinstance(text, str) else f"  {text[0]}: {text[1]}", style="yellow")
