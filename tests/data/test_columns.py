"""Properties of the values of a column."""

import numpy as np
import pytest

from neuralbayes.data.columns import discrete_columns, is_whole, rounding, why_not_continuous

N = 400


def draw(seed=0):
    return np.random.RandomState(seed)


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
    ],
)
def test_gaps_between_the_values_of_a_column_mean_something_or_not(values, reason):
    assert why_not_continuous(np.asarray(values, dtype=float)) == reason


def test_the_edges_of_few():
    twenty = np.repeat(np.arange(20.0), 5)
    assert why_not_continuous(twenty) == "few values"
    assert why_not_continuous(twenty[:-1]) is None  # fewer than five rows per value
    assert why_not_continuous(np.repeat(np.arange(21.0), 5)) is None
    assert why_not_continuous(np.array([0.0, 1.0])) is None  # two rows
    assert why_not_continuous(np.array([0.0, 1.0, 1.0])) == "two values"


def test_a_value_stands_out_by_its_share_and_beside_the_others():
    rest = draw().standard_normal(180)
    assert why_not_continuous(np.r_[np.zeros(20), rest]) == "mostly one value"
    assert why_not_continuous(np.r_[np.zeros(19), rest]) is None
    assert why_not_continuous(np.r_[np.zeros(60), np.repeat(rest[:47], 3), rest[47:60]]) == "mostly one value"
    assert why_not_continuous(np.r_[np.zeros(59), np.repeat(rest[:47], 3), rest[47:60]]) is None


def test_columns_are_found_among_many():
    X = draw().standard_normal((N, 50))
    X[:, 7] = draw(1).randint(0, 2, N)
    X[:, 30] = np.arange(N)
    assert discrete_columns(X) == {7: "two values", 30: "counts the rows"}
    assert is_whole(X)[[7, 30]].all()
    assert is_whole(X).sum() == 2


def test_the_step_of_rounding():
    X = np.column_stack([np.round(draw().standard_normal(N), 1), draw().standard_normal(N), np.ones(N)])
    np.testing.assert_allclose(rounding(X), [0.1, 0.0, 0.0], atol=1e-9)


def test_few_rows_of_ids_may_be_chance():
    assert why_not_continuous(np.arange(9.0)) is None
    assert why_not_continuous(np.arange(10.0)) == "counts the rows"


def test_a_share_is_asked_for_where_all_other_values_differ():
    rest = draw().standard_normal(1000)
    assert why_not_continuous(np.r_[np.zeros(99), rest[:901]]) is None
    assert why_not_continuous(np.r_[np.zeros(100), rest[:900]]) == "mostly one value"


def test_the_edges_of_rounding():
    halves = np.repeat(np.arange(50.0), 2)
    assert rounding(halves[:, None]).tolist() == [1.0]
    assert rounding(np.r_[halves, 50.0][:, None]).tolist() == [0.0]  # more than half of the values differ
    assert rounding(np.array([0.0, 0.0, 3.0, 3.0])[:, None]).tolist() == [3.0]


def test_repeats_are_looked_for_in_each_column_by_itself():
    smooth = np.linspace(0.0, 1.0, N)
    X = np.column_stack([smooth, smooth, np.repeat(smooth[::4], 4)])  # the first two are equal, but repeat nothing
    assert (rounding(X) > 0.0).tolist() == [False, False, True]


def test_ids_are_in_order_or_close_together():
    n = 30
    apart = 100.0 * np.arange(n)
    assert why_not_continuous(apart) == "counts the rows"
    swapped = apart[[1, 0, *range(2, n)]]
    assert why_not_continuous(swapped) is None
    close = draw().permutation(n).astype(float)
    assert why_not_continuous(close) == "counts the rows"
    assert why_not_continuous(np.r_[close[close < n - 1], 3 * n - 1 + close.min()]) == "counts the rows"
    assert why_not_continuous(np.r_[close[close < n - 1], 3 * n + close.min()]) is None
    assert why_not_continuous(1000.0 + close) == "counts the rows"
