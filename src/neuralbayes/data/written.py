"""Recognise columns that this library has written. They are not features.

`neuralbayes embed` writes known classes next to the features, and `neuralbayes label` writes labels and probabilities
next to a table. Used as features, they would only reproduce what is already known. In Parquet they are marked; in text
files they are recognised by their names and, if these are common, by their values.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Command = Literal["embed", "label"]

INDEX, PATH, CLASS, LABEL, PROBABILITY, TYPICALITY, FEATURE = "index", "path", "class", "label", "p", "typicality", "f"
"""Names of columns. Probabilities and features have a number: p_0, f_0."""

MARK = "neuralbayes"  # attribute of a DataFrame, which pandas stores in Parquet files
PANDAS_ATTRIBUTES = b"PANDAS_ATTRS"  # key of the attributes in the metadata of a Parquet schema
TOLERANCE = 0.02  # tolerance for the sum of rounded probabilities


def written_columns(frame: pd.DataFrame) -> dict[str, str]:
    """The columns of `frame` that this library wrote and that are not features, with reasons.

    Examples
    --------
    >>> import pandas as pd
    >>> written_columns(pd.DataFrame({"height": [1.7, 1.8], "label": [0, 1], "p_0": [0.9, 0.2], "p_1": [0.1, 0.8]}))
    {'label': 'written by neuralbayes label, not a feature', 'p_0': ...}
    """
    there = {str(name) for name in frame}
    found: dict[str, Command] = {}
    for command, names in _marked(frame.attrs).items():
        found |= dict.fromkeys(names, command)
    if feature_columns(frame):
        found |= dict.fromkeys((INDEX, PATH, LABEL, CLASS), "embed")
    block = _label_blocks(frame, there)
    found |= dict.fromkeys(block, "label")
    # Only in tables of labelled images; elsewhere "index" may be an ordinary column.
    if block and INDEX in there and (PATH in there or there <= {INDEX, CLASS, *block}):
        found |= dict.fromkeys((INDEX, PATH, CLASS), "label")
    names = [str(name) for name in frame]
    return {name: f"written by neuralbayes {found[name]}, not a feature" for name in names if name in found}


def feature_columns(frame: pd.DataFrame) -> set[str]:
    """The columns f_0, f_1, ... of a table of features; empty for other tables."""
    names = {str(name) for name in frame if re.fullmatch(rf"{FEATURE}_\d+", str(name))}
    return names if {f"{FEATURE}_0", f"{FEATURE}_1"} <= names else set()


def marked(attributes: Mapping[Any, Any], command: Command, names: Iterable[str]) -> dict[Any, Any]:
    """Attributes of a DataFrame that mark the columns `names`, in addition to existing marks.

    Examples
    --------
    >>> marked({"unit": "cm"}, "label", ["p_0"])
    {'unit': 'cm', 'neuralbayes': {'label': ['p_0']}}
    """
    marks = _marked(attributes)
    marks[command] = list(dict.fromkeys([*marks.get(command, []), *names]))
    return {**attributes, MARK: marks}


def parquet_metadata(
    command: Command, names: Iterable[str], metadata: Mapping[bytes, bytes] | None = None
) -> dict[bytes, bytes]:
    """Metadata of a Parquet schema that mark the columns `names`, in the format of pandas.

    Parameters
    ----------
    command : str
    names : iterable of str
    metadata : mapping of bytes, optional
        Existing metadata.
    """
    there = dict(metadata or {})
    attributes = marked(_attributes(there), command, names)
    return {**there, PANDAS_ATTRIBUTES: json.dumps(attributes).encode()}


def with_attributes(frame: pd.DataFrame, metadata: Mapping[bytes, bytes] | None) -> pd.DataFrame:
    """Restore the attributes of `frame` from the metadata of a schema, which pyarrow before 20 does not do."""
    frame.attrs = {**_attributes(metadata or {}), **frame.attrs}
    return frame


def _attributes(metadata: Mapping[bytes, bytes]) -> dict[Any, Any]:
    try:
        attributes = json.loads(metadata.get(PANDAS_ATTRIBUTES, b"{}"))
    except (ValueError, RecursionError):  # not ours
        return {}
    return attributes if isinstance(attributes, dict) else {}


def _marked(attributes: Mapping[Any, Any]) -> dict[Command, list[str]]:
    """The marks in the attributes of a DataFrame; anything else is ignored."""
    marks = attributes.get(MARK)
    found: dict[Command, list[str]] = {}
    if isinstance(marks, dict):
        commands: tuple[Command, ...] = ("embed", "label")
        for command in commands:
            names = marks.get(command)
            if isinstance(names, list):
                found[command] = [name for name in names if isinstance(name, str)]
    return found


def _label_blocks(frame: pd.DataFrame, there: set[str]) -> list[str]:
    """Columns label, p_0, p_1, ..., or label_2, p_0_2, p_1_2, ...: labels with probabilities that sum to 1.

    A column typicality or typicality_2 belongs to them.
    """
    found: list[str] = []
    for ending in sorted(match[1] for name in there if (match := re.fullmatch(rf"{PROBABILITY}_0((?:_\d+)?)", name))):
        names: list[str] = []
        while (name := f"{PROBABILITY}_{len(names)}{ending}") in there:
            names.append(name)
        label = [f"{LABEL}{ending}"] if f"{LABEL}{ending}" in there else []
        if (label or len(names) > 1) and _are_probabilities(frame[names]):
            typical = [f"{TYPICALITY}{ending}"] if f"{TYPICALITY}{ending}" in there else []
            found += [*label, *names, *typical]
    return found


def _are_probabilities(columns: pd.DataFrame) -> bool:
    """Whether the numbers of every row are non-negative and sum to 1."""
    if not all(dtype.kind in "iuf" for dtype in columns.dtypes):
        return False
    numbers = columns.to_numpy(dtype=np.float64, na_value=np.nan)
    return bool((numbers >= 0.0).all() and (np.abs(numbers.sum(axis=1) - 1.0) <= TOLERANCE).all())
