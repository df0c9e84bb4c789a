"""How a member is shown: the telling cells of a row, the words of a text, a thumbnail of an image."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.sources import FilesSource, resized
from neuralbayes.explain.conditions import short_number
from neuralbayes.plot.images import tile_wall

if TYPE_CHECKING:
    import pandas as pd

Clustering = Any  # a `neuralbayes.Clustering`, which uses this module and is therefore not imported
MOST_COLUMNS = 12  # maximum number of columns of the rows on the map, to find and to show
CARD_COLUMNS = 4  # number of columns of the typical rows on a card
MISSING = "-"
LETTERS, CELL_LETTERS = 200, 48  # maximum lengths of a text and of a cell
TINY = 40  # images whose sides are shorter are enlarged without smoothing
READ = 64  # images in memory at a time, which may be large
SINGLE = ((192, 80), (128, 80), (96, 75), (64, 65), (48, 55))  # longer side and quality of separate thumbnails
SHEET = ((48, 80), (32, 70), (24, 50), (16, 30))  # and of those in a sheet
BLOCK = 16  # block size of WebP in pixels: thumbnails that share a block would bleed into each other


@dataclass(frozen=True)
class Member:
    """A member on a card: its row number, its name, and cells, a text or the data URL of a picture."""

    row: int
    name: str
    cells: tuple[str, ...] = ()
    text: str | None = None
    picture: str | None = None


@dataclass(frozen=True)
class Sheet:
    """Thumbnails in one picture, `columns` in a row, in cells of `cell` pixels."""

    address: str
    columns: int
    cell: int
    width: int
    height: int


class Members:
    """Show the members of a clustering by their row numbers."""

    def __init__(self, result: Clustering) -> None:
        points = result.points
        self.noun: str = points.noun
        self.texts: Sequence[str] | None = points.texts
        self.images: Any = None if points.images is None else getattr(points.images, "source", points.images)
        described = result.description
        self.frame = _frame(points, described) if self.texts is None and self.images is None else None
        self.row_names: list[str] | None = None if described is None else described.row_names
        paths = getattr(self.images, "paths", None)
        self.paths: list[str] | None = None if paths is None else [str(getattr(path, "name", path)) for path in paths]
        names = [] if self.frame is None else _columns_to_show(self.frame, points.columns, self.row_names)
        found = [] if described is None else described.clusters
        # For each cluster, the columns that tell it from the rest, the most telling first.
        self.telling = [_telling(one, names) for one in found]
        # Those that tell most clusters, by reciprocal ranks: the first of each cluster comes before the third of any.
        weight = dict.fromkeys(names, 0.0)
        for ranked in self.telling:
            for place, name in enumerate(ranked):
                weight[name] += 1.0 / (1 + place)
        self.columns = sorted(names, key=lambda name: -weight[name])[:MOST_COLUMNS]

    @property
    def tiny(self) -> bool:
        """Whether images are so small that their pixels should stay sharp."""
        return self.images is not None and max(self.images.shape[:2]) < TINY

    def name(self, row: int) -> str:
        """The file of an image, the name of a row, or a number."""
        names = self.paths or self.row_names
        return names[row] if names and names[row] else f"{self.noun} {row}"

    def cells(self, rows: Sequence[int] | NDArray[np.integer], column: str) -> list[str]:
        """The cells of a column as short texts."""
        return [] if self.frame is None else [cell_text(cell) for cell in self.frame[column].iloc[list(rows)]]

    def text(self, row: int) -> str | None:
        """The beginning of a text."""
        return None if self.texts is None else shortened(str(self.texts[row]), LETTERS)

    def shown(self, rows: Sequence[int], columns: Sequence[str], pictures: Mapping[int, str]) -> list[Member]:
        """The members of a card; `pictures` are thumbnails by row number."""
        cells = list(zip(*(self.cells(rows, column) for column in columns), strict=True)) or [()] * len(rows)
        return [
            Member(row, self.name(row), own, self.text(row), pictures.get(row))
            for row, own in zip(rows, cells, strict=True)
        ]

    def thumbnails(self, rows: Sequence[int], budget: int) -> dict[int, str]:
        """Data URLs of images by row number, as large as fits into `budget` bytes in total."""
        if self.images is None or not rows:
            return {}
        pictures = self._small(rows, SINGLE[0][0])
        for longest, quality in SINGLE:
            found = [webp(shrunk(picture, longest), quality=quality) for picture in pictures]
            if sum(map(len, found)) <= budget:
                break
        return {row: data_url(content, "image/webp") for row, content in zip(rows, found, strict=True)}

    def sheet(self, rows: Sequence[int], budget: int) -> Sheet | None:
        """Small thumbnails of many images in one WebP file of at most `budget` bytes, if that is possible."""
        if self.images is None or not rows:
            return None
        pictures = self._small(rows, SHEET[0][0])
        for longest, quality in SHEET:
            content, found = _sheet([shrunk(picture, longest) for picture in pictures], quality)
            if len(content) <= budget:
                break
        return found

    def _small(self, rows: Sequence[int], longest: int) -> list[NDArray[np.uint8]]:
        """Images in colour whose longer side is at most `longest`, read in blocks; a few from their files again."""
        height, width = self.images.shape[:2]
        scale = longest / max(height, width)
        sharper = scale > 1 and len(rows) <= READ and not self.tiny and isinstance(self.images, FilesSource)
        shape = round(scale * height), round(scale * width), self.images.shape[2]
        images = resized(self.images, shape) if sharper else self.images
        blocks = (images.read(np.asarray(rows[start : start + READ])) for start in range(0, len(rows), READ))
        return [shrunk(one, longest) for block in blocks for one in block]


def shortened(text: str, letters: int) -> str:
    """The beginning of a text, on one line.

    Examples
    --------
    >>> shortened("one\\n  two", 20), len(shortened("word " * 100, 20))
    ('one two', 20)
    """
    line = " ".join(text[: 4 * letters].split())
    return line if len(line) <= letters else f"{line[: letters - 1].rstrip()}…"


def cell_text(cell: Any) -> str:
    """A cell as a short text; a dash if it is missing.

    Examples
    --------
    >>> [cell_text(cell) for cell in (3.14159, 7, None, float("nan"), True, "Bonn")]
    ['3.14', '7', '-', '-', 'True', 'Bonn']
    """
    if cell is None or cell != cell:  # NaN and NaT differ from themselves
        return MISSING
    if isinstance(cell, float | np.floating):
        return short_number(float(cell)) if math.isfinite(cell) else str(cell)
    if isinstance(cell, bool | np.bool_):
        return str(bool(cell))
    if isinstance(cell, int | np.integer):
        return str(cell)
    return shortened(str(cell).removesuffix(" 00:00:00").replace("<NA>", MISSING), CELL_LETTERS)


def data_url(content: bytes, kind: str) -> str:
    """Encode content as a data URL."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"


def _frame(points: Any, described: Any) -> pd.DataFrame | None:
    """The table to show; an array becomes a table with the columns of the description."""
    import pandas as pd

    if points.frame is not None:
        return pd.DataFrame(points.frame)
    rows = points.X
    if not isinstance(rows, np.ndarray) or rows.ndim != 2 or described is None:
        return None
    names = [column.name for column in described.columns]
    return pd.DataFrame(rows, columns=names if len(names) == rows.shape[1] else [str(j) for j in range(rows.shape[1])])


def _columns_to_show(frame: pd.DataFrame, known: Sequence[Any], row_names: Sequence[str] | None) -> list[str]:
    """All columns but the one that names the rows, as far as the first ones tell; those that were used come first."""
    used = {column.name for column in known if column.used}
    first = None if row_names is None else list(row_names[:READ])
    names = [name for name in frame.columns if list(map(str, frame[name].iloc[:READ])) != first]
    return sorted(names, key=lambda name: name not in used)


def _telling(found: Any, names: Sequence[str]) -> list[str]:
    """The columns of the rule, of the name and of the differences of a cluster."""
    conditions = [] if found.rule is None else list(found.rule.conditions)
    conditions += [claim.condition for claim in (*found.claims, *found.differences) if claim.condition is not None]
    return list(dict.fromkeys(one.column for one in conditions if one.column in names))


def shrunk(picture: NDArray[np.uint8], longest: int) -> NDArray[np.uint8]:
    """Shrink the longer side to at most `longest` pixels, in colour: (H, W, C) -> (h, w, 3)."""
    from PIL import Image

    picture = picture[..., :3] if picture.shape[2] > 2 else picture[..., :1].repeat(3, axis=2)
    scale = longest / max(picture.shape[:2])
    if scale >= 1.0:
        return picture
    height, width = (max(1, round(scale * side)) for side in picture.shape[:2])
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def webp(picture: NDArray[np.uint8], **options: Any) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(picture)).save(file, "WEBP", method=4, **options)
    return file.getvalue()


def _sheet(pictures: Sequence[NDArray[np.uint8]], quality: int) -> tuple[bytes, Sheet]:
    """Pictures of one size as WebP."""
    height, width = pictures[0].shape[:2]
    cell = BLOCK * math.ceil(max(height, width) / BLOCK)
    columns = math.ceil(math.sqrt(len(pictures)))  # WebP limits each side to 16,383 pixels
    # Repeat the edges up to the end of the cell, so that neighbours do not bleed in.
    cells = np.pad(np.stack(pictures), ((0, 0), (0, cell - height), (0, cell - width), (0, 0)), mode="edge")
    content = webp(tile_wall(cells, columns, 0, 0), quality=quality)
    return content, Sheet(data_url(content, "image/webp"), columns, cell, width, height)
