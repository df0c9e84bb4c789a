"""Differences between a cluster and the rest: values by hand, and words."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.explain.columns import as_columns
from neuralbayes.explain.differences import differences


def told(cells, labels, name="column"):
    """The differences of each cluster."""
    return differences(as_columns(pd.DataFrame({name: cells})), np.asarray(labels), int(np.max(labels)) + 1)


def test_numbers_differ_by_standard_deviations_of_all_rows():
    values = np.concatenate([np.linspace(1, 3, 40), np.linspace(5, 7, 40)])
    (low,), (high,) = told(values, np.repeat([0, 1], 40), "mass_kg")
    assert low.way == "lower"
    assert high.effect == pytest.approx(4.0 / values.std())  # means 2 and 6
    assert high.words == "higher mass_kg (6, rest 2; +1.9 sd)"


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


def test_a_narrow_cluster_at_the_bottom_is_lower_and_not_medium():
    rng = np.random.default_rng(0)
    counts = np.concatenate([rng.uniform(0, 1, 300), rng.exponential(40.0, 300) + 1.0])
    assert told(counts, np.repeat([0, 1], 300), "retweets")[0][0].way == "lower"


def test_words_agree_with_the_medians_that_they_show():
    few_large = np.concatenate([np.tile([1.0] * 9 + [90.0], 30), np.linspace(2, 10, 300)])
    for found in told(few_large, np.repeat([0, 1], 300))[0]:
        assert found.effect < 0


def test_dates_are_earlier_and_later():
    days = pd.to_datetime(["2019-03-01"] * 30 + ["2021-07-01"] * 30) + pd.to_timedelta(np.tile(range(30), 2), unit="D")
    early, late = (found[0] for found in told(days, np.repeat([0, 1], 30), "order_date"))
    assert early.words.startswith("earlier order_date (2019-03-1")
    assert late.way == "higher"


@pytest.mark.parametrize(
    ("own", "rest", "words"),
    [
        (["Biscoe"] * 40, ["Biscoe"] * 10 + ["Dream"] * 30, "island always Biscoe (rest 25 %)"),
        (["Biscoe"] * 36 + ["Dream"] * 4, ["Dream"] * 40, "island mostly Biscoe (90 %, rest 0 %)"),
        (
            ["Biscoe"] * 24 + ["Dream"] * 16,
            ["Biscoe"] * 4 + ["Dream"] * 36,
            "island more often Biscoe (60 %, rest 10 %)",
        ),
        (["Dream"] * 14 + ["Tasman"] * 13 + ["Ross"] * 13, ["Biscoe"] * 40, "island never Biscoe (rest 100 %)"),
    ],
)
def test_words_of_categories(own, rest, words):
    assert told([*own, *rest], np.repeat([0, 1], 40), "island")[0][0].words == words


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


def test_the_most_informative_column_comes_first():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 100)
    frame = pd.DataFrame({"weak": labels + rng.normal(size=200), "strong": 9.0 * labels + rng.normal(size=200)})
    assert [one.column for one in differences(as_columns(frame), labels, 2)[1]] == ["strong", "weak"]
