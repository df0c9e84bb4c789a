"""Claims about clusters: parts of columns, shares by hand, differences from the rest in words."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.explain.claims import check_claims, differences, half_of_each
from neuralbayes.explain.columns import as_cells


def told(frame, labels, n=6):
    """The differences of each cluster."""
    labels = np.asarray(labels)
    return differences(check_claims(as_cells(pd.DataFrame(frame)), labels, int(labels.max()) + 1), n)


def test_shares_are_counted_by_a_slow_loop():
    rng = np.random.default_rng(0)
    labels = rng.integers(-1, 3, 400)
    column = as_cells(pd.DataFrame({"x": rng.normal(size=400) + labels}))[0]
    checked = check_claims([column], labels, 3)
    assert half_of_each(labels, np.random.default_rng(0)).sum() == checked.chooses.sum()
    for tally, half in ((checked.choice, checked.chooses), (checked.check, ~checked.chooses)):
        for j, part in enumerate(checked.parts):
            inside = part.bins[column.bins]
            for k in range(3):
                assert tally.inside[k, j] == pytest.approx(inside[half & (labels == k)].mean())
                assert tally.outside[k, j] == pytest.approx(inside[half & (labels != k)].mean())


def test_levels_are_quantiles_of_the_whole_column():
    values = np.random.default_rng(0).exponential(size=3000)
    checked = check_claims(as_cells(pd.DataFrame({"x": values})), np.arange(3000) % 2, 2)
    shares = {part.words: part.bins[checked.columns[0].bins].mean() for part in checked.parts}
    third = 1 / 3
    wanted = {"very low": 0.1, "low": third, "lower": 0.5, "medium": third, "high": third, "not high": 2 * third}
    for words, share in wanted.items():
        assert shares[f"{words} x"] == pytest.approx(share, abs=1e-3)


def test_conditions_hold_for_the_rows_that_the_words_are_about():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=500).round(1), "c": rng.choice(["red", "blue", "green"], 500)})
    frame.loc[:40, "c"] = None
    columns = as_cells(frame)
    checked = check_claims(columns, np.arange(500) % 2, 2)
    for j, part in enumerate(checked.parts):
        column = columns[part.column]
        np.testing.assert_array_equal(checked.claim(0, j).condition.holds(column), part.bins[column.bins])


def test_dates_are_earlier_and_later():
    days = pd.to_datetime(["2019-03-01"] * 30 + ["2021-07-01"] * 30) + pd.to_timedelta(np.tile(range(30), 2), unit="D")
    early, late = (found[0] for found in told({"order_date": days}, np.repeat([0, 1], 30)))
    assert early.words == "earlier order date"
    assert early.medians[0].startswith("2019-03-1")
    assert late.words == "later order date"


@pytest.mark.parametrize(
    ("own", "words"),
    [
        (["Biscoe"] * 80, "Biscoe"),
        (["Biscoe"] * 56 + ["Ross"] * 24, "mostly Biscoe"),
        (["Biscoe"] * 40 + ["Dream"] * 40, "more often Biscoe"),
    ],
)
def test_words_of_categories_say_how_often(own, words):
    rest = ["Dream", "Ross", "Torgersen", "Booth"] * 80
    found = told({"island": [*own, *rest]}, np.repeat([0, 1], [len(own), len(rest)]))[0][0]
    assert str(found).startswith(f"island: {words} (")
    assert found.share_inside == pytest.approx(own.count("Biscoe") / 80, abs=0.1)


def test_a_value_that_most_rows_share_is_said_itself():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 200)
    found = told({"gain": np.where(labels, rng.exponential(9.0, 400), 0.0)}, labels)
    assert [found[k][0].words for k in (0, 1)] == ["gain 0", "gain above 0"]


def test_noise_constants_text_and_a_single_cluster_tell_nothing():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    assert told({"x": rng.normal(size=300), "c": rng.choice(["a", "b", "c"], 300)}, labels) == [[], [], []]
    assert told({"x": [3.0] * 10, "text": [f"n{i}" for i in range(10)]}, [0, 1] * 5) == [[], []]
    assert told({"x": np.linspace(0, 1, 10)}, [0] * 10) == [[]]
