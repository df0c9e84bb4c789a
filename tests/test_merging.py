"""The merging of states against a slow loop and hand values."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.merging import Merging, merge_states, neighbor_joint


def random_joint(n_states, seed=0):
    joint = np.random.default_rng(seed).gamma(0.3, size=(n_states, n_states))
    return (joint + joint.T) / (2 * joint.sum())


def test_the_joint_is_the_mean_over_pairs_of_neighbours():
    rng = np.random.default_rng(1)
    p_zx = rng.dirichlet(np.ones(4), size=9)
    neighbors = rng.integers(0, 9, size=(9, 3))
    joint = np.zeros((4, 4))
    for i in range(9):
        for j in neighbors[i]:
            for k in range(4):
                for m in range(4):
                    joint[k, m] += (p_zx[i, k] * p_zx[j, m] + p_zx[j, k] * p_zx[i, m]) / (2 * 9 * 3)
    found = neighbor_joint(p_zx, neighbors)
    assert_allclose(found, joint, atol=1e-14)
    assert_allclose(found.sum(), 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_each_step_merges_the_pair_that_loses_least_of_the_information_about_neighbours(seed):
    joint = random_joint(7, seed)
    merging = merge_states(joint)
    groups = {k: [k] for k in range(7)}

    def information(members):
        total = 0.0
        for group in members:
            for state in range(7):
                p = sum(joint[i, state] for i in group)
                total += p * np.log(p / (sum(joint[i].sum() for i in group) * joint[:, state].sum()))
        return total

    for (kept, merged), cost in zip(merging.pairs.tolist(), merging.costs, strict=True):
        costs = {}
        for a in groups:
            for b in groups:
                if a < b:
                    together = [*(groups[c] for c in groups if c not in (a, b)), groups[a] + groups[b]]
                    size = sum(joint[i].sum() for i in groups[a] + groups[b])
                    costs[a, b] = (information(groups.values()) - information(together)) / size**0.25
        assert (kept, merged) == min(costs, key=costs.get)
        assert_allclose(cost, costs[kept, merged], rtol=1e-9)
        groups[kept] += groups.pop(merged)
    assert len(groups) == 1


def test_clusters_are_numbered_by_their_first_state():
    merging = Merging(np.array([[1, 3], [0, 4], [0, 2], [0, 1]]), np.array([0.1, 0.2, 0.4, 1.2]))
    assert merging.n_states == 5
    assert_array_equal(merging.clusters(5), range(5))
    assert_array_equal(merging.clusters(4), [0, 1, 2, 1, 3])
    assert_array_equal(merging.clusters(2), [0, 1, 0, 1, 0])
    assert_array_equal(merging.clusters(1), np.zeros(5))
    assert_allclose(merging.jumps(), [3.0, 2.0, 2.0])  # K = 2, 3, 4
    assert merging.standing_out(4) == 2
    for n_clusters in (0, 6):
        with pytest.raises(ValueError, match=f"`n_clusters` must be from 1 to 5, got {n_clusters}"):
            merging.clusters(n_clusters)


def test_two_states_with_nothing_in_common_lose_what_a_coin_tells():
    """A quarter of the mass each: half of it times log 2, over the fourth root of a half."""
    merging = merge_states(np.diag([0.25, 0.25, 0.5]))
    assert_allclose(merging.costs[0], 0.5 * np.log(2) / 0.5**0.25)
    assert merging.pairs[0].tolist() == [0, 1]


def test_a_few_odd_points_are_not_kept_as_a_cluster_in_the_place_of_a_large_one():
    """Two halves that share a tenth of their neighbours stay apart, and a thousandth that shares none goes to one."""
    joint = np.array([[0.45, 0.0495, 0.0], [0.0495, 0.45, 0.0], [0.0, 0.0, 0.001]])
    clusters = merge_states(joint).clusters(2)
    assert clusters[0] != clusters[1]


def test_a_small_cluster_that_is_apart_is_kept_where_large_ones_share_most_of_their_neighbours():
    joint = np.array([[0.25, 0.24, 0.0], [0.24, 0.25, 0.0], [0.0, 0.0, 0.02]])
    assert_array_equal(merge_states(joint).clusters(2), [0, 0, 1])


def test_a_state_without_mass_goes_first():
    joint = np.zeros((3, 3))
    joint[0, 0] = joint[2, 2] = 0.5
    merging = merge_states(joint)
    assert 1 in merging.pairs[0]
    assert_allclose(merging.costs, [0.0, np.log(2)])
    clusters = merging.clusters(2)
    assert clusters[0] != clusters[2]
    assert_array_equal(merge_states(np.zeros((3, 3))).costs, [0.0, 0.0])


def test_one_state_is_one_cluster():
    merging = merge_states(np.ones((1, 1)))
    assert_array_equal(merging.clusters(1), [0])
    assert len(merging.jumps()) == 0
    assert merging.standing_out(8) == 1
