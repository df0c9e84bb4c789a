"""Differences between a cluster and the rest: values by hand, words, and unique names."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.clusters.cells import as_columns, number_column
from neuralbayes.clusters.differences import (
    Difference,
    cluster_names,
    differences,
    plain_name,
    quantiles,
    standardized,
)
from neuralbayes.clusters.evidence import column_information, membership_information, row_evidence


def column_of(cells, name="column"):
    return as_columns(pd.DataFrame({name: cells}))[0]


def told(cells, labels, name="column"):
    """The differences of each cluster."""
    return differences(column_of(cells, name), np.asarray(labels), int(np.max(labels)) + 1)


def test_numbers_differ_by_standard_deviations_of_all_rows():
    values = np.concatenate([np.linspace(1, 3, 40), np.linspace(5, 7, 40)])
    (low,), (high,) = told(values, np.repeat([0, 1], 40), "mass_kg")
    assert low.way == "lower"
    assert high.effect == pytest.approx(4.0 / values.std())  # means 2 and 6
    assert high.words == "higher mass_kg (6, rest 2; +1.9 sd)"
    assert high.short == "high mass"


def test_an_outlier_decides_nothing():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(0, 1, 100), rng.normal(2, 1, 100)])
    before = told(values, np.repeat([0, 1], 100))[1][0].effect
    values[0] = 1e12
    after = told(values, np.repeat([0, 1], 100))[1][0].effect
    assert after == pytest.approx(before, rel=0.1)


def test_a_cluster_between_others_is_medium():
    values = np.concatenate([np.linspace(0, 1, 50), np.linspace(4.5, 5.5, 50), np.linspace(9, 10, 50)])
    middle = told(values, np.repeat([0, 1, 2], 50), "size")[1][0]
    assert middle.way == "narrow"
    assert middle.words == "medium size (half of the rows 4.75 to 5.25, rest 0.505 to 9.49)"


def test_dates_are_earlier_and_later():
    days = pd.to_datetime(["2019-03-01"] * 30 + ["2021-07-01"] * 30) + pd.to_timedelta(np.tile(range(30), 2), unit="D")
    early, late = (found[0] for found in told(days, np.repeat([0, 1], 30), "order_date"))
    assert early.words.startswith("earlier order_date (2019-03-1")
    assert late.short == "late order date"


@pytest.mark.parametrize(
    ("own", "rest", "words", "short"),
    [
        (["Biscoe"] * 40, ["Biscoe"] * 10 + ["Dream"] * 30, "island always Biscoe (rest 25 %)", "Biscoe"),
        (
            ["Biscoe"] * 36 + ["Dream"] * 4,
            ["Dream"] * 40,
            "island mostly Biscoe (90 %, rest 0 %)",
            "Biscoe",
        ),
        (
            ["Biscoe"] * 24 + ["Dream"] * 16,
            ["Biscoe"] * 4 + ["Dream"] * 36,
            "island more often Biscoe (60 %, rest 10 %)",
            "often Biscoe",
        ),
        (
            ["Dream"] * 14 + ["Tasman"] * 13 + ["Ross"] * 13,
            ["Biscoe"] * 40,
            "island never Biscoe (rest 100 %)",
            "not Biscoe",
        ),
    ],
)
def test_words_of_categories(own, rest, words, short):
    found = told([*own, *rest], np.repeat([0, 1], 40), "island")[0][0]
    assert found.words == words
    assert found.short == short


def test_missing_cells_are_a_difference():
    rng = np.random.default_rng(0)
    age = rng.normal(40, 5, 200)
    age[:40] = np.nan
    found = told(age, np.repeat([0, 1], 100), "age")
    assert [one.words for one in found[0]] == ["age missing in 40 % (rest 0 %)"]
    assert found[1] == []


def test_noise_tells_nothing():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    assert told(rng.normal(size=300), labels) == [[], [], []]
    assert told(rng.choice(["a", "b", "c"], 300), labels) == [[], [], []]


def test_constants_text_and_a_single_cluster_tell_nothing():
    assert told([3.0] * 10, [0, 1] * 5) == [[], []]
    assert told([f"n{i}" for i in range(60)], [0, 1] * 30) == [[], []]
    assert told(np.linspace(0, 1, 10), [0] * 10) == [[]]


def test_information_is_that_of_a_fair_division():
    labels = np.repeat([0, 1], 500)
    column = number_column("x", labels + np.random.default_rng(0).random(1000) / 2)
    np.testing.assert_allclose(column_information(column, labels, 2), np.log(2), atol=0.01)
    assert membership_information(np.array([5, 0]), np.array([0, 0])) == 0.0


def test_evidence_is_the_logarithm_of_smoothed_shares():
    column = column_of(["a"] * 8 + ["b"] * 2 + ["a"] * 2 + ["b"] * 8)
    (logs,) = row_evidence([column], np.repeat([0, 1], 10), 2)
    np.testing.assert_allclose(np.exp(logs[0, :2]), [8.5 / 11, 2.5 / 11])  # half a row is added to each value
    assert np.isfinite(logs).all()


@pytest.mark.parametrize("n", [1, 2, 7, 100])
@pytest.mark.parametrize("digits", [0, 9])
def test_quantiles_are_those_of_numpy_bit_for_bit(n, digits):
    values = np.random.default_rng(n).normal(size=(n, 5)).round(digits)
    shares = [0.75, 0.25, 0.01, 0.99]
    given = values.copy()
    np.testing.assert_array_equal(quantiles(given, shares), np.nanquantile(values, shares, axis=0))
    np.testing.assert_array_equal(quantiles(given[:, 0], shares), np.nanquantile(values[:, 0], shares))
    np.testing.assert_array_equal(given, values)
    if n > 1:
        values[0, 1] = np.nan
        np.testing.assert_array_equal(quantiles(values, shares), np.nanquantile(values, shares, axis=0))


def test_standardized_numbers_keep_missing_cells_and_constants():
    np.testing.assert_array_equal(standardized(np.array([np.nan, np.nan])), [0.0, 0.0])
    found = standardized(np.array([1.0, np.nan, 3.0]))
    np.testing.assert_allclose(found, [-1.0, np.nan, 1.0])
    np.testing.assert_array_equal(standardized(np.full(4, 2.0)), 0.0)


def difference(short, information=0.1):
    return Difference("c", "higher", 1.0, information, short, short)


def test_names_differ_by_as_many_words_as_they_need():
    high, old = difference("high mass"), difference("late day")
    names = cluster_names([[high], [high, old], [high, old], []], [0.1] * 4)
    assert len(set(names)) == 4
    assert names == ["high mass", "high mass, late day", "high mass, late day (2)", "nothing special"]


def test_a_weak_first_difference_gets_a_second():
    found = [difference("high mass", 0.1), difference("Biscoe", 0.09)]
    assert cluster_names([found, []], [0.69, 0.69])[0] == "high mass, Biscoe"
    assert cluster_names([found, []], [0.15, 0.69])[0] == "high mass"


@pytest.mark.parametrize(
    ("column", "name"),
    [("bill_length_mm", "bill length"), ("GDP", "GDP"), ("kg", "kg"), ("petal length (cm)", "petal length")],
)
def test_columns_as_one_would_say_them(column, name):
    assert plain_name(column) == name
