"""Information of a column about clusters, by hand."""

import numpy as np

from neuralbayes.explain.columns import number_column
from neuralbayes.explain.columns import column_information, membership_information


def test_information_is_that_of_a_fair_division():
    labels = np.repeat([0, 1], 500)
    column = number_column("x", labels + np.random.default_rng(0).random(1000) / 2)
    np.testing.assert_allclose(column_information(column, labels, 2), np.log(2), atol=0.01)


def test_a_cluster_without_a_rest_and_a_single_bin_tell_nothing():
    assert membership_information(np.array([5, 0]), np.array([0, 0])) == 0.0
    assert membership_information(np.array([5, 0]), np.array([5, 0])) == 0.0


def test_noise_tells_nothing():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 300)
    assert not column_information(number_column("x", rng.normal(size=300)), labels, 3).any()


def test_rows_in_no_cluster_belong_to_the_rest():
    x = np.repeat([0.0, 1.0], 50)
    labels = np.repeat([0, -1], 50)
    np.testing.assert_allclose(column_information(number_column("x", x), labels, 1), np.log(2) - 1 / 200)
