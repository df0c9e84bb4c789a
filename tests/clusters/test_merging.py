"""Merging of states, compared with a slow loop and values by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.clusters.merging import (
    MARGIN,
    Merging,
    VersionsMerging,
    merge_states,
    merge_versions,
    neighbor_joint,
    versions_joint,
)


def random_joint(n_states, seed=0):
    joint = np.random.default_rng(seed).gamma(0.3, size=(n_states, n_states))
    return (joint + joint.T) / (2 * joint.sum())


@pytest.mark.parametrize("weight", [None, np.arange(9.0)])
def test_the_joint_is_the_mean_over_pairs_of_neighbours(weight):
    rng = np.random.default_rng(1)
    p_zx = rng.dirichlet(np.ones(4), size=9)
    neighbors = rng.integers(0, 9, size=(9, 3))
    share = np.full(9, 1 / 9) if weight is None else weight / weight.sum()
    joint = np.zeros((4, 4))
    for i in range(9):
        for j in neighbors[i]:
            for k in range(4):
                for m in range(4):
                    joint[k, m] += share[i] * (p_zx[i, k] * p_zx[j, m] + p_zx[j, k] * p_zx[i, m]) / (2 * 3)
    found = neighbor_joint(p_zx, neighbors, weight)
    assert_allclose(found, joint, atol=1e-14)
    assert_allclose(found.sum(), 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_each_step_merges_the_pair_that_is_oftenest_neighbours_against_chance(seed):
    joint = random_joint(7, seed)
    merging = merge_states(joint)
    groups = {k: [k] for k in range(7)}

    def between(a, b):
        return sum(joint[i, j] for i in groups[a] for j in groups[b])

    for (kept, merged), ratio in zip(merging.pairs.tolist(), merging.ratios, strict=True):
        mass = {a: sum(between(a, b) for b in groups) for a in groups}
        ratios = {(a, b): between(a, b) / (mass[a] * mass[b]) for a in groups for b in groups if a < b}
        assert (kept, merged) == max(ratios, key=ratios.get)
        assert_allclose(ratio, ratios[kept, merged], rtol=1e-12)
        groups[kept] += groups.pop(merged)
    assert len(groups) == 1


def entropy_minus_variation(joint):
    """H(z) - H(z|z') - H(z'|z) in a double loop."""
    n_states = len(joint)
    p_z = [sum(joint[i]) for i in range(n_states)]
    entropy = -sum(p * np.log(p) for p in p_z if p > 0)
    conditional = -sum(
        joint[i, j] * np.log(joint[i, j] / p_z[j]) for i in range(n_states) for j in range(n_states) if joint[i, j] > 0
    )
    return entropy - 2 * conditional


@pytest.mark.parametrize(("seed", "empty"), [(0, False), (1, False), (2, True)])
def test_states_of_images_are_merged_so_that_entropy_minus_variation_decreases_the_least(seed, empty):
    joint = random_joint(8, seed)
    if empty:
        joint[3] = joint[:, 3] = 0.0
        joint /= joint.sum()
    merging = merge_versions(joint)
    groups = {k: [k] for k in range(8)}

    def value(groups):
        member = np.array([[float(k in group) for k in range(8)] for group in groups.values()])
        return entropy_minus_variation(member @ joint @ member.T)

    for (kept, merged), ratio in zip(merging.pairs.tolist(), merging.ratios, strict=True):
        assert_allclose(merging.information[len(groups) - 1], value(groups), atol=1e-12)
        candidates = {
            (a, b): {k: groups[k] + groups[b] if k == a else groups[k] for k in groups if k != b}
            for a in groups
            for b in groups
            if a < b
        }
        if empty and len(groups) == 8:
            assert 3 in (kept, merged)
        else:
            assert_allclose(value(candidates[kept, merged]), max(map(value, candidates.values())), atol=1e-12)
        mass = {k: sum(joint[i].sum() for i in groups[k]) for k in (kept, merged)}
        between = sum(joint[i, j] for i in groups[kept] for j in groups[merged])
        assert_allclose(ratio, between / (mass[kept] * mass[merged]) if mass[kept] * mass[merged] > 0 else 1.0)
        groups = candidates[kept, merged]
    assert merging.information[0] == pytest.approx(0.0, abs=1e-12)


def test_a_few_odd_images_get_no_cluster_of_their_own():
    """Two clusters, each of two states that share images, and a state with a thousandth of the images."""
    halves = np.kron(np.eye(2), [[0.2, 0.0499], [0.0499, 0.2]])
    joint = np.zeros((5, 5))
    joint[:4, :4] = halves
    joint[4, 4], joint[0, 4], joint[4, 0] = 0.0008, 0.0001, 0.0001
    joint /= joint.sum()
    assert_array_equal(merge_versions(joint).clusters(2), [0, 0, 1, 1, 0])


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_states_of_one_kind_are_merged_first_and_those_of_different_kinds_last(merge):
    kinds = np.array([0, 1, 1, -1, 0, -1])
    merging = merge(random_joint(6), kinds)
    assert {tuple(pair) for pair in merging.pairs[:2]} == {(0, 4), (1, 2)}
    clusters = merging.clusters(2)
    assert clusters[0] == clusters[4] != clusters[1] == clusters[2]
    assert_array_equal(merging.clusters(1), 0)  # no pair is merged twice
    one_of_each = merge(random_joint(4), np.array([0, -1, -1, 1])).clusters(2)
    assert one_of_each[0] != one_of_each[3]


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_the_kind_0_counts_like_any_other(merge):
    joint = np.array([[0.2, 0.0, 0.1], [0.0, 0.3, 0.0], [0.1, 0.0, 0.3]])
    assert tuple(merge(joint).pairs[0]) == (0, 2)
    assert tuple(merge(joint, np.array([0, 0, -1])).pairs[0]) == (0, 1)


def test_the_number_of_clusters_of_images_is_the_smallest_that_is_nearly_the_best():
    best = 2.0
    information = np.array([0.0, 1.0, best * (1 - 1.1 * MARGIN), best * (1 - 0.9 * MARGIN), best, 1.9, 2.5])
    merging = VersionsMerging(np.array([[0, k] for k in range(6, 0, -1)]), np.ones(6), information)
    assert merging.most_clusters == 7
    assert merging.standing_out(6) == 4
    assert merging.standing_out(7) == 7
    assert merging.standing_out(3) == 3
    assert merging.standing_out(1) == 1
    assert merging.selection(3) == {"n_clusters": [2, 3], "information": information[1:3].tolist()}
    falling = VersionsMerging(merging.pairs[-2:], np.ones(2), np.array([0.0, -0.5, -0.8]))
    assert falling.standing_out(3) == 2
    assert VersionsMerging(merging.pairs[-2:], np.ones(2), np.array([0.0, 1.0 - MARGIN, 1.0])).standing_out(3) == 2


def test_clusters_are_numbered_by_their_first_state():
    merging = Merging(np.array([[1, 3], [0, 4], [0, 2], [0, 1]]), np.array([6.0, 3.0, 1.5, 0.5]))
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


def test_the_largest_jump_is_looked_for_up_to_the_largest_number_of_clusters_and_no_further():
    """The jumps are 2, 3, 4, 5 at K = 2, 3, 4, 5, so each allowed number is better than all before it."""
    pairs = np.array([[0, 5], [0, 4], [0, 3], [0, 2], [0, 1]])
    merging = Merging(pairs, np.array([120.0, 24.0, 6.0, 2.0, 1.0]))
    assert_allclose(merging.jumps(), [2.0, 3.0, 4.0, 5.0])
    assert [merging.standing_out(most) for most in (1, 2, 3, 4, 5, 9)] == [1, 2, 3, 4, 5, 5]


def test_a_small_cluster_is_as_good_as_a_large_one():
    """Two large states that touch a little are merged after a small and a tiny state that touch a lot."""
    joint = np.array([[0.46, 0.02, 0, 0], [0.02, 0.46, 0, 0], [0, 0, 0.015, 0.005], [0, 0, 0.005, 0.015]])
    merging = merge_states(joint)
    assert merging.pairs[:2].tolist() == [[2, 3], [0, 1]]
    assert_allclose(merging.ratios[:2], [0.005 / 0.02**2, 0.02 / 0.48**2])


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_a_state_without_mass_goes_first(merge):
    used = [np.full((3, 3), -7.0) for _ in range(8)]
    del used  # so unused memory of this size does not contain a large number by chance
    joint = np.zeros((3, 3))
    joint[0, 0] = joint[2, 2] = 0.5
    merging = merge(joint)
    assert 1 in merging.pairs[0]
    assert_allclose(merging.ratios, [1.0, 0.0])
    clusters = merging.clusters(2)
    assert clusters[0] != clusters[2]


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_one_state_is_one_cluster(merge):
    merging = merge(np.ones((1, 1)))
    assert_array_equal(merging.clusters(1), [0])
    assert (merging.pairs.shape, merging.pairs.dtype) == ((0, 2), np.int64)
    assert len(merging.jumps()) == 0
    assert merging.standing_out(8) == 1


def test_the_joint_of_versions_is_the_mean_over_points_and_versions():
    rng = np.random.default_rng(3)
    p_zx, weight = rng.dirichlet(np.ones(4), size=9), rng.uniform(0.5, 2.0, size=9)
    versions = [rng.dirichlet(np.ones(4), size=9) for _ in range(3)]
    joint = np.zeros((4, 4))
    for version in versions:
        for i in range(9):
            for k in range(4):
                for m in range(4):
                    joint[k, m] += weight[i] * (p_zx[i, k] * version[i, m] + version[i, k] * p_zx[i, m]) / 2
    assert_allclose(versions_joint(p_zx, versions, weight), joint / (3 * weight.sum()), atol=1e-14)
