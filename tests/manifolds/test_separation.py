"""Separation of states along a walk between neighbours."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.sparse.csgraph import connected_components

from neuralbayes.bayes import LOG_2
from neuralbayes.manifolds.graph import NeighborGraph, RandomWalk
from neuralbayes.manifolds.separation import (
    CERTIFIED,
    WALK_LENGTH,
    is_certified,
    null_separation,
    prediction_bound,
    separation,
    settled,
    walk_between,
)


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def two_blobs(rng, n=200, apart=20.0):
    X = rng.standard_normal((n, 2))
    X[n // 2 :, 0] += apart
    return X, np.eye(2)[np.repeat([0, 1], n // 2)]


class Walk:
    """A walk with given ends, by default at its starts, on a graph with 15 neighbours."""

    graph = SimpleNamespace(n_neighbors=15)

    def __init__(self, ends=lambda p_zx: p_zx):
        self.ends = ends

    def __call__(self, p_zx):
        return self.ends(p_zx)


class Fixed:
    """A walk whose territories are two halves."""

    graph = SimpleNamespace(n_neighbors=15)

    def __init__(self, n):
        self.n = n

    def territories(self, n_states, rng):
        return np.eye(n_states)[np.arange(self.n) * n_states // self.n]

    def __call__(self, p_zx):
        return 0.6 * p_zx + 0.2


def test_disjoint_states_are_log_2_apart_and_halves_of_one_blob_are_not(rng):
    X, p_zx = two_blobs(rng)
    assert_allclose(separation(walk_between(X, 15), p_zx), LOG_2, rtol=1e-6)
    halves = np.eye(2)[(X[:100, 1] > 0).astype(int)]
    assert separation(walk_between(X[:100], 15), halves).max() < 0.1 * LOG_2


def test_separation_is_that_of_the_posterior_where_the_walk_stops(rng):
    """JS of each state and the rest, by its definition, on p(z|x) averaged by the walk."""
    X, _ = two_blobs(rng, apart=3.0)
    p_zx = rng.dirichlet(np.ones(3), len(X))
    walk = walk_between(X, 15)
    walked = walk(p_zx)
    for k, value in enumerate(separation(walk, p_zx)):
        q, rest = walked[:, k] / walked[:, k].sum(), (1 - walked[:, k]) / (1 - walked[:, k]).sum()
        middle = (q + rest) / 2
        assert_allclose(value, (q * np.log(q / middle) + rest * np.log(rest / middle)).sum() / 2, rtol=1e-6, atol=1e-9)


def test_a_state_without_rows_is_not_apart(rng):
    X, p_zx = two_blobs(rng)
    p_zx = np.column_stack([p_zx, np.zeros(len(X))])
    assert separation(walk_between(X, 15), p_zx)[2] == 0.0


def test_outliers_are_joined_to_what_is_nearest(rng):
    X = rng.standard_normal((300, 2))
    X[:6] = [[30, 0], [0, 40], [-50, 0], [30, 30], [0, -60], [70, 1]]
    graph = NeighborGraph(X, 15)
    before, _ = connected_components(graph.weight)
    assert before > 1
    after, _ = connected_components(settled(RandomWalk(graph, WALK_LENGTH)).graph.weight)
    assert after == 1
    outliers = np.eye(2)[(np.arange(300) < 6).astype(int)]
    assert separation(RandomWalk(graph, WALK_LENGTH), outliers).max() > 0.9 * LOG_2  # outliers only support each other
    assert separation(walk_between(X, 15), outliers).max() < 0.1 * LOG_2


def test_a_component_goes_to_its_own_nearest_neighbour_by_a_single_edge(rng):
    X, _ = two_blobs(rng, apart=100.0)
    X[0] = [30.0, 0.0]  # nearer to the first blob
    X[100] = [70.0, 0.0]
    walk = walk_between(X, 15)
    first, second = np.flatnonzero(walk.graph.weight[0].toarray()), np.flatnonzero(walk.graph.weight[100].toarray())
    assert list(first) == [1 + np.linalg.norm(X[1:100] - X[0], axis=1).argmin()]
    assert list(second) == [101 + np.linalg.norm(X[101:] - X[100], axis=1).argmin()]


def test_a_walk_without_small_components_stays_the_same():
    angle = np.linspace(0.0, 2.0 * np.pi, 100, endpoint=False)
    X = np.column_stack([np.cos(angle), np.sin(angle)])
    walk = RandomWalk(NeighborGraph(X, 15), WALK_LENGTH)
    assert settled(walk) is walk


def test_rows_without_a_whole_neighbourhood_are_all_one(rng):
    X = np.cumsum(10.0 ** np.arange(8))[:, None]  # each much farther than the one before
    p_zx = np.eye(2)[[0, 0, 0, 0, 1, 1, 1, 1]]
    assert separation(walk_between(X, 3), p_zx).max() < 0.5 * LOG_2


def test_the_null_is_far_from_disjoint_with_enough_neighbours_and_not_with_one(rng):
    points = rng.standard_normal((400, 2)) * [3.0, 1.0]
    assert null_separation(points, 2, 15, rng) < 0.5 * LOG_2
    assert null_separation(points, 2, 1, rng) > CERTIFIED * LOG_2


def test_certified_is_beyond_both_bars():
    values = np.array([0.95, 0.9, 0.85]) * LOG_2
    assert is_certified(values, 0.0).tolist() == [True, True, False]
    assert is_certified(values, 0.93 * LOG_2).tolist() == [True, False, False]


def test_states_that_share_no_row_are_log_2_apart_and_those_that_share_all_are_not_apart():
    apart = np.repeat(np.eye(2), 20, axis=0)
    assert_allclose(separation(Walk(), apart, np.arange(40)), np.log(2.0))
    assert_allclose(separation(Walk(), np.full((40, 2), 0.5), np.arange(40)), 0.0, atol=1e-12)


def test_where_the_walk_ends_decides_not_where_it_starts():
    apart = np.repeat(np.eye(2), 20, axis=0)
    assert_allclose(separation(Walk(lambda p: np.full_like(p, 0.5)), apart, np.arange(40)), 0.0, atol=1e-12)


def test_what_a_walk_makes_below_0_and_above_1_is_no_probability():
    apart = np.repeat(np.eye(2), 20, axis=0)
    found = separation(Walk(lambda p_zx: 1.02 * p_zx - 0.01), apart, np.arange(40))
    assert_allclose(found, np.log(2.0), rtol=1e-12)


@pytest.mark.parametrize(
    ("n", "rows", "alive"),
    [
        (300, 4.95, False),  # 300 / (20 * 3) = 5 rows
        (300, 5.0, True),
        (3000, 14.95, False),  # 15 neighbours, which are less than 3,000 / (20 * 3) = 50 rows
        (3000, 15.0, True),
    ],
)
def test_a_state_of_hardly_any_rows_is_not_apart(n, rows, alive):
    """A twentieth of its share of the rows, or as many rows as a neighbourhood, makes a state."""
    p_zx = np.eye(3)[np.arange(n) % 2]
    n_rows = int(np.ceil(rows))
    p_zx[:n_rows] = np.eye(3)[2]
    p_zx[0] = [1.0 - (rows - n_rows + 1), 0.0, rows - n_rows + 1]
    assert p_zx[:, 2].sum() == pytest.approx(rows)
    assert (separation(Walk(), p_zx, np.arange(n)) > 0.3).tolist() == [True, True, alive]


def test_only_the_rows_judged_count():
    """The last 20 of 40 rows are shared. The first 20 are not: each state has ten of them."""
    p_zx = np.concatenate([np.repeat(np.eye(2), 10, axis=0), np.full((20, 2), 0.5)])
    assert_allclose(separation(Walk(), p_zx, np.arange(20)), np.log(2.0))
    assert_allclose(separation(Walk(), p_zx, np.arange(20, 40)), 0.0, atol=1e-12)


def test_the_bound_of_a_normal_prediction_interval():
    """2 + t * 1 * sqrt(1 + 1/3), where t = 6.9646 is the 99 % quantile with two degrees of freedom."""
    assert prediction_bound([1.0, 2.0, 3.0]) == pytest.approx(2.0 + 6.964557 * np.sqrt(4.0 / 3.0), rel=1e-6)
    assert prediction_bound([1.0, 2.0, 3.0, 6.0]) == pytest.approx(3.0 + 4.540703 * 2.160247 * np.sqrt(1.25), rel=1e-6)


def test_the_null_has_the_size_and_the_covariance_of_the_points(rng, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "neuralbayes.manifolds.separation.walk_between", lambda X, k: seen.append((X, k)) or Fixed(len(X))
    )
    null_separation(rng.standard_normal((500, 3)) * [5.0, 1.0, 0.2], 2, 12, rng)
    assert len(seen) >= 3
    for X, k in seen:
        assert X.shape == (500, 3)
        assert k == 12
        assert_allclose(X.std(axis=0), [5.0, 1.0, 0.2], rtol=0.15)


def test_a_component_as_large_as_a_neighbourhood_and_its_middle_stands(rng):
    """With k = 10 neighbours, eleven distant points are a component, and ten are outliers."""
    for n_away, components in ((10, 1), (11, 2)):
        X = np.concatenate([0.1 * rng.standard_normal((200, 2)), 50.0 + 0.1 * rng.uniform(size=(n_away, 2))])
        X[200:] = 50.0 + 0.01 * np.column_stack([np.cos(np.arange(n_away)), np.sin(np.arange(n_away))])
        graph = NeighborGraph(X, 10)
        graph.weight = graph.weight.tolil()
        for i in range(n_away):  # all joined to each other, and to no other point
            graph.weight[200 + i, :] = 0.0
            graph.weight[:, 200 + i] = 0.0
        for i in range(n_away):
            for j in range(n_away):
                graph.weight[200 + i, 200 + j] = float(i != j)
        graph._weigh(graph.weight.tocsr())
        _, component = connected_components(settled(RandomWalk(graph, WALK_LENGTH)).graph.weight)
        assert len(set(component[200:]) - set(component[:200])) == components - 1


def test_the_walk_between_outliers_and_the_rest_goes_both_ways(rng):
    X = rng.standard_normal((300, 2))
    X[0] = [100.0, 0.0]
    weight = walk_between(X, 15).graph.weight
    assert (weight != weight.T).nnz == 0
    assert weight.min() >= 0.0
