"""Recognise discrete columns from their values: rows cannot form a manifold along them.

A gap between two values of a boolean, a category code or an id carries no information about the rows. Such columns are
recognised by their values alone, so arrays without names work too.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]

MOST_VALUES = 20
"""Maximum number of distinct values of a column with few values."""

REPEATS = 5
"""Rows per value above which a column repeats its values."""

CODES = {
    "id",
    "ids",
    "uuid",
    "code",
    "codes",
    "zip",
    "zipcode",
    "postcode",
    "postal",
    "plz",
    "phone",
    "ssn",
    "isbn",
    "ean",
}
"""Words in a column name that mark its integers as ids or codes."""

ATOM = "mostly one value"
"""Reason for a column that is only partly discrete, such as amounts that are often 0."""

ATOM_SHARE, ATOM_RATIO = 0.1, 20.0
"""Minimum fraction of rows of a dominant value, and its minimum ratio to an ordinary value."""


def why_not_continuous(values: Array) -> str | None:
    """Why gaps between the values of a column carry no information; None if they may.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Finite values, in row order.

    Returns
    -------
    str or None
        "constant", "two values", "few values", "mostly one value" or "counts the rows".

    Examples
    --------
    >>> why_not_continuous(np.array([0.0, 1.0] * 10))
    'two values'
    >>> why_not_continuous(np.linspace(0.0, 1.0, 20) ** 2) is None
    True
    """
    distinct, counts = np.unique(values, return_counts=True)
    n = len(values)
    if len(distinct) == 1:
        return "constant"
    if len(distinct) == 2 and n > 2:
        return "two values"
    if len(distinct) <= MOST_VALUES and n >= REPEATS * len(distinct):
        return "few values"
    if counts.max() >= max(ATOM_SHARE * n, ATOM_RATIO * np.median(counts)):
        return ATOM
    if _counts_rows(values, distinct):
        return "counts the rows"
    return None


def discrete_columns(X: Array) -> dict[int, str]:
    """The columns of `X` for which :func:`why_not_continuous` returns a reason, with that reason.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)
    """
    looked_at = np.flatnonzero(_repeats(X) | is_whole(X))
    reasons = {int(j): why_not_continuous(X[:, j]) for j in looked_at}
    return {j: reason for j, reason in reasons.items() if reason is not None}


def named_as_code(name: str) -> bool:
    """Whether the name of a column marks its numbers as ids or codes.

    Examples
    --------
    >>> [named_as_code(name) for name in ("customer_id", "CustomerID", "Zip Code", "width", "paid")]
    [True, True, True, False, False]
    """
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
    return any(word.lower() in CODES for word in words)


def is_whole(X: Array) -> NDArray[np.bool_]:
    """Which columns contain only integers: (n_rows, n_columns) -> (n_columns,)."""
    return np.asarray((np.round(X) == X).all(axis=0))


def rounding(X: Array) -> NDArray[np.float64]:
    """Rounding step of each column; 0 if most values differ.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_columns,)

    Examples
    --------
    >>> rounding(np.column_stack([[1, 2, 2, 3, 3, 4, 9, 9, 9, 9], np.linspace(0.0, 1.0, 10)]))
    array([1., 0.])
    """
    steps = np.zeros(X.shape[1])
    for j in np.flatnonzero(_repeats(X)):
        distinct = np.unique(X[:, j])
        if 1 < len(distinct) <= len(X) / 2:
            steps[j] = np.median(np.diff(distinct))
    return steps


def _repeats(X: Array) -> NDArray[np.bool_]:
    """Which columns repeat a value among some 200 rows, as rounded columns and columns with few values do."""
    some = np.sort(X[:: max(1, len(X) // 200)], axis=0)
    return np.asarray((some[1:] == some[:-1]).any(axis=0))


def _counts_rows(values: Array, distinct: Array) -> bool:
    """Whether these are ids: distinct integers, in row order or with few gaps."""
    n = len(values)
    if n < 10 or len(distinct) < n or not is_whole(values[:, None])[0]:
        return False
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all() or distinct[-1] - distinct[0] < 3 * n)
