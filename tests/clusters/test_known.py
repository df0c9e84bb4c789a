"""Hints about rows: checks, closure, assignments, weights."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import adjusted_rand_score

from neuralbayes.clusters.known import Hints, least_number, make_hints, numbered_by_class
from neuralbayes.clusters.space import principal_axes
from neuralbayes.clusters.votes import agree, co_association, fit_mixture, kmeans, matched_shares, microclusters


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def hints_of(n_rows, **settings):
    return make_hints(n_rows, **settings)[0]


def test_must_links_close_and_spread_what_is_known():
    hints = hints_of(7, known=[-1, -1, 3, -1, -1, -1, 0], must_link=[[0, 1], [1, 2], [4, 5]])
    assert_array_equal(hints.known, [3, 3, 3, -1, -1, -1, 0])
    assert len({hints.group[i] for i in (0, 1, 2)}) == 1 == len({hints.group[i] for i in (4, 5)})
    assert_array_equal(hints.rows, [0, 1, 2, 4, 5, 6])
    assert_array_equal(hints.classes, [0, 3])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"must_link": [[0, 1], [1, 2]], "cannot_link": [[0, 2]]}, r"`cannot_link` .* `must_link` .* \[0, 2\]"),
        ({"known": [0, -1, 1, -1], "must_link": [[0, 1], [1, 2]]}, "`must_link` .* 0 and 2 .* 0 and 1 in `known`"),
        ({"known": [2, -1, 2, -1], "cannot_link": [[0, 2]]}, r"`cannot_link` .* \[0, 2\], both of class 2"),
        ({"known": [0, 1]}, "`known`"),
        ({"known": [0, 1, -2, -1]}, "`known`"),
        ({"must_link": [0, 1]}, "`must_link`"),
        ({"must_link": [[0.0, 1.0]]}, "`must_link`"),
        ({"cannot_link": [[0, 4]]}, "`cannot_link`"),
        ({"cannot_link": [[-1, 2]]}, "`cannot_link`"),
        ({"cannot_link": [[1, 1]]}, "`cannot_link`"),
        ({"sample_weight": np.zeros(4)}, "weight"),
    ],
)
def test_what_cannot_be_is_refused_by_its_rows(settings, words):
    with pytest.raises(ValueError, match=words):
        make_hints(4, **settings)


def test_empty_links_are_none_and_a_row_may_be_linked_to_itself():
    assert not hints_of(3, known=[-1, -1, -1], must_link=[], cannot_link=np.empty((0, 2))).constrain
    assert len(hints_of(3, must_link=[[1, 1]]).rows) == 0


def test_more_classes_than_clusters_are_refused():
    hints = hints_of(3, known=[0, 4, -1])
    assert least_number(hints, None) == least_number(hints, 5) == 5
    with pytest.raises(ValueError, match="`known`"):
        least_number(hints, 3)
    assert least_number(Hints(), 3) == 1


def test_rows_are_assigned_at_the_least_cost_that_is_allowed():
    cost = np.array([[0.0, 1.0, 9.0], [0.0, 5.0, 9.0], [0.0, 0.5, 9.0], [0.0, 2.0, 3.0]])
    assert_array_equal(hints_of(4, known=[-1, 2, -1, -1]).assign(cost), [0, 2, 0, 0])
    # rows 0 and 2 move together, because that costs 1.5, less than 5 for row 1
    apart = hints_of(4, must_link=[[0, 2]], cannot_link=[[1, 2]])
    assert_array_equal(apart.assign(cost), [1, 0, 1, 0])
    # three rows that must all differ
    assert sorted(hints_of(4, cannot_link=[[0, 1], [1, 2], [0, 2]]).assign(cost)[:3]) == [0, 1, 2]
    # neither of two known rows moves; if no cluster is left, the pair stays together
    assert_array_equal(hints_of(4, known=[0, 1, -1, -1], cannot_link=[[0, 1]]).assign(cost), [0, 1, 0, 0])
    assert_array_equal(hints_of(3, cannot_link=[[0, 1], [1, 2], [0, 2]]).assign(cost[:3, :1]), [0, 0, 0])


def test_hints_about_some_rows_are_those_of_these_rows():
    hints = hints_of(
        5, sample_weight=np.arange(5.0), known=[-1, 1, -1, -1, 0], must_link=[[2, 3]], cannot_link=[[1, 3], [0, 4]]
    )
    some = hints.of(np.array([1, 2, 3]))
    assert_allclose(some.weight, [0.5, 1.0, 1.5])
    assert_array_equal(some.known, [1, -1, -1])
    assert some.group[1] == some.group[2] != some.group[0]
    assert_array_equal(some.cannot, [[0, 2]])
    assert not Hints().of(np.array([0])).constrain
    assert Hints(np.full(4, 7.0)).of(np.arange(3)).weight is None


def test_rows_of_which_something_is_known_are_drawn_first(rng):
    known = np.full(100, -1)
    known[[7, 50, 93]] = 0
    hints = hints_of(100, known=known)
    assert {7, 50, 93} <= set(hints.draw(100, 5, rng))
    assert_array_equal(hints.draw(100, 100, rng), np.arange(100))


def test_the_pool_holds_rows_in_proportion_to_their_weights():
    pool = Hints(np.array([0.5, 1.0, 1.5])).pool()
    assert_array_equal(np.bincount(pool), [2, 4, 6])
    assert Hints().pool() is None
    fractions = Hints(np.array([0.1] * 10 + [1.9] * 10)).pool()
    assert 78 <= len(fractions) <= 82
    assert (np.bincount(fractions)[10:] >= 7).all()


def test_clusters_get_the_numbers_of_the_classes_that_they_hold():
    clusters = np.array([2, 0, 1, 0])
    of_classes = np.array([[0.0, 0.0, 4.0], [3.0, 0.0, 0.0], [0.0, 0.1, 0.0], [0.5, 0.0, 0.0]])
    assert_array_equal(numbered_by_class(clusters, 3, of_classes), [2, 0, 1, 0])
    assert_array_equal(numbered_by_class(clusters, 3, of_classes[:, ::-1]), [0, 2, 1, 2])
    assert_array_equal(numbered_by_class(clusters, 3, np.zeros((4, 0))), clusters)


def test_kmeans_keeps_known_rows_and_links(rng):
    points = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(4, 1, (50, 2)), rng.normal((0, 8), 1, (50, 2))])
    truth = np.repeat([2, 0, 1], 50)
    known = np.full(150, -1)
    known[[0, 50, 100]] = truth[[0, 50, 100]]
    labels = kmeans(points, 3, rng, hints_of(150, known=known))
    assert (labels == truth).mean() > 0.95
    free = kmeans(points, 3, rng, hints_of(150, known=np.where(known == 2, 2, -1)))  # the others are new
    assert (free[truth == 2] == 2).mean() > 0.95
    assert adjusted_rand_score(truth, free) > 0.9
    hints = hints_of(150, must_link=[[0, 50]], cannot_link=[[1, 2]])
    linked = kmeans(points, 3, rng, hints)
    assert linked[0] == linked[50]
    assert linked[1] != linked[2]


WEIGHTS = np.array([1, 2, 1, 3, 1, 1, 2, 1] * 15, dtype=float)


@pytest.fixture
def weighted(rng):
    points = np.concatenate([rng.normal(0, 1, (60, 3)), rng.normal(4, 1.5, (60, 3))])
    rows = np.repeat(np.arange(120), WEIGHTS.astype(int))
    return points, rows


def test_a_row_of_weight_two_counts_as_two_for_microclusters_and_kmeans(weighted, rng):
    points, rows = weighted
    hints = Hints(WEIGHTS)
    labels, repeated = kmeans(points, 2, rng, hints), kmeans(points[rows], 2, rng)
    assert adjusted_rand_score(labels[rows], repeated) == 1.0
    centers, sizes = microclusters(points, 120, rng, WEIGHTS)
    assert_array_equal(sizes, WEIGHTS)
    assert_array_equal(centers, points)
    centers, sizes = microclusters(points, 10, rng, WEIGHTS)
    assert sizes.sum() == len(rows)
    assert_allclose(sizes @ centers, points[rows].sum(axis=0))


def test_a_row_of_weight_two_counts_as_two_for_mixtures(weighted):
    x, rows = weighted
    start = np.eye(2)[(x[:, 0] > 2).astype(int)]
    weights = Hints(WEIGHTS / WEIGHTS.sum() * len(rows))  # so many rows as the repeated ones are
    p = fit_mixture(x, start, np.zeros((3, 3)), weights)[1]
    assert_allclose(p[rows], fit_mixture(x[rows], start[rows], np.zeros((3, 3)))[1], atol=1e-4)
    assert np.abs(p - fit_mixture(x, start, np.zeros((3, 3)))[1]).max() > 1e-3


def test_a_row_of_weight_two_counts_as_two_for_the_consensus(rng):
    partitions = [rng.randint(4, size=120), rng.randint(3, size=120)]
    rows = np.repeat(np.arange(120), WEIGHTS.astype(int))
    found, repeated = co_association(partitions, 3, WEIGHTS), co_association([p[rows] for p in partitions], 3)
    assert_allclose(
        found @ found.T, (repeated @ repeated.T)[np.ix_(*2 * [np.searchsorted(rows, np.arange(120))])], atol=1e-8
    )
    assert_allclose(
        matched_shares(partitions, partitions[0], 4, WEIGHTS)[rows],
        matched_shares([p[rows] for p in partitions], partitions[0][rows], 4),
    )


def test_known_rows_have_the_whole_vote(rng):
    partitions = [np.array([0, 0, 1, 1, 1]), np.array([0, 0, 0, 1, 1]), np.array([1, 1, 0, 0, 0])]
    consensus, shares = agree(partitions, 2, rng, hints_of(5, known=[1, -1, 1, -1, 0]))
    assert_array_equal(consensus[[0, 2, 4]], [1, 1, 0])
    assert_array_equal(shares[[0, 2, 4]], [[0, 1], [0, 1], [1, 0]])


def test_a_row_of_weight_two_counts_as_two_for_the_coordinates(weighted, rng):
    points, rows = weighted
    points, wide = points - np.average(points, axis=0, weights=WEIGHTS), np.ones((3, 9)) + np.eye(3, 9)
    axes, repeated = (
        principal_axes(x @ wide, 2, rng, weight) for x, weight in ((points, WEIGHTS), (points[rows], None))
    )
    assert_allclose(np.abs(axes.T @ repeated), np.eye(2), atol=1e-6)


@pytest.mark.parametrize(
    ("known", "numbers", "names"),
    [
        (["b", "", "a", None], [1, -1, 0, -1], ["a", "b"]),
        (["b", float("nan"), "a", ""], [1, -1, 0, -1], ["a", "b"]),
        (pd.Series(["b", None, "a", ""], dtype="string"), [1, -1, 0, -1], ["a", "b"]),
        ([2, -1, 0], [2, -1, 0], []),
        ([2.0, np.nan, 0.0], [2, -1, 0], []),
        ([2, None, 0], [2, -1, 0], []),
        (pd.Series([2, None, 0], dtype="Int64"), [2, -1, 0], []),
    ],
)
def test_names_of_classes_are_numbered_in_their_order_and_numbers_are_kept(known, numbers, names):
    hints, found = make_hints(len(known), known=known)
    assert_array_equal(hints.known, numbers)
    assert found == names
