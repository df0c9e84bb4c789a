"""What kind a column has and why, which columns this library wrote, and cells of any type."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.data.columns import (
    as_dates,
    as_frame,
    as_numbers,
    as_words,
    date_format,
    discrete_columns,
    is_frame,
    is_whole,
    named_as_code,
    recognize,
    rounding,
    why_not_continuous,
    written_columns,
)
from neuralbayes.data.tables import read_table, write_table

ROWS, N = 60, 400
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
def test_a_column_is_recognised_by_its_cells_and_its_name(name):
    cells, kind = CASES[name]
    (column,) = recognize(pd.DataFrame({name: pd.Series(cells)}))
    assert (column.name, column.kind) == (name, kind)
    assert column.reason


def test_the_user_has_the_last_word():
    frame = pd.DataFrame({"pclass": [1, 2, 3] * 20, "age": RNG.normal(size=60), "note": ["x"] * 60})
    kinds = {"pclass": "category", "age": "ignore"}
    assert [column.kind for column in recognize(frame, kinds)] == ["category", "ignored", "constant"]


def test_wrong_kinds_and_names_are_refused():
    for kinds, words in (({"aeg": "number"}, "`kinds` .*'aeg'.*'age'"), ({"age": "float"}, "`kinds` .*'float'")):
        with pytest.raises(ValueError, match=words):
            recognize(pd.DataFrame({"age": [1.0, 2.0]}), kinds)
    with pytest.raises(ValueError, match="more than one 'a'"):
        recognize(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_cells_mean_the_same_however_they_are_stored():
    stored = [pd.Series([1, 2]), pd.Series([1.0, 2.0]), pd.Series(["1", "2 "]), pd.Series([1, 2], dtype="Int64")]
    assert [as_words(cells).tolist() for cells in stored] == [["1", "2"]] * 4
    assert [as_numbers(cells)[0].tolist() for cells in stored] == [[1.0, 2.0]] * 4
    assert as_words(pd.Series(["a", ["b"], None])).tolist() == ["a", "['b']", None]
    np.testing.assert_array_equal(as_numbers(pd.Series([1.0, np.inf, np.nan]))[0], [1.0, np.nan, np.nan])
    assert [named_as_code(name) for name in ("customer_id", "CustomerID", "Zip Code")] == [True] * 3
    assert [named_as_code(name) for name in ("width", "paid")] == [False] * 2


def test_dates_are_read_with_the_day_or_the_month_first_as_they_ask_for():
    assert date_format(pd.Series(["03/25/2021", "04/01/2021"])) == "%m/%d/%Y"
    assert date_format(pd.Series(["25/03/2021", "01/04/2021"])) == "%d/%m/%Y"
    assert date_format(pd.Series(["12", "13"])) is None
    dates = as_dates(pd.Series(["2021-01-01 12:00:00+02:00", "never", None]), "ISO8601")
    assert dates[0] == np.datetime64("2021-01-01T10:00:00")
    assert np.isnat(dates[1:]).all()


def draw(seed=0):
    return np.random.RandomState(seed)


FEW, REST = np.repeat(np.arange(20.0), 5) / 4, draw().standard_normal(180)
APART = 100.0 * np.arange(30)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.full(N, 3.0), "constant"),
        (draw().uniform(size=N) < 0.3, "two values"),
        (draw().randint(0, 20, N), "few values"),
        (draw().choice([101, 102, 205, 300, 999], N), "few values"),
        (np.where(draw().uniform(size=N) < 0.5, 0.0, draw(1).lognormal(size=N)), "mostly one value"),
        (np.arange(N) + 1000, "counts the rows"),
        (np.arange(N)[::-1] * 7, "counts the rows"),
        (draw().permutation(N), "counts the rows"),
        (draw().standard_normal(N), None),
        (draw().randint(0, 100, N), None),  # rounded, such as an age
        (np.cumsum(draw().uniform(size=N)), None),  # grows with the rows, but is not an id
        (draw().choice(100 * N, N, replace=False), None),  # an amount in cents
        (FEW, "few values"),
        (FEW[:-1], None),  # fewer than five rows per value
        (np.repeat(np.arange(21.0), 5) / 4, None),
        (np.array([0.0, 1.0]), None),  # two rows
        (np.array([0.0, 1.0, 1.0]), "two values"),
        (np.r_[np.zeros(20), REST], "mostly one value"),
        (np.r_[np.zeros(19), REST], None),
        (np.r_[np.zeros(60), np.repeat(REST[:47], 3), REST[47:60]], "mostly one value"),
        (np.r_[np.zeros(59), np.repeat(REST[:47], 3), REST[47:60]], None),
        (np.arange(10.0), "counts the rows"),
        (np.arange(9.0), None),  # may be chance
        (APART, "counts the rows"),
        (APART[[1, 0, *range(2, 30)]], None),
        (np.r_[draw().permutation(29), 89.0], "counts the rows"),  # close together
        (np.r_[draw().permutation(29), 90.0], None),
    ],
)
def test_gaps_between_the_values_of_a_column_mean_something_or_not(values, reason):
    assert why_not_continuous(np.asarray(values, dtype=float)) == reason


@pytest.mark.parametrize("repeated", ["some", "one", "shuffled"])
@pytest.mark.parametrize(
    ("counter", "reason"),
    [
        (lambda n: np.arange(n) + 500 * (np.arange(n) > n // 3), "counts the rows"),
        (lambda n: np.arange(n) % 70, "counts the rows"),
        (lambda n: np.arange(n) % (n // 2 + 9), "counts the rows"),
        (lambda n: draw().randint(0, 70, n), None),
        (lambda n: np.round(12 * draw().standard_normal(n)), None),
    ],
)
def test_a_counter_is_known_with_gaps_and_in_a_table_with_repeated_rows(counter, reason, repeated):
    rows = np.arange(300)
    if repeated == "shuffled":
        rows = draw().permutation(300)
    else:
        rows[:90] = draw().choice(300, 90) if repeated == "some" else 7
    expected = "mostly one value" if reason is None and repeated == "one" else reason
    assert str(why_not_continuous(counter(300).astype(float)[rows])).startswith(str(expected))


def test_the_step_of_rounding():
    smooth, halves = np.linspace(0.0, 1.0, 101), np.r_[np.repeat(np.arange(50.0), 2), 49.0]
    most_differ = np.r_[np.repeat(np.arange(50.0), 2), 50.0]
    X = np.column_stack([np.round(draw().standard_normal(101), 1), halves, most_differ, smooth, smooth, np.ones(101)])
    np.testing.assert_allclose(rounding(X), [0.1, 1.0, 0.0, 0.0, 0.0, 0.0], atol=1e-9)


def test_columns_are_found_among_many():
    X = draw().standard_normal((N, 50))
    X[:, 7] = draw(1).randint(0, 2, N)
    X[:, 30] = np.arange(N)
    assert discrete_columns(X) == {7: "two values", 30: "counts the rows"}
    assert is_whole(X)[[7, 30]].all()
    assert is_whole(X).sum() == 2


def clustering(n=30):
    return {"cluster": np.arange(n) % 3, "name": ["a", "b", "c"] * (n // 3), "probability": RNG.uniform(0.4, 1.0, n)}


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".xlsx"])
def test_a_clustering_is_no_feature_when_its_table_is_read_again(tmp_path, suffix):
    frame = pd.DataFrame({"height": RNG.normal(size=30), **clustering(), "typicality": RNG.uniform(size=30)})
    write_table(tmp_path / f"t{suffix}", frame)
    columns = recognize(read_table(tmp_path / f"t{suffix}"))
    assert [column.kind for column in columns] == ["number"] + ["written"] * 4
    assert columns[1].reason == "written by neuralbayes cluster, not a feature"


def test_a_column_that_had_the_name_before_stays_a_column_of_the_table():
    frame = pd.DataFrame({"height": RNG.normal(size=30), **clustering(), "name (neuralbayes)": ["a", "b", "c"] * 10})
    assert list(written_columns(frame)) == ["cluster", "probability", "name (neuralbayes)"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_of_a_table_of_image_features_only_the_features_are_used(tmp_path, suffix):
    features = {f"f_{i}": RNG.normal(size=12) for i in range(3)}
    frame = pd.DataFrame(
        {"index": range(12), "path": [f"{i}.png" for i in range(12)], "label": [0, 1, 2] * 4, **features}
    )
    write_table(tmp_path / f"t{suffix}", frame.sample(frac=0.8, random_state=0))
    columns = recognize(read_table(tmp_path / f"t{suffix}"))
    assert [column.name for column in columns if column.used] == list(features)
    assert {column.reason for column in columns if column.used} == {"a feature of neuralbayes embed"}


def test_a_table_of_clustered_images_holds_no_feature_but_what_was_added():
    frame = pd.DataFrame({"index": range(30), **clustering()})
    assert list(written_columns(frame)) == list(frame)
    frame = frame.assign(path=[f"{i}.png" for i in range(30)], brightness=RNG.normal(size=30))
    assert set(frame) - set(written_columns(frame)) == {"brightness"}


@pytest.mark.parametrize(
    "columns",
    [
        {"cluster": [0, 1, 5], "x": [1.0, 2.0, 4.0]},
        {"cluster": [0, 1, 5], "name": ["a", "b", "c"], "probability": [1.0, 2.0, 4.0]},
        {"cluster": [0, 1, 5], "name": ["a", "b", "c"], "probability": ["high", "low", "low"]},
        {"index": [1.5, 2.5, 9.0], "class": [0, 1, 1]},
        {"f_0": [1.0, 2.0, 4.0], "index": [1.5, 2.5, 9.0]},
    ],
)
def test_other_columns_of_these_names_are_left_alone(columns):
    assert written_columns(pd.DataFrame(columns)) == {}


def test_frames_and_arrays_become_data_frames():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1.0, None], "b": ["x", "y"]})
    assert is_frame(frame)
    assert as_frame(frame)["b"].tolist() == ["x", "y"]
    assert list(as_frame(np.zeros((2, 2)), ["u", "v"])) == ["u", "v"]
    for X, names in ((np.zeros(3), None), (np.zeros((2, 2)), ["u"])):
        with pytest.raises(ValueError, match="`X`"):
            as_frame(X, names)
