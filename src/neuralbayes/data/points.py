"""Data of any kind as points that can be clustered, with all that is needed to show, describe and read them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

    from neuralbayes.data.columns import Column
    from neuralbayes.data.images import Images

Noun = Literal["row", "image", "text"]

TABLE_OPTIONS, IMAGE_OPTIONS = ("sep", "decimal", "encoding", "sheet", "key"), ("split", "limit", "size")
LINES = 100  # of a .txt file to inspect


@dataclass(frozen=True, eq=False)
class Points:
    """Data that can be clustered."""

    noun: Noun  # word for a sample
    title: str  # name of the data, for people
    X: Any  # the samples, as estimators take them; features, if samples are compared by features
    frame: Any = None  # all columns of a table, used or not
    columns: list[Column] = field(default_factory=list)  # how each column of `frame` is used
    texts: list[str] | None = None
    images: Any = None  # to show
    features_from: str | None = None  # name of the network or file of the features
    identity: str | None = None  # digest of what computed the features; those of another one cannot be compared
    recipe: dict[str, Any] = field(default_factory=dict)  # how the data were read, as JSON
    notes: list[str] = field(default_factory=list)  # what a person should know about the data

    def __len__(self) -> int:
        return int(self.X.shape[0]) if hasattr(self.X, "shape") and self.noun != "image" else len(self.X)

    def table(self) -> pd.DataFrame:
        """The samples as a table without columns that this library wrote: texts, or numbers and paths of images."""
        import pandas as pd

        from neuralbayes.data.columns import written_columns

        if self.frame is not None:
            return self.frame.drop(columns=list(written_columns(self.frame)))  # type: ignore[no-any-return]
        if self.texts is not None:
            return pd.DataFrame({"text": self.texts})
        frame = pd.DataFrame({"index": np.arange(len(self))})
        if paths := getattr(getattr(self.images, "source", None), "paths", ()):
            from neuralbayes.data.pictures import readable

            frame["path"] = [readable(path) for path in paths]
        return frame


def as_points(
    data: Any,
    *,
    text: str | None = None,
    columns: Sequence[str] | None = None,
    kinds: Mapping[str, str] | None = None,
    apart: Mapping[str, str] | None = None,
    read: Mapping[str, Any] | None = None,
    least: int = 2,
    progress: bool = False,
) -> Points:
    """Read `data`, and recognise what it is; parameters are those of :func:`neuralbayes.cluster`.

    `apart` are columns that are not used, with the parameter that names them, and `least` is the least number of
    samples.

    Examples
    --------
    >>> as_points([[1.0, 2.0], [3.0, 4.0]]).noun, as_points(np.zeros((5, 8, 8))).noun
    ('row', 'image')
    >>> import pandas as pd
    >>> points = as_points(pd.DataFrame({"kg": [1.5, 2.0, 4.1], "unit": ["cm", "cm", "cm"]}))
    >>> [(column.name, column.kind) for column in points.columns]
    [('kg', 'number'), ('unit', 'constant')]
    """
    given = dict(read or {})
    for key, number in {"size": _sides, "limit": _limit}.items():
        if given.get(key) is not None:
            given[key] = number(given[key])
    points = _opened(data, text, given, progress)
    if text is not None and points.frame is None:
        raise ValueError(f"`text` must be None unless `data` is a table with named columns, got {text!r}")
    allowed = TABLE_OPTIONS if points.images is None else IMAGE_OPTIONS
    if odd := [name for name in given if name not in allowed]:
        what = "tables" if points.images is None else "images"
        raise ValueError(f"`read` must have keys of {', '.join(allowed)} for {what}, got {odd[0]!r}")
    for column, parameter in (apart or {}).items():
        _check_columns(points.frame, [column], parameter)
    if apart:
        kinds = dict(kinds or {}) | dict.fromkeys(apart, "ignore")
        columns = None if columns is None else [*columns, *(name for name in apart if name not in columns)]
    if (n := len(points.texts or points)) < least:
        raise ValueError(f"`data` must have at least {least} {points.noun}s, got {n}")
    points = replace(points, recipe={"text": text, "read": given, "kinds": dict(kinds or {}), **points.recipe})
    if points.noun == "row":
        return _with_columns(points, columns, kinds)
    for name, value in {"columns": columns, "kinds": kinds}.items():
        if value and points.frame is None:
            raise ValueError(f"`{name}` must be None for {points.noun}s, which have no columns, got {value!r}")
    return points


def _opened(data: Any, text: str | None, read: dict[str, Any], progress: bool) -> Points:
    """The data, recognised and read."""
    from neuralbayes.data.columns import as_frame, is_frame

    if isinstance(data, str | PathLike):
        return _of_path(str(data), text, read, progress)
    if is_frame(data):
        return _of_frame(as_frame(data), "data frame", text)
    if type(data).__name__ == "Series" and hasattr(data, "to_list"):
        data = data.to_list()
    if _are_texts(data):
        return _of_texts(list(data), "sentences")
    if sp.issparse(data):
        return _of_numbers(data, "sparse array")
    from neuralbayes.data.images import Images, images_given

    found = images_given(data)
    if found is not None:
        images = found if isinstance(found, Images) else Images("images", "train", found)
        return _of_images(images, "images", read)
    array = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
    return _of_numbers(array, "array")


def _of_path(data: str, text: str | None, read: dict[str, Any], progress: bool) -> Points:
    from neuralbayes.data.images import holds_images, load_images
    from neuralbayes.data.tables import is_table, read_table

    path = Path(data).expanduser()
    title = path.name or str(path)
    of_array = path.suffix.lower() in (".npy", ".npz")
    if (of_array or not is_table(path)) and "key" not in read and holds_images(data):
        options = {"split": read.get("split", "train"), "size": read.get("size")}
        images = load_images(data, **options, progress=progress)
        return replace(_of_images(images, title, read), recipe={"data": data})
    if path.suffix.lower() == ".txt" and text is None and not read and path.is_file():
        from neuralbayes.data.text_tables import as_utf8

        lines = as_utf8(path.read_bytes(), str(path)).decode().splitlines()
        if not _are_numbers(lines[:LINES]):
            return replace(_of_texts([line for line in lines if line.strip()], title), recipe={"data": data})
    found = read_table(data, **{name: value for name, value in read.items() if name in TABLE_OPTIONS})
    points = _of_numbers(found, title) if isinstance(found, np.ndarray) else _of_frame(found, title, text)
    return replace(points, recipe={"data": data})


def _sides(size: Any) -> Any:
    """A size in pixels; text, such as 64 or 48x64, as numbers."""
    if not isinstance(size, str):
        return size
    sides = size.split("x")
    if len(sides) > 2 or not all(side.isdecimal() and 1 <= int(side) <= 4096 for side in sides):
        raise ValueError(f"`read` must have a size from 1 to 4096 pixels, or HxW as in 48x64, got {size!r}")
    return int(size) if len(sides) == 1 else (int(sides[0]), int(sides[1]))


def _limit(limit: Any) -> int:
    """A number of images, also as text."""
    if not (str(limit).isdecimal() and int(limit) >= 2):
        raise ValueError(f"`read` must have a limit of at least 2 images, got {limit!r}")
    return int(limit)


def _are_numbers(lines: Sequence[str]) -> bool:
    """Whether lines are rows of at least two numbers, and not sentences."""
    rows = [line.replace(",", " ").replace(";", " ").split() for line in lines if line.strip()]
    try:
        return bool(rows) and all(len(row) >= 2 and [float(cell) for cell in row] for row in rows[1:] or rows)
    except ValueError:
        return False


def _are_texts(data: Any) -> bool:
    """Whether `data` is a list of sentences, and not of files of pictures."""
    if not isinstance(data, list | tuple | np.ndarray) or not len(data) or not isinstance(data[0], str):
        return False
    from neuralbayes.data.pictures import SUFFIXES

    return not all(Path(str(item)).suffix.lower() in SUFFIXES for item in data[:LINES])


def _of_frame(frame: pd.DataFrame, title: str, text: str | None) -> Points:
    if not len(frame) or not len(frame.columns):
        raise ValueError(f"`data` must have rows and columns, got {len(frame)} rows and {len(frame.columns)} columns")
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    if text is None:
        return Points("row", title, frame, frame)
    _check_columns(frame, [text], "text")
    column = frame[text]
    texts = [str(cell) for cell in column.astype(object).where(column.notna(), "")]
    return replace(_of_texts(texts, title), frame=frame)


def _check_columns(frame: Any, names: Sequence[str], parameter: str) -> None:
    there = [] if frame is None else list(frame.columns)
    if not names or not set(names) <= set(there):
        absent = ", ".join(repr(name) for name in names if name not in there) or "none"
        shown = ", ".join(map(repr, there[:12])) + ", ..." * (len(there) > 12) or "none"
        raise ValueError(f"`{parameter}` must name columns of the table, which are {shown}, got {absent}")


def _of_texts(texts: list[str], title: str) -> Points:
    empty = sum(not str(one).strip() for one in texts)
    if empty == len(texts):
        raise ValueError(f"`data` must hold texts, got {len(texts):,} empty ones")
    notes = [f"{empty:,} {'text is' if empty == 1 else 'texts are'} empty, but labelled all the same."] if empty else []
    return Points("text", title, None, texts=[str(one) for one in texts], notes=notes)


def _of_numbers(array: Any, title: str) -> Points:
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"`data` must be rows of shape (n_samples, n_features), or images, got shape {array.shape}")
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # extended precision, which few libraries take
        with np.errstate(over="ignore"):
            array = array.astype(np.float64)
    return Points("row", title, array)


def _of_images(images: Images, title: str, read: dict[str, Any]) -> Points:
    if (limit := read.get("limit")) is not None and limit < len(images):
        images = images.take(np.arange(limit))
    n = len(images.skipped)
    words = "1 file could not be read and was" if n == 1 else f"{n:,} files could not be read and were"
    notes = [f"{words} skipped."] if n else []
    return Points("image", title, images, images=images, notes=notes)


def _with_columns(points: Points, columns: Sequence[str] | None, kinds: Mapping[str, str] | None) -> Points:
    """Choose the columns of a table, and recognise their kinds."""
    from neuralbayes.data.columns import Column, as_frame, recognize

    frame, X = points.frame, points.X
    sparse = sp.issparse(X)
    if frame is None and X.dtype.kind == "f" and np.isinf(X.data if sparse else X).any():
        raise ValueError("`data` must not hold infinity; leave such rows out, or replace it by NaN, a missing cell")
    if sparse and (columns or kinds):
        raise ValueError("`columns` and `kinds` must be None for a sparse array, whose columns have no names")
    if sparse:
        return points
    if frame is None:
        frame = as_frame(X)
        finite = X.dtype.kind in "iub" or (X.dtype.kind == "f" and np.isfinite(X.sum(dtype=np.float64)))
        if finite and not (columns or kinds):
            own = [Column(str(name), "number", "a column of an array") for name in frame]
            return replace(points, frame=frame, columns=own)
    kinds = dict(kinds or {})
    if columns is not None:
        _check_columns(frame, columns, "columns")
        if odd := set(kinds) - set(columns):
            raise ValueError(f"`kinds` names {sorted(odd)[0]!r}, which `columns` does not select")
        for column in recognize(frame[list(columns)], kinds):  # what is selected is used, even if it looks like an id
            if column.kind in ("id", "written"):
                kinds[column.name] = "number" if frame[column.name].dtype.kind in "iuf" else "category"
        kinds |= {str(name): "ignore" for name in frame if name not in columns}
    recipe = points.recipe | {"kinds": kinds}
    return replace(points, X=frame, frame=frame, columns=recognize(frame, kinds), recipe=recipe)


def some(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some samples of a table, of one or several arrays, or of images."""
    if isinstance(X, list):
        return [space[rows] for space in X]
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X.take(rows) if hasattr(X, "read") else X[rows]
