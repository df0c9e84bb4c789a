"""Decision maps of figure 4 as text in a record, and as panels of a picture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from neuralbayes.report.manifolds import Panel
from paper.runs import Record

MARGIN = 0.62  # half the side of a map, relative to the extent of the points

Predict = Callable[[NDArray[np.float64]], NDArray[np.int64]]


def packed(predict: Predict, plane: NDArray[np.float64], n: int) -> dict[str, str]:
    """States of the points and of an n x n map, one digit each."""
    return {
        name: "".join(map(str, predict(points))) for name, points in (("labels", plane), ("map", _grid(plane, n)[0]))
    }


def panel(record: Record, title: str, caption: str, plane: NDArray[np.float64], *, good: bool) -> Panel:
    """The panel of a record with a map."""
    picture, n = record.values["picture"], record.settings["grid"]
    states, labels = (np.array(list(picture[name]), dtype=np.int64) for name in ("map", "labels"))
    return Panel(
        title=title,
        caption=f"{caption}{100 * record.values['right']:.1f} % correct",
        certified=good,
        points=plane,
        labels=labels,
        extent=_grid(plane, n)[1],
        decision_map=np.eye(max(states.max(), labels.max()) + 1)[states.reshape(n, n)],
    )


def _grid(plane: NDArray[np.float64], n: int) -> tuple[NDArray[np.float64], tuple[float, float, float, float]]:
    """Points of a square around `plane`, (n * n, 2) from the bottom up, and its left, right, bottom and top."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    half = MARGIN * float((high - low).max())
    columns, rows = (np.linspace(c - half, c + half, n) for c in (low + high) / 2)
    extent = (float(columns[0]), float(columns[-1]), float(rows[0]), float(rows[-1]))
    return np.stack(np.meshgrid(columns, rows), axis=-1).reshape(-1, 2), extent
