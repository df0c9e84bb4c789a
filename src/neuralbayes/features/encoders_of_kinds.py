"""Which encoder a column gets, and encoders from what was saved."""

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
    """Learn how to turn the cells of a column into numbers.

    Parameters
    ----------
    column : Column
    values : Series
        Its cells.
    unit : float
        What one standard deviation is to be.
    standardize : bool
        Whether numbers are divided by theirs.
    alone : bool, default=False
        Whether no other column is used: text then gets more numbers.

    Raises
    ------
    ValueError
        Where the cells are not of the kind that was asked for.
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
    """An encoder from what was saved of it, checked; raises ValueError, TypeError or KeyError."""
    values = {key: value for key, value in saved.items() if key not in ("column", "kind")}
    return ENCODERS[saved["kind"]].restored(values, arrays)


def mean_spread(frame: pd.DataFrame) -> float:
    """The mean standard deviation of columns of numbers that stay as they are; 1 where there are none."""
    spreads = [np.nanstd(numbers) for numbers, n in (as_numbers(frame[name]) for name in frame) if n]
    return float(np.mean(spreads) or 1.0) if spreads else 1.0
