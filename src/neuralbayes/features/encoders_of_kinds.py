"""Create the encoder of a column, or restore a saved one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.column_cells import as_missing, as_numbers
from neuralbayes.data.column_kinds import Column
from neuralbayes.features.column_encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    Encoder,
    NumberEncoder,
)
from neuralbayes.features.text_encoder import MOST_PARTS, N_PARTS, TextEncoder

if TYPE_CHECKING:
    import pandas as pd

ENCODERS: dict[str, type[Encoder]] = {
    encoder.kind: encoder for encoder in (NumberEncoder, BooleanEncoder, CategoryEncoder, DateEncoder, TextEncoder)
}


def fit_encoder(
    column: Column, values: pd.Series[Any], *, unit: float, standardize: bool, alone: bool = False
) -> Encoder:
    """Learn to convert the cells of a column to numbers.

    Parameters
    ----------
    column : Column
    values : Series
        Cells of the column.
    unit : float
        Length of one standard deviation.
    standardize : bool
        Whether to divide numbers by their standard deviation.
    alone : bool, default=False
        Whether this is the only column. Text then gets more components.

    Raises
    ------
    ValueError
        If the cells do not have the requested kind.
    """
    if column.kind == "number":
        encoder: Encoder = NumberEncoder.fit(values, standardize)
    elif column.kind == "text":
        encoder = TextEncoder.fit(values, unit, MOST_PARTS if alone else N_PARTS)
    else:
        encoder = ENCODERS[column.kind].fit(values, unit)  # type: ignore[attr-defined]
    present = ~as_missing(values)
    if present.any() and np.isnan(encoder.transform(values.head(1000)[present[:1000]]).values[:, 0]).all():
        row = int(np.argmax(present))
        raise ValueError(
            f"column {column.name!r} cannot be read as {column.kind}: row {row + 1} holds {values.iloc[row]!r}; "
            "choose another kind for it"
        )
    return encoder


def restored_encoder(saved: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Encoder:
    """Restore a saved encoder, with checks; raises ValueError, TypeError or KeyError."""
    values = {key: value for key, value in saved.items() if key not in ("column", "kind")}
    return ENCODERS[saved["kind"]].restored(values, arrays)


def mean_spread(frame: pd.DataFrame) -> float:
    """Mean standard deviation of the columns of numbers; 1 if there are none."""
    spreads = [np.nanstd(numbers) for numbers, n in (as_numbers(frame[name]) for name in frame) if n]
    return float(np.mean(spreads) or 1.0) if spreads else 1.0
