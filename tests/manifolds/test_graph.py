"""The neighbourhood graph and the random walk on it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.data import toys
from neuralbayes.manifolds.graph import NeighborGraph, RandomWalk

MOONS, MOON = toys.make_moons(400, random_state=0)


@pytest.fixture(scope="module")
def graph():
    return NeighborGraph(MOONS, 10)


def test_the_graph_is_symmetric_and_weighs_between_0_and_1(graph):
    assert abs(graph.weight - graph.weight.T).max() == 0
    assert graph.weight.data.min() > 0
    assert graph.weight.data.max() <= 1


def test_an_edge_weighs_by_its_length_and_the_nearer_reach_of_its_ends():
    """Points 0, 1, 3 on a line with k = 2: the distances to the second neighbour are 3, 2, 3."""
    graph = NeighborGraph(np.array([[0.0], [1.0], [3.0]]), 2)
    assert_allclose(graph.weight.toarray()[0], [0, np.exp(-2 * (1 / 2) ** 2), np.exp(-2 * (3 / 3) ** 2)])
    assert graph.spacing == 3.0


def test_a_walk_is_the_average_over_geometrically_many_steps(graph):
    """Sum over t of (1 - stop)^t stop P^t, as a slow loop."""
    length = 5.0
    continues = length / (length + 1.0)
    transition = graph.weight.toarray() / graph.degree[:, None]
    values = np.random.RandomState(0).uniform(size=(400, 2))
    expected, term = np.zeros_like(values), values
    for _ in range(400):
        expected += (1 - continues) * term
        term = continues * transition @ term
    assert_allclose(RandomWalk(graph, length)(values), expected, atol=1e-8)


def test_a_walk_keeps_constants_and_disjoint_manifolds_apart(graph):
    walk = RandomWalk(graph, 1000.0)
    assert_allclose(walk(np.ones(400)), 1.0, atol=1e-4)
    assert_allclose(walk(MOON.astype(float)), MOON, atol=1e-2)


def test_a_walk_blurs_a_cut_through_a_manifold(graph):
    cut = (MOONS[:, 0] > 0.5).astype(float)
    assert np.abs(RandomWalk(graph, 1000.0)(cut) - cut).mean() > 0.1


def test_territories_are_the_manifolds(graph):
    shares = RandomWalk(graph, 1000.0).territories(2, np.random.RandomState(0))
    assert_allclose(shares.sum(axis=1), 1.0)
    territory = shares.argmax(axis=1)
    assert_array_equal(territory == territory[0], MOON[0] == MOON)


def test_duplicates_do_not_break_the_graph():
    graph = NeighborGraph(np.repeat(np.eye(3), 20, axis=0), 10)
    assert np.isfinite(graph.weight.data).all()
    assert np.isfinite(RandomWalk(graph, 100.0)(np.eye(60))).all()


def test_a_cut_graph_has_the_edges_within_the_parts_and_no_others(graph):
    part = (MOONS[:, 0] > 0.5).astype(int)
    inside = part[:, None] == part
    assert_array_equal(graph.cut(part).weight.toarray(), graph.weight.toarray() * inside)


def test_nothing_passes_between_parts_that_no_edge_joins():
    graph = NeighborGraph(np.concatenate([MOONS[:100], MOONS[:100] + 1e3]), 10)
    walked = RandomWalk(graph, 1000.0)(np.repeat([1.0, 0.0], 100))
    assert_allclose(walked, np.repeat([1.0, 0.0], 100), atol=1e-6)
