"""The merging of states against a slow loop and hand values."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.merging import Merging, merge_states, neighbor_joint


def information(joint):
    """I(z; z') as its definition has it."""
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    return sum(
        joint[i, j] * math.log(joint[i, j] / (rows[i] * columns[j]))
        for i in range(joint.shape[0])
        for j in range(joint.shape[1])
        if joint[i, j] > 0
    )


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
def test_each_step_merges_the_pair_that_loses_least(seed):
    joint = random_joint(7, seed)
    merging = merge_states(joint)
    rows = {k: joint[k] for k in range(7)}
    for (kept, merged), loss in zip(merging.pairs.tolist(), merging.losses, strict=True):
        before = information(np.array(list(rows.values())))
        costs = {}
        for i in rows:
            for j in rows:
                if i < j:
                    left = [row for k, row in rows.items() if k not in (i, j)]
                    costs[i, j] = before - information(np.array([*left, rows[i] + rows[j]]))
        assert (kept, merged) == min(costs, key=costs.get)
        assert_allclose(loss, costs[kept, merged], atol=1e-12)
        rows[kept] = rows[kept] + rows.pop(merged)
    assert_allclose(merging.losses.sum(), information(joint))


def test_clusters_are_numbered_by_their_first_state():
    merging = Merging(np.array([[1, 3], [0, 4], [0, 2]]), np.array([0.1, 0.2, 0.8]))
    merging = Merging(np.vstack([merging.pairs, [[0, 1]]]), np.append(merging.losses, 1.6))
    assert merging.n_states == 5
    assert_array_equal(merging.clusters(5), range(5))
    assert_array_equal(merging.clusters(4), [0, 1, 2, 1, 3])
    assert_array_equal(merging.clusters(2), [0, 1, 0, 1, 0])
    assert_array_equal(merging.clusters(1), np.zeros(5))
    assert_allclose(merging.jumps(), [2.0, 4.0, 2.0])  # K = 2, 3, 4
    for n_clusters in (0, 6):
        with pytest.raises(ValueError, match=f"`n_clusters` must be from 1 to 5, got {n_clusters}"):
            merging.clusters(n_clusters)


def test_a_state_without_mass_costs_nothing():
    joint = np.zeros((3, 3))
    joint[0, 0] = joint[2, 2] = 0.5
    merging = merge_states(joint)
    assert_allclose(merging.losses, [0.0, math.log(2)])
    assert np.isfinite(merging.jumps()).all()
    clusters = merging.clusters(2)
    assert clusters[0] != clusters[2]


def test_one_state_is_one_cluster():
    merging = merge_states(np.ones((1, 1)))
    assert_array_equal(merging.clusters(1), [0])
    assert len(merging.jumps()) == 0
