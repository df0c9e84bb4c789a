"""The clusters of a table as the page explains them: cards, a heat map, and a reason for each row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.explain.columns import Column, standardized
from neuralbayes.explain.description import ClusterDescription, Description, describe
from neuralbayes.explain.information import column_information, row_evidence
from neuralbayes.explain.numerals import as_date, short_number
from neuralbayes.report.explorer.side import Grid

if TYPE_CHECKING:
    import pandas as pd

MAX_COLUMNS = 40
"""Maximum number of columns in the heat map and in lists of rows: the most informative ones."""

N_REASONS = 3
"""Number of columns given as the reason for a label."""

LETTERS = 60
"""Maximum length of a text on the page."""

STEPS = 5
"""Number of shades on either side of the heat map."""


@dataclass(frozen=True)
class HeatCell:
    """A cell of the heat map; `step` runs from -STEPS to STEPS, or from 0 for categories."""

    text: str
    step: int
    detail: str


@dataclass(frozen=True)
class Card:
    """The card of one cluster."""

    number: int
    name: str
    size: int
    share: float
    stability: float | None
    words: Sequence[str]
    rule: str
    precision: float
    recall: float
    typical: Grid
    borderline: Grid


@dataclass(frozen=True, eq=False)
class Described:
    """The explanation of the clusters of a table.

    Attributes
    ----------
    sentence : str
        Summary of the result.
    cards : list of Card
    heat : list of (str, bool, list of HeatCell)
        A column of the table, whether it was fitted, and its cell for each cluster.
    row_names : list of str
    cells : list of (Column, list of str)
        The columns of the list of rows, and their cells as text.
    runner_up : ndarray of int64 and shape (n_rows,)
        The second most probable cluster.
    reasons : ndarray of int64 and shape (n_rows, N_REASONS)
        Indices into `cells` of the columns that support the label most, compared with the runner-up; -1 for none.
    """

    sentence: str
    cards: list[Card]
    heat: list[tuple[str, bool, list[HeatCell]]]
    row_names: list[str]
    cells: list[tuple[Column, list[str]]]
    runner_up: NDArray[np.int64]
    reasons: NDArray[np.int64]

    @property
    def names(self) -> list[str]:
        return [card.name for card in self.cards]


def described(
    frame: pd.DataFrame,
    p_zx: NDArray[Any],
    *,
    index: NDArray[np.int64],
    sizes: NDArray[np.integer] | None,
    fitted: Collection[str],
    left_out: Collection[str],
    verdict: str,
    stability: NDArray[np.float64] | None = None,
) -> Described:
    """Explain the clusters of some rows of a table.

    Parameters
    ----------
    frame : DataFrame of shape (n_rows, n_columns)
        All columns of these rows.
    p_zx : ndarray of shape (n_rows, n_clusters)
    index : ndarray of int64 and shape (n_rows,)
        Row numbers in the whole table.
    sizes : ndarray of shape (n_clusters,), or None
        Rows of each cluster in the whole table, if known; otherwise these rows are counted.
    fitted : collection of str
        The columns that the model was fitted to. Only they can be a reason for a label or appear in a rule.
    left_out : collection of str
        Columns to ignore, such as true classes.
    verdict : str
        Separation of the clusters in words, for the sentence.
    stability : ndarray of shape (n_clusters,), optional
        How far two halves of the training rows agree about each cluster.
    """
    k = p_zx.shape[1]
    labels = p_zx.argmax(axis=1)
    found = describe(frame, labels, n_clusters=k, proba=p_zx, fitted=fitted, left_out=left_out)
    counts = np.bincount(labels, minlength=k) if sizes is None else sizes
    names = found.row_names or [f"row {i:,}" for i in index]
    columns = _telling(found, labels, k)
    cells = [(column, _texts(column, frame)) for column in columns]
    reasons, runner_up = _reasons(columns, fitted, labels, p_zx)
    heat = [
        (column.name, column.name in fitted, _heat(column, labels, k)) for column in columns if column.kind != "text"
    ]
    cards = [
        _card(cluster, int(counts[i]), int(counts.sum()), None if stability is None else stability[i], cells, names)
        for i, cluster in enumerate(found.clusters)
    ]
    return Described(_sentence(cards, verdict), cards, heat, names, cells, runner_up, reasons)


def _telling(found: Description, labels: NDArray[np.integer], k: int) -> list[Column]:
    """At most MAX_COLUMNS columns, the most informative first, text last."""
    told = [
        -1.0 if column.kind == "text" else float(column_information(column, labels, k).sum())
        for column in found.columns
    ]
    return [found.columns[j] for j in np.argsort(-np.array(told), kind="stable")[:MAX_COLUMNS]]


def _sentence(cards: Sequence[Card], verdict: str) -> str:
    total = sum(card.size for card in cards)
    if len(cards) == 1:
        return f"One cluster: nothing was found that divides the {total:,} rows."
    listed = [f"{card.name} ({100 * card.share:.0f} %)" for card in cards[:6]]
    more = [f"{len(cards) - 6} more"] if len(cards) > 6 else []
    words = f"{len(cards)} clusters in {total:,} rows: {'; '.join([*listed, *more])}."
    return f"{words} {verdict}".strip()


def _card(
    cluster: ClusterDescription,
    size: int,
    total: int,
    stability: float | None,
    cells: Sequence[tuple[Column, list[str]]],
    names: Sequence[str],
) -> Card:
    telling = [one.condition.column for one in cluster.differences if one.condition is not None]
    order = sorted(
        range(len(cells)), key=lambda j: telling.index(cells[j][0].name) if cells[j][0].name in telling else 99
    )

    def rows(which: NDArray[np.intp], caption: str) -> Grid:
        head = ("", *(cells[j][0].name for j in order))
        return Grid(caption, head, [(names[i], *(cells[j][1][i] for j in order)) for i in which])

    rule = cluster.rule
    return Card(
        cluster.cluster,
        cluster.name,
        size,
        size / max(1, total),
        stability,
        [str(one) for one in cluster.differences],
        "" if rule is None else str(rule),
        0.0 if rule is None else rule.precision,
        0.0 if rule is None else rule.recall,
        rows(cluster.typical, "Typical rows"),
        rows(cluster.borderline, "Borderline rows"),
    )


def _heat(column: Column, labels: NDArray[np.integer], k: int) -> list[HeatCell]:
    """The cell of each cluster: numbers in standard deviations from the mean, categories by their most common value."""
    found = []
    scaled = standardized(column.values) if column.ordered else np.empty(0)
    show = as_date if column.kind == "date" else short_number
    for cluster in range(k):
        own = (labels == cluster) & ~column.missing
        if not own.any():
            found.append(HeatCell("", 0, "no cells"))
        elif column.ordered:
            value = float(scaled[own].mean())
            median = float(np.median(column.values[own]))
            median = 86_400.0 * round(median / 86_400.0) if column.kind == "date" else median
            step = int(np.clip(round(2 * value), -STEPS, STEPS))
            found.append(
                HeatCell(show(median), step, f"median {show(median)}, mean {value:+.1f} sd from that of all rows")
            )
        else:
            counts = np.bincount(column.bins[own], minlength=column.n_bins)
            share = counts.max() / counts.sum()
            value_name = column.levels[int(counts.argmax())]
            text = f"{value_name[:24]} {100 * share:.0f} %"
            found.append(HeatCell(text, round(STEPS * share), f"{value_name} in {100 * share:.1f} % of its rows"))
    return found


def _reasons(
    columns: Sequence[Column], fitted: Collection[str], labels: NDArray[np.integer], p_zx: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The columns that support each label most, compared with the second most probable cluster, and that cluster."""
    n, k = p_zx.shape
    reasons = np.full((n, N_REASONS), -1, np.int64)
    if k < 2:
        return reasons, np.zeros(n, np.int64)
    runner_up = np.argsort(-p_zx, axis=1, kind="stable")[:, 1]
    places = [j for j, column in enumerate(columns) if column.name in fitted and column.kind != "text"]
    places = places or [j for j, column in enumerate(columns) if column.kind != "text"]
    if not places:
        return reasons, runner_up
    chosen = [columns[j] for j in places]
    evidence = np.stack(
        [
            np.where(column.missing, 0.0, logs[labels, column.bins] - logs[runner_up, column.bins])
            for column, logs in zip(chosen, row_evidence(chosen, labels, k), strict=True)
        ],
        axis=1,
    )
    order = np.argsort(-evidence, axis=1, kind="stable")[:, :N_REASONS]
    speaks = np.take_along_axis(evidence, order, axis=1) > 0.1  # nats: smaller values do not count
    reasons[:, : order.shape[1]] = np.where(speaks, np.array(places)[order], -1)
    return reasons, runner_up


def _texts(column: Column, frame: pd.DataFrame) -> list[str]:
    """The cells of a column as text; empty if missing."""
    if column.ordered:
        show = as_date if column.kind == "date" else short_number
        return ["" if np.isnan(value) else show(value) for value in column.values.tolist()]
    if column.kind == "category":
        shown = [*column.levels, ""]
        return [shown[b][:LETTERS] for b in column.bins.tolist()]
    cells = frame[column.name] if column.name in frame else frame.iloc[:, list(map(str, frame)).index(column.name)]
    return ["" if gone else str(cell)[:LETTERS] for cell, gone in zip(cells, cells.isna(), strict=True)]
