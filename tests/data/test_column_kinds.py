"""The kind of a column, and the reason."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.data.column_cells import as_dates, as_numbers, as_words, date_format
from neuralbayes.data.column_kinds import Column, in_words, recognize

ROWS = 60
RNG = np.random.default_rng(0)

CASES = {
    "width": (RNG.normal(size=ROWS), "number"),
    "count": (RNG.poisson(4.0, ROWS), "number"),
    "price": ([f" {value:.2f}" for value in RNG.normal(size=ROWS)], "number"),
    "typo": ([*map(str, RNG.normal(size=ROWS - 1)), "many"], "number"),
    "with holes": (np.where(RNG.random(ROWS) < 0.3, np.nan, RNG.normal(size=ROWS)), "number"),
    "paid": ([0, 1] * (ROWS // 2), "boolean"),
    "member": (["yes", "no"] * (ROWS // 2), "boolean"),
    "active": (np.array([True, False] * (ROWS // 2)), "boolean"),
    "color": (["red", "green", "blue"] * (ROWS // 3), "category"),
    "branch code": ([101, 205, 330] * (ROWS // 3), "category"),
    "zip": (["02750", "04109", "10115"] * (ROWS // 3), "category"),
    "lasted": (pd.to_timedelta(RNG.integers(0, 9000, ROWS), unit="s"), "number"),
    "when": (pd.date_range("2020-01-01", periods=ROWS, freq="D"), "date"),
    "day": ([f"{1 + i % 28:02d}.{1 + i % 12:02d}.2021" for i in range(ROWS)], "date"),
    "stamp": ([f"2021-03-{1 + i % 28:02d}T{i % 24:02d}:15:00Z" for i in range(ROWS)], "date"),
    "comment": ([f"the order number {i} came late and was sent back" for i in range(ROWS)], "text"),
    "customer_id": (RNG.permutation(10_000)[:ROWS], "id"),
    "row": (np.arange(ROWS) + 17, "id"),
    "within group": ([*range(30), *range(30)], "id"),
    "name": ([f"person {i}" for i in range(ROWS)], "id"),
    "country": (["France"] * ROWS, "constant"),
    "version": ([3.0] * ROWS, "constant"),
    "remarks": ([None] * ROWS, "empty"),
    "nearly empty": (["x", "y", *[None] * (ROWS - 2)], "empty"),
    "lists": ([[1, 2], [3]] * (ROWS // 2), "ignored"),
    "complex": (RNG.normal(size=ROWS) + 1j, "ignored"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_column_is_recognised_by_its_cells_and_its_name(name: str) -> None:
    cells, kind = CASES[name]
    (column,) = recognize(pd.DataFrame({name: pd.Series(cells)}))
    assert (column.name, column.kind) == (name, kind)
    assert column.reason


def test_the_user_has_the_last_word() -> None:
    frame = pd.DataFrame({"pclass": [1, 2, 3] * 20, "age": RNG.normal(size=60), "note": ["x"] * 60})
    kinds = {"pclass": "category", "age": "ignore"}
    assert [column.kind for column in recognize(frame, kinds)] == ["category", "ignored", "constant"]


@pytest.mark.parametrize(
    ("kinds", "words"),
    [({"aeg": "number"}, "no column 'aeg'.*'age'"), ({"age": "float"}, "'age' must be one of number, .* got 'float'")],
)
def test_a_kind_for_no_column_and_a_kind_that_is_none_are_named(kinds: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        recognize(pd.DataFrame({"age": [1.0, 2.0]}), kinds)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="more than one 'a'"):
        recognize(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_labels_that_the_library_wrote_are_no_features() -> None:
    frame = pd.DataFrame({"a": RNG.normal(size=9), "label": [0, 1, 1] * 3, "p_0": [0.9] * 9, "p_1": [0.1] * 9})
    assert [column.kind for column in recognize(frame)] == ["number", "written", "written", "written"]


def test_columns_are_counted_in_one_line() -> None:
    columns = [Column("a", "number", ""), Column("b", "category", ""), Column("c", "category", "")]
    assert in_words(columns) == "3 columns: 1 number, 2 categories"
    assert in_words([Column("a", "constant", "")]) == "1 column: none usable; 1 left out: 1 constant"


def test_cells_mean_the_same_however_they_are_stored() -> None:
    stored = [pd.Series([1, 2]), pd.Series([1.0, 2.0]), pd.Series(["1", "2 "]), pd.Series([1, 2], dtype="Int64")]
    assert [as_words(cells).tolist() for cells in stored] == [["1", "2"]] * 4
    assert [as_numbers(cells)[0].tolist() for cells in stored] == [[1.0, 2.0]] * 4


def test_a_list_among_words_is_a_word() -> None:
    assert as_words(pd.Series(["a", ["b"], None])).tolist() == ["a", "['b']", None]


def test_infinite_numbers_are_missing() -> None:
    numbers, n_numbers = as_numbers(pd.Series([1.0, np.inf, np.nan]))
    assert n_numbers == 1
    assert np.isnan(numbers[1:]).all()


def test_dates_are_read_with_the_day_or_the_month_first_as_they_ask_for() -> None:
    assert date_format(pd.Series(["03/25/2021", "04/01/2021"])) == "%m/%d/%Y"
    assert date_format(pd.Series(["25/03/2021", "01/04/2021"])) == "%d/%m/%Y"
    assert date_format(pd.Series(["12", "13"])) is None
    dates = as_dates(pd.Series(["2021-01-01 12:00:00+02:00", "never", None]), "ISO8601")
    assert dates[0] == np.datetime64("2021-01-01T10:00:00")
    assert np.isnat(dates[1:]).all()
