"""Merging of states, compared with a slow loop and values by hand."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy as scipy_hierarchy

import neuralbayes as nb
from neuralbayes.clusters.merging import (
    MARGIN,
    Merging,
    check_linkage,
    cut,
    merge_states,
    merge_versions,
    neighbor_joint,
    separation,
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


def merges(merging):
    """The groups of states before each merge, by the first state of each, and the two that are merged."""
    groups = {k: [k] for k in range(merging.n_states)}
    for i, (first, second, _, size) in enumerate(merging.linkage.tolist()):
        yield groups, int(first), int(second)
        groups = {key: group for key, group in groups.items() if key not in (first, second)} | {
            merging.n_states + i: groups[first] + groups[second]
        }
        assert len(groups[merging.n_states + i]) == size


@pytest.mark.parametrize("seed", range(3))
def test_each_step_merges_the_pair_that_is_oftenest_neighbours_against_chance(seed):
    joint = random_joint(7, seed)
    merging = merge_states(joint)
    for (groups, first, second), ratio in zip(merges(merging), merging.ratios, strict=True):
        mass = {a: joint[group].sum() for a, group in groups.items()}
        ratios = {
            (a, b): joint[np.ix_(groups[a], groups[b])].sum() / (mass[a] * mass[b])
            for a in groups
            for b in groups
            if a < b
        }
        assert (first, second) == max(ratios, key=ratios.get)
        assert_allclose(ratio, ratios[first, second], rtol=1e-12)


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

    def value(groups):
        member = np.array([[float(k in group) for k in range(8)] for group in groups])
        return entropy_minus_variation(member @ joint @ member.T)

    for (groups, first, second), ratio in zip(merges(merging), merging.ratios, strict=True):
        assert_allclose(merging.information[len(groups) - 1], value(groups.values()), atol=1e-12)
        candidates = {
            (a, b): [groups[a] + groups[b], *(group for key, group in groups.items() if key not in (a, b))]
            for a in groups
            for b in groups
            if a < b
        }
        if empty and len(groups) == 8:
            assert 3 in (first, second)
        else:
            assert_allclose(value(candidates[first, second]), max(map(value, candidates.values())), atol=1e-12)
        chance = joint[groups[first]].sum() * joint[groups[second]].sum()
        between = joint[np.ix_(groups[first], groups[second])].sum()
        assert_allclose(ratio, between / chance if chance > 0 else 1.0)
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
    assert {tuple(pair) for pair in merging.linkage[:2, :2]} == {(0, 4), (1, 2)}
    clusters = merging.clusters(2)
    assert clusters[0] == clusters[4] != clusters[1] == clusters[2]
    assert_array_equal(merging.clusters(1), 0)  # no pair is merged twice
    one_of_each = merge(random_joint(4), np.array([0, -1, -1, 1])).clusters(2)
    assert one_of_each[0] != one_of_each[3]


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_the_kind_0_counts_like_any_other(merge):
    joint = np.array([[0.2, 0.0, 0.1], [0.0, 0.3, 0.0], [0.1, 0.0, 0.3]])
    assert tuple(merge(joint).linkage[0, :2]) == (0, 2)
    assert tuple(merge(joint, np.array([0, 0, -1])).linkage[0, :2]) == (0, 1)


def by_hand(ratios=(), information=()):
    """A merging of states 0 and 1, then 2, then 3, ..."""
    n = max(len(ratios) + 1, len(information))
    linkage = [[i + 1.0, n + i - 1.0 if i else 0.0, float(i), i + 2.0] for i in range(n - 1)]
    return Merging(np.array(linkage).reshape(-1, 4), np.array(ratios), np.array(information))


def test_the_number_of_clusters_of_images_is_the_smallest_that_is_nearly_the_best():
    best = 2.0
    information = np.array([0.0, 1.0, best * (1 - 1.1 * MARGIN), best * (1 - 0.9 * MARGIN), best, 1.9, 2.5])
    merging = by_hand(information=information)
    assert merging.most_clusters == 7
    assert [merging.nearly_best(most) for most in (6, 7, 3, 1)] == [4, 7, 3, 1]
    assert by_hand(information=[0.0, -0.5, -0.8]).nearly_best(3) == 2
    assert by_hand(information=[0.0, 1.0 - MARGIN, 1.0]).nearly_best(3) == 2


def test_the_largest_jump_is_looked_for_up_to_the_largest_number_of_clusters_and_no_further():
    """The jumps are 2, 3, 4, 5 at K = 2, 3, 4, 5, so each allowed number is better than all before it."""
    merging = by_hand(ratios=[120.0, 24.0, 6.0, 2.0, 1.0])
    assert_allclose(merging.jumps(), [2.0, 3.0, 4.0, 5.0])
    assert [merging.largest_jump(most) for most in (1, 2, 3, 4, 5, 9)] == [1, 2, 3, 4, 5, 5]


def test_a_small_cluster_is_as_good_as_a_large_one():
    """Two large states that touch a little are merged after a small and a tiny state that touch a lot."""
    joint = np.array([[0.46, 0.02, 0, 0], [0.02, 0.46, 0, 0], [0, 0, 0.015, 0.005], [0, 0, 0.005, 0.015]])
    merging = merge_states(joint)
    assert merging.linkage[:2, :2].tolist() == [[2, 3], [0, 1]]
    assert_allclose(merging.ratios[:2], [0.005 / 0.02**2, 0.02 / 0.48**2])


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_a_state_without_mass_goes_first(merge):
    joint = np.zeros((3, 3))
    joint[0, 0] = joint[2, 2] = 0.5
    merging = merge(joint)
    assert 1 in merging.linkage[0, :2]
    assert_allclose(merging.ratios, [1.0, 0.0])
    clusters = merging.clusters(2)
    assert clusters[0] != clusters[2]


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_one_state_is_one_cluster(merge):
    merging = merge(np.ones((1, 1)))
    assert_array_equal(merging.clusters(1), [0])
    check_linkage(merging.linkage)
    assert merging.linkage.shape == (0, 4)
    assert merging.largest_jump(8) == merging.nearly_best(8) == 1


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


@pytest.mark.parametrize("weight", [None, np.linspace(0.5, 2.0, 50)])
def test_the_separation_is_the_divergence_of_posteriors_averaged_over_neighbours(weight):
    rng = np.random.default_rng(0)
    p_zx = rng.dirichlet(np.full(4, 0.3), size=50)
    p_zx[:, 3] = 0.0
    p_zx /= p_zx.sum(axis=1, keepdims=True)
    neighbors = rng.integers(0, 50, size=(50, 2))
    near = torch.from_numpy(p_zx[neighbors].mean(axis=1))
    expected = nb.js_divergence(near, sample_weight=None if weight is None else torch.from_numpy(weight))
    assert_allclose(separation(p_zx, neighbors, weight), expected, atol=1e-12)
    assert_array_equal(separation(np.ones((50, 1)), neighbors), [0.0])


def test_heights_are_logarithms_of_how_many_times_less_often_than_the_closest_pair():
    """The ratios are 10, 2 and 0; the last counts as a hundredth."""
    joint = np.zeros((4, 4))
    joint[:2, :2], joint[2:, 2:] = 0.025, [[0.2, 0.25], [0.25, 0.2]]
    merging = merge_states(joint)
    assert_allclose(merging.ratios, [10.0, 0.25 / 0.45**2, 0.0])
    assert_allclose(merging.linkage[:, 2], np.log([1.0, 10.0 * 0.45**2 / 0.25, 1000.0]))
    assert_array_equal(merging.linkage[:, [0, 1, 3]], [[0, 1, 2], [2, 3, 2], [4, 5, 4]])


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
@pytest.mark.parametrize("n_states", [1, 2, 3, 17])
def test_cuts_are_the_groups_of_the_merges_numbered_by_their_first_states(merge, n_states):
    merging = merge(random_joint(n_states, n_states))
    check_linkage(merging.linkage)
    for groups, *_ in merges(merging):
        expected = np.empty(n_states, int)
        for number, group in enumerate(sorted(groups.values(), key=min)):
            expected[group] = number
        assert_array_equal(merging.clusters(len(groups)), expected)
    assert_array_equal(merging.clusters(1), np.zeros(n_states))
    for n_clusters in (0, n_states + 1):
        with pytest.raises(ValueError, match="`n_clusters`"):
            merging.clusters(n_clusters)


def test_scipy_reads_a_linkage_and_a_linkage_of_scipy_can_be_cut():
    linkage = merge_states(random_joint(30)).linkage
    distinct = linkage.copy()
    distinct[:, 2] = np.arange(29)  # SciPy needs distinct heights
    for n_clusters in (2, 5, 29):
        theirs = scipy_hierarchy.cut_tree(distinct, n_clusters)[:, 0]
        assert_array_equal(cut(linkage, n_clusters), theirs)
    order = scipy_hierarchy.leaves_list(linkage)
    assert (np.diff(cut(linkage, 6)[order]) != 0).sum() == 5  # members of a cluster are side by side
    ward = scipy_hierarchy.linkage(np.array([[0.0], [10.0], [0.5], [11.0], [30.0]]), "ward")
    check_linkage(ward)
    assert_array_equal(cut(ward, 3), [0, 1, 0, 1, 2])


def test_equal_heights_are_cut_in_the_order_of_the_merges():
    linkage = np.array([[2.0, 3.0, 0.0, 2.0], [0.0, 1.0, 0.0, 2.0], [4.0, 5.0, 0.0, 4.0]])
    assert [cut(linkage, k).tolist() for k in (1, 2, 3, 4)] == [[0] * 4, [0, 0, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]]


@pytest.mark.parametrize(
    ("place", "value"), [((0, 0), 5.0), ((1, 0), 0.0), ((0, 2), 7.0), ((0, 2), -1.0), ((2, 2), np.nan)]
)
def test_what_is_no_linkage_is_refused(place, value):
    """A cluster that is not made yet, one that was merged before, and heights that decrease, or are no heights."""
    linkage = np.array([[0.0, 1.0, 0.0, 2.0], [2.0, 3.0, 1.0, 2.0], [4.0, 5.0, 2.0, 4.0]])
    linkage[place] = value
    with pytest.raises(ValueError, match="`linkage`"):
        check_linkage(linkage)
    with pytest.raises(ValueError, match="`linkage`"):
        check_linkage(np.zeros((3, 3)))
