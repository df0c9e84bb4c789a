"""``neuralbayes label`` on pictures: list blank pictures and near-duplicates in a file."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from neuralbayes.cli.runs import image_paths

if TYPE_CHECKING:
    from neuralbayes.data.sources import Images


def odd_file(out: Path) -> Path:
    """The list of blank pictures and near-duplicates, next to the labels.

    Examples
    --------
    >>> odd_file(Path("photos-labels.csv")).name
    'photos-odd.csv'
    """
    return out.with_name(f"{out.stem.removesuffix('-labels')}-odd.csv")


def odd_images(images: Images, limit: int | None, kept_in: Path) -> str | None:
    """List blank pictures and near-duplicates in the file `kept_in`; returns a note, or None if there are none."""
    from neuralbayes.data.path_text import path_cell
    from neuralbayes.system.files import atomic_write

    thumbnails = getattr(images.source, "thumbnails", None)
    if thumbnails is None:
        return None
    found = thumbnails.oddities(limit)
    paths = [path_cell(path) for path in image_paths(images, limit)]
    lines = [(paths[i], "blank", "") for i in found.blank]
    lines += [(paths[i], "repeats", paths[j]) for i, j in sorted(found.repeats.items())]
    if not lines:
        return None
    with atomic_write(kept_in) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["path", "what", "of"])
        writer.writerows(lines)
    blank, repeats = len(found.blank), len(found.repeats)
    words = [f"{blank:,} blank {'picture' if blank == 1 else 'pictures'}"] if blank else []
    words += [f"{repeats:,} near-{'duplicate' if repeats == 1 else 'duplicates'}"] if repeats else []
    return f"Found {' and '.join(words)}: {kept_in}"
