"""Gaps between rows: the spanning tree, its divisions, and which of them are proven."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.cluster.hierarchy import linkage as scipy_linkage
from sklearn.metrics import adjusted_rand_score

from neuralbayes.manifolds.graph import NeighborGraph
from neuralbayes.manifolds.linkage import Linkage, spanning_tree
from neuralbayes.manifolds.separation import separation_of_parts
from neuralbayes.neighbors import nearest_neighbors


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def arms(n_arms, turns=3.0, n=700, random=None):
    """Spiral arms at a distance of about 0.5, with even spacing along them or at random."""
    length = np.linspace(0.0, 1.0, n) if random is None else np.sort(random.uniform(size=n))
    radius = np.sqrt(0.5**2 + length * ((turns + 0.5) ** 2 - 0.5**2))
    angle = 2 * np.pi * (radius[None] + np.arange(n_arms)[:, None] / n_arms)
    X = 0.5 * n_arms * np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)
    return X.reshape(-1, 2), np.repeat(np.arange(n_arms), n)


def link(X):
    return Linkage(NeighborGraph(X, 15))


@pytest.mark.parametrize("n_dimensions", [1, 2, 20])
def test_the_tree_has_the_merges_of_single_linkage(rng, n_dimensions):
    X = rng.standard_normal((200, n_dimensions))
    X[100:150] += 50.0  # parts that no neighbour joins
    X[150:] -= 70.0
    edges, length = spanning_tree(X, *nearest_neighbors(X, 5))
    assert edges.shape == (199, 2)
    assert_allclose(length, np.linalg.norm(X[edges[:, 0]] - X[edges[:, 1]], axis=1))
    assert_allclose(length, scipy_linkage(X, "single")[:, 2])


def test_the_clearest_division_is_found_at_its_scale(rng):
    X = np.concatenate([np.add(rng.uniform(size=(100, 2)), [x, 0.0]) for x in (0.0, 3.0, 20.0)])
    linkage = link(X[:, ::-1])
    assert linkage.clearest in (2, 3)
    assert adjusted_rand_score(linkage.divide(3).part, np.repeat([0, 1, 2], 100)) == 1.0
    assert adjusted_rand_score(linkage.divide(2).part, np.repeat([0, 0, 1], 100)) == 1.0
    assert_allclose(linkage.divide(2).gap, 16.0, atol=0.3)


def test_few_points_belong_to_the_part_that_they_merge_with(rng):
    X = rng.uniform(size=(202, 2))
    X[100:200, 0] += 9.0
    X[200:] = [[3.0, 0.5], [7.0, 0.5]]
    part = link(X).divide(2).part
    assert part[200] == part[0] != part[201]
    assert part[201] == part[100]


@pytest.mark.parametrize("n_arms", [2, 3])
def test_arms_side_by_side_are_proven(n_arms):
    X, y = arms(n_arms)
    proven = link(X).proven
    assert proven.n_parts == n_arms
    assert adjusted_rand_score(proven.part, y) == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_a_single_arm_with_rows_at_random_is_not_proven_to_be_several(seed):
    X, _ = arms(1, turns=4.0, random=np.random.RandomState(seed))
    assert link(X).proven is None


def test_the_pieces_of_a_broken_line_prove_nothing():
    X, _ = arms(1)
    broken = np.delete(X, slice(350, 372), axis=0)  # a gap as wide as that between the turns
    linkage = link(broken)
    pieces = (np.arange(len(broken)) >= 350).astype(np.int64)
    assert linkage.proven is None
    assert not linkage.may_be_broken(pieces)  # rows with an even spacing would not have it by chance
    uneven = np.cumsum(np.exp(1.5 * np.random.RandomState(0).standard_normal(300)))
    line = np.column_stack([uneven, np.zeros(300)])
    widest = int(np.diff(uneven)[100:200].argmax()) + 101
    assert link(line).may_be_broken((np.arange(300) >= widest).astype(np.int64))


def test_a_state_that_divides_a_part_is_not_apart(rng):
    part = np.repeat([0, 1], 100)
    assert_allclose(separation_of_parts(part, np.eye(2)[part]), np.log(2.0), rtol=1e-6)
    assert_allclose(separation_of_parts(part, np.eye(2)[np.arange(200) % 2]), 0.0, atol=1e-9)
    thirds = separation_of_parts(part, np.eye(3)[[0] * 100 + [1] * 50 + [2] * 50])
    assert_allclose(thirds[0], np.log(2.0), rtol=1e-6)
    assert thirds[1:].max() < 0.5 * np.log(2.0)
