"""Convert real-world tables to rows of numbers: a scikit-learn transformer that is saved as JSON and arrays."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from neuralbayes.data.columns import Column, as_frame, as_missing, as_numbers, recognize
from neuralbayes.data.encoders import BOOLEAN_WIDTH, Array, Encoder, fit_encoder, restored_encoder

BLOCK_ROWS = 65_536  # converted at a time
FILL_ROWS = 20_000  # evenly spaced, for learning to predict missing cells
NOTHING = "(nothing)"  # name of the single column of zeros, if all columns of a table are left out

# Of the model that predicts missing cells
MOST_COLUMNS = 128  # for the covariance; with more, missing cells get the mean
N_STEPS = 8  # of expectation maximisation
FIT_ROWS, FIT_PRODUCTS = 4000, 5e8  # maximum number of evenly spaced rows, and of multiplications in a step
RIDGE = 0.05  # shrinkage of the covariance towards its diagonal
BLOCK_ELEMENTS = 2**22  # of the matrices inverted at a time

Arrays = dict[str, NDArray[Any]]
Odd = dict[str, tuple[int, str]]  # number and an example of unexpected cells, by column


class TableVectorizer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turn a data frame of numbers, categories, dates and text into rows of numbers without missing cells.

    The kind of each column is recognised from its cells and its name, and recorded in `columns_` with the reason:

    - Numbers are standardised, and outliers are pulled in.
    - Categories become one column for each of their most common values.
    - Dates become the time and, over 30 days or years, the time of day or of the year.
    - Text becomes a few components of its character n-grams.
    - Ids, constants and empty columns are left out.

    All columns have about the same weight. :class:`neuralbayes.InformationClusterer` uses this class by default for
    data frames that hold more than numbers.

    Parameters
    ----------
    kinds : mapping of str to str, optional
        Overrides the kind of columns by name: "number", "boolean", "category", "date", "text", or "ignore" to leave a
        column out.
    missing : {"impute", "mask"}, default="impute"
        How to treat missing cells. "impute" predicts them from the other cells of the row, by the mean and covariance
        of all rows. "mask" also adds an indicator column for each column with missing cells. Use it if absence itself
        is informative.
    standardize : bool, default=True
        Divide numbers by their standard deviation and pull in outliers. Set it to False if all columns have the same
        unit.

    Attributes
    ----------
    columns_ : list of Column
        The `name`, `kind`, `reason` and share of `missing` cells of each column.
    encoders_ : dict of str to Encoder
        The encoder of each column that is used.
    fill_ : GaussianFill
        The model that predicts missing cells.
    masked_ : list of str
        Columns with an indicator column for missing cells.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)

    Notes
    -----
    Unlike skrub's ``TableVectorizer``, it is saved without pickle, so that a model of a stranger is safe to load.

    Examples
    --------
    >>> import pandas as pd
    >>> import neuralbayes as nb
    >>> frame = pd.DataFrame({"kg": [1.0, 2.0, None, 4.0], "sex": ["f", "m", "m", "f"], "id": [17, 4, 9, 12]})
    >>> vectorizer = nb.TableVectorizer().fit(frame)
    >>> vectorizer.get_feature_names_out()
    array(['kg', 'sex=f'], dtype=object)
    >>> vectorizer.transform(frame).shape
    (4, 2)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kinds": [Mapping, None],
        "missing": [StrOptions({"impute", "mask"})],
        "standardize": ["boolean"],
    }

    def __init__(
        self,
        *,
        kinds: Mapping[str, str] | None = None,
        missing: Literal["impute", "mask"] = "impute",
        standardize: bool = True,
    ) -> None:
        self.kinds = kinds
        self.missing = missing
        self.standardize = standardize

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: object = None) -> Self:
        """Recognise the columns of a data frame of pandas or polars, and learn how to turn them into numbers."""
        frame = as_frame(X)
        if not len(frame):
            raise ValueError(f"`X` must have at least one row, got shape {frame.shape}")
        self.columns_ = recognize(frame, self.kinds)
        self.feature_names_in_ = np.array([column.name for column in self.columns_], dtype=object)
        self.n_features_in_ = len(self.columns_)
        frame = frame.set_axis(self.feature_names_in_, axis=1)
        used = [column for column in self.columns_ if column.used]
        unit = 1.0 if self.standardize else _mean_spread(frame[[c.name for c in used if c.kind == "number"]])
        self.encoders_: dict[str, Encoder] = {
            column.name: fit_encoder(
                column, frame[column.name], unit=unit, standardize=self.standardize, alone=len(used) == 1
            )
            for column in used
        }
        masks = [column.name for column in used if as_missing(frame[column.name]).any()]
        self.masked_ = masks if self.missing == "mask" else []
        self._mask_width = BOOLEAN_WIDTH * unit
        encoded, _ = self._encode(frame.iloc[:: max(1, len(frame) // FILL_ROWS)])
        self.fill_ = GaussianFill.fit(encoded)
        if not used:
            reasons = ", ".join(f"{column.name!r}: {column.reason}" for column in self.columns_[:5])
            warnings.warn(f"No column distinguishes the rows ({reasons}).", stacklevel=2)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """Return rows of numbers, of shape (n_samples, n_features_out).

        The columns of `X` may be in any order; others than those that were used in `fit` are ignored.
        """
        frame = self._used(X)
        rows = np.empty((len(frame), len(self.get_feature_names_out())), np.float32)
        odd: Odd = {}
        for start in range(0, len(frame), BLOCK_ROWS):
            encoded, found = self._encode(frame.iloc[start : start + BLOCK_ROWS])
            rows[start : start + BLOCK_ROWS] = self._filled(encoded)
            for name, (n, example) in found.items():
                odd[name] = odd.get(name, (0, ""))[0] + n, odd.get(name, (0, example))[1]
        for name, (n, example) in odd.items():
            warnings.warn(self.encoders_[name].complaint(name, n, example), stacklevel=2)
        return rows

    def _filled(self, encoded: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fill missing cells. A predicted category is one of its values."""
        missing, filled, start = np.isnan(encoded), self.fill_.fill(encoded), 0
        for name, encoder in self.encoders_.items():
            parts = slice(start, start + len(encoder.names(name)))
            holes = missing[:, start]
            if holes.any():
                filled[holes, parts] = encoder.settled(filled[holes, parts])
            start = parts.stop
        return filled

    def _used(self, X: Any) -> Any:
        """The used columns of `X`."""
        check_is_fitted(self)
        frame = as_frame(X, self.feature_names_in_.tolist())
        there = {str(name): name for name in frame}
        absent = [name for name in self.encoders_ if name not in there]
        if absent:
            more = f", and {len(absent) - 1} more" if absent[1:] else ""
            raise ValueError(
                f"column {absent[0]!r} is missing{more}, but was used in the fit. Add it, if necessary with empty "
                f"cells; the columns here are {', '.join(map(repr, list(there)[:12]))}"
            )
        return frame[[there[name] for name in self.encoders_]].set_axis(list(self.encoders_), axis=1)

    def get_feature_names_out(self, input_features: object = None) -> NDArray[Any]:
        """Return the names of the output columns."""
        check_is_fitted(self)
        names = [part for name, encoder in self.encoders_.items() for part in encoder.names(name)]
        return np.array([*names, *(f"{name} is missing" for name in self.masked_)] or [NOTHING], dtype=object)

    def _encode(self, frame: Any) -> tuple[NDArray[np.float64], Odd]:
        """Rows with NaN for missing cells, and the unexpected cells by column."""
        parts, odd = [], {}
        for name, encoder in self.encoders_.items():
            numbers, unexpected = encoder.transform(frame[name])
            parts.append(numbers)
            if unexpected.any():
                odd[name] = int(unexpected.sum()), repr(frame[name].iloc[int(unexpected.argmax())])
        parts += [np.where(as_missing(frame[name])[:, None], self._mask_width, 0.0) for name in self.masked_]
        return (np.hstack(parts) if parts else np.zeros((len(frame), 1))), odd

    def state(self) -> tuple[dict[str, Any], Arrays]:
        """The fitted state as JSON values and arrays, for `restored`."""
        check_is_fitted(self)
        arrays: Arrays = {"mean": self.fill_.mean, "covariance": self.fill_.covariance}
        encoders = []
        for i, (name, encoder) in enumerate(self.encoders_.items()):
            values, own = encoder.state()
            encoders.append({"column": name, "kind": encoder.kind, **values})
            arrays |= {f"{i}.{key}": array for key, array in own.items()}
        return {
            "missing": self.missing,
            "standardize": bool(self.standardize),
            "kinds": None if self.kinds is None else dict(self.kinds),
            "columns": [asdict(column) for column in self.columns_],
            "encoders": encoders,
            "masked": self.masked_,
            "mask_width": self._mask_width,
        }, arrays

    @classmethod
    def restored(cls, values: Mapping[str, Any], arrays: Arrays) -> Self:
        """Restore a fitted vectorizer from the result of `state`; raises an error if something is not valid."""
        vectorizer = cls(kinds=values["kinds"], missing=values["missing"], standardize=values["standardize"])
        vectorizer._validate_params()
        vectorizer.columns_ = [Column(**column) for column in values["columns"]]
        names = [column.name for column in vectorizer.columns_]
        vectorizer.feature_names_in_, vectorizer.n_features_in_ = np.array(names, dtype=object), len(names)
        used = [(column.name, column.kind) for column in vectorizer.columns_ if column.used]
        if [(saved["column"], saved["kind"]) for saved in values["encoders"]] != used or len(set(names)) < len(names):
            raise ValueError("'encoders' must be those of the columns that are used, in their order")
        vectorizer.encoders_ = {}
        for i, saved in enumerate(values["encoders"]):
            own = {key.partition(".")[2]: array for key, array in arrays.items() if key.startswith(f"{i}.")}
            vectorizer.encoders_[saved["column"]] = restored_encoder(saved, own)
        vectorizer.masked_, vectorizer._mask_width = list(values["masked"]), float(values["mask_width"])
        if not set(vectorizer.masked_) <= set(vectorizer.encoders_) or not np.isfinite(vectorizer._mask_width):
            raise ValueError("'masked' must name columns that are used")
        vectorizer.fill_ = GaussianFill.restored(arrays, len(vectorizer.get_feature_names_out()))
        return vectorizer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def _mean_spread(frame: Any) -> float:
    """Mean standard deviation of the columns of numbers; 1 if there are none."""
    spreads = [np.nanstd(numbers) for numbers, n in (as_numbers(frame[name]) for name in frame) if n]
    return float(np.mean(spreads) or 1.0) if spreads else 1.0


@dataclass(frozen=True, eq=False)
class GaussianFill:
    """Predict missing cells from the other cells of their row, with a Gaussian model.

    The mean (n_columns,) and the covariance (n_columns, n_columns) of rows; no covariance if there are many columns.
    """

    mean: Array
    covariance: Array

    @classmethod
    def fit(cls, X: Array) -> GaussianFill:
        """Estimate mean and covariance from rows (n, d) with NaN for missing cells, by expectation maximisation."""
        missing = np.isnan(X)
        known = (~missing).sum(axis=0).clip(1)
        mean = np.where(missing, 0.0, X).sum(axis=0) / known
        variance = np.square(np.where(missing, 0.0, X - mean)).sum(axis=0) / known
        n_columns = X.shape[1]
        if n_columns > MOST_COLUMNS:
            return cls(mean, np.zeros((n_columns, 0)))
        n_rows = int(min(FIT_ROWS, FIT_PRODUCTS / n_columns**3))
        some = X[:: max(1, len(X) // max(n_rows, 4 * n_columns))]
        fill = cls(mean, np.diag(variance + 1e-9))
        for _ in range(N_STEPS if missing.any() else 1):
            filled, spread = fill._expected(some, learn=True)
            mean = filled.mean(axis=0)
            covariance = (filled - mean).T @ (filled - mean) / len(filled) + spread / len(filled)
            diagonal = np.diag(np.diag(covariance) + 1e-9)
            fill = cls(mean, (1.0 - RIDGE) * covariance + RIDGE * diagonal)
        return fill

    def fill(self, X: Array) -> Array:
        """Fill the missing cells of rows (n, d) with their conditional means."""
        if not np.isnan(X).any():
            return X
        if not self.covariance.size:
            return np.where(np.isnan(X), self.mean, X)
        return self._expected(X)[0]

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], n_columns: int) -> GaussianFill:
        """Restore from saved arrays for `n_columns` columns, with checks."""
        mean, covariance = arrays["mean"], arrays["covariance"]
        wide = n_columns if n_columns <= MOST_COLUMNS else 0
        for name, array, shape in (("mean", mean, (n_columns,)), ("covariance", covariance, (n_columns, wide))):
            if array.dtype != np.float64 or array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f"{name!r} must be finite float64 of shape {shape}, got {array.dtype} {array.shape}")
        return cls(mean, covariance)

    def _expected(self, X: Array, *, learn: bool = False) -> tuple[Array, Array]:
        """The filled rows and, for learning, the summed conditional covariance of the filled cells."""
        missing = np.isnan(X)
        result, spread = X.copy(), np.zeros_like(self.covariance)
        holes = np.flatnonzero(missing.any(axis=1))
        patterns, which, counts = np.unique(missing[holes], axis=0, return_inverse=True, return_counts=True)
        order = np.argsort(which.ravel(), kind="stable")
        rows, pattern = holes[order], which.ravel()[order]
        covariance, block = self.covariance, max(1, BLOCK_ELEMENTS // self.covariance.size)
        deviation = np.where(missing[rows], 0.0, X[rows] - self.mean)
        for start in range(0, len(rows), block):
            part = slice(start, start + block)
            first, last = pattern[part][0], pattern[part][-1] + 1
            between = _of_known(covariance, patterns[first:last])[pattern[part] - first]
            expected = (covariance @ np.linalg.solve(between, deviation[part, :, None]))[:, :, 0] + self.mean
            result[rows[part]] = np.where(missing[rows[part]], expected, X[rows[part]])
        for start in range(0, len(patterns) if learn else 0, block):
            hidden = patterns[start : start + block]
            known = np.where(hidden[:, :, None], 0.0, covariance)
            left = covariance - known.transpose(0, 2, 1) @ np.linalg.solve(_of_known(covariance, hidden), known)
            left = left * (hidden[:, :, None] & hidden[:, None, :])
            spread += np.einsum("p,pij->ij", counts[start : start + block].astype(np.float64), left)
        return result, spread


def _of_known(covariance: Array, missing: NDArray[np.bool_]) -> Array:
    """Covariance of the known cells of each pattern, with the identity for missing cells: (n_patterns, d, d)."""
    hidden = missing[:, :, None] | missing[:, None, :]
    return np.where(hidden, 0.0, covariance) + missing[:, :, None] * np.eye(len(covariance))
