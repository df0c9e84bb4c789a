"""Columns whose values naturally have gaps, and the result without them."""

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb
from neuralbayes.data.vectorizer import TableVectorizer
from neuralbayes.manifolds.certificate import columns_in_doubt, tells_apart, without_columns


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def test_the_columns_in_doubt(rng):
    n = 300
    labels = np.repeat([0, 1], n // 2)
    boolean = labels.astype(float)
    zip_code = np.where(labels, 90_000, 10_000) + rng.randint(0, 5000, n)
    unrelated = rng.randint(0, 10_000, n)
    rows = np.column_stack([rng.standard_normal(n), boolean, zip_code, unrelated])
    assert columns_in_doubt(rows, labels) == [[1], [2]]
    assert columns_in_doubt(rows[:, [0]], labels) == []
    rounded = np.round(rows[:, [0]], 1)
    assert columns_in_doubt(rounded, labels) == [[]]


def test_a_column_that_tells_labels_apart_does_so_for_the_rare_one_too(rng):
    labels = (np.arange(1000) < 10).astype(int)
    assert tells_apart(labels.astype(float), labels) == 1.0
    assert tells_apart(np.zeros(1000), labels) == 0.5


def test_rounded_columns_are_spread_over_their_step_and_others_left_as_they_are(rng):
    smooth = rng.standard_normal(400)
    rows = np.column_stack([np.round(10 * smooth), smooth, np.arange(400) % 2])
    spread = without_columns(rows, [2], rng)
    assert spread.shape == (400, 2)
    np.testing.assert_array_equal(spread[:, 1], smooth)
    change = spread[:, 0] - rows[:, 0]
    assert change.min() < -0.4
    assert change.max() > 0.4
    assert np.abs(change).max() <= 0.5


def test_a_column_tells_apart_as_many_intervals_as_a_small_tree_has_leaves():
    column = np.arange(1700.0)
    assert tells_apart(column, (column // 100).astype(int) % 2) < 1.0  # seventeen intervals
    assert tells_apart(column[:1600], (column[:1600] // 100).astype(int) % 2) == 1.0


def test_labels_count_the_same_whatever_their_number_of_rows():
    """A value that the frequent label has ten times as often still identifies the rare label."""
    labels = np.repeat([0, 1], [1000, 20])
    column = np.repeat([0.0, 1.0, 1.0], [900, 100, 20])
    assert tells_apart(column, labels) == pytest.approx((0.9 + 1.0) / 2)


def test_each_label_has_its_own_rows():
    """The column identifies only the first of three labels; a small tree assigns the others to one of the two."""
    labels = np.repeat([0, 1, 2], [10, 20, 30])
    assert tells_apart((labels == 0).astype(float), labels) == pytest.approx(2.0 / 3.0)


def test_a_column_with_a_sentinel_is_in_doubt(rng):
    labels = (np.arange(300) < 14).astype(int)  # too few rows for a column that is mostly one value
    rows = rng.standard_normal((300, 3))
    rows[labels == 1, 2] = -999.0
    assert columns_in_doubt(rows, labels) == [[2]]
    assert columns_in_doubt(rows, np.arange(300) % 2) == []


@pytest.mark.parametrize(("draw", "seed", "n"), [("exponential", 1123, 50), ("standard_t", 36, 300)])
def test_the_far_rows_of_one_column_are_no_manifold(draw, seed, n):
    """Their own gaps are nearly as long as the one before them, but too few to show how long gaps can be."""
    rng = np.random.RandomState(seed)
    rng.choice([50, 70, 100, 150, 200, 300])
    column = rng.exponential(size=(n, 1)) if draw == "exponential" else rng.standard_t(2, (n, 1))
    frame = pd.DataFrame(column, columns=["c0"])
    assert nb.ManifoldLabeler("auto", vectorizer=TableVectorizer(), random_state=0).fit(frame).n_clusters_ == 1
