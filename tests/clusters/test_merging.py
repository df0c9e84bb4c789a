"""Merging of states, compared with a slow loop and values by hand."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy as scipy_hierarchy
from scipy.special import entr

import neuralbayes as nb
from neuralbayes.clusters.merging import check_linkage, cut, merge_states, neighbor_joint, separation

merge_versions = partial(merge_states, by_information=True)


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
    n_states = len(merging.linkage) + 1
    groups = {k: [k] for k in range(n_states)}
    for i, (first, second, _, size) in enumerate(merging.linkage.tolist()):
        yield groups, int(first), int(second)
        groups = {key: group for key, group in groups.items() if key not in (first, second)} | {
            n_states + i: groups[first] + groups[second]
        }
        assert len(groups[n_states + i]) == size


def ratio(joint, first, second):
    return joint[np.ix_(first, second)].sum() / (joint[first].sum() * joint[second].sum())


def information(joint, groups):
    """H(z) - H(z|z') - H(z'|z) of groups of states."""
    member = np.array([[float(k in group) for k in range(len(joint))] for group in groups])
    joint = member @ joint @ member.T
    p_z = joint.sum(axis=1)
    return 3 * entr(p_z).sum() - 2 * entr(joint).sum()


@pytest.mark.parametrize("seed", range(3))
def test_each_step_merges_the_pair_with_the_largest_ratio_or_the_least_loss_of_information(seed):
    joint = random_joint(7, seed)
    for merge in (merge_states, merge_versions):
        merging = merge(joint)
        for (groups, first, second), found in zip(merges(merging), merging.ratios, strict=True):
            assert_allclose(found, ratio(joint, groups[first], groups[second]), rtol=1e-12)
            assert_allclose(merging.information[len(groups) - 1], information(joint, groups.values()), atol=1e-12)
            score = {}
            for a, b in combinations(groups, 2):
                merged = [groups[a] + groups[b], *(group for key, group in groups.items() if key not in (a, b))]
                by_ratio = merge is merge_states
                score[a, b] = ratio(joint, groups[a], groups[b]) if by_ratio else information(joint, merged)
            assert_allclose(score[first, second], max(score.values()), atol=1e-12)
        assert merging.information[0] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_states_of_one_kind_are_merged_first_and_those_of_different_kinds_last(merge):
    kinds = np.array([0, 1, 1, -1, 0, -1])
    merging = merge(random_joint(6), kinds)
    assert {tuple(pair) for pair in merging.linkage[:2, :2]} == {(0, 4), (1, 2)}
    clusters = cut(merging.linkage, 2)
    assert clusters[0] == clusters[4] != clusters[1] == clusters[2]
    assert_array_equal(cut(merging.linkage, 1), 0)  # no pair is merged twice
    one_of_each = cut(merge(random_joint(4), np.array([0, -1, -1, 1])).linkage, 2)
    assert one_of_each[0] != one_of_each[3]


@pytest.mark.parametrize("merge", [merge_states, merge_versions])
def test_a_state_without_mass_goes_first(merge):
    joint = np.zeros((3, 3))
    joint[0, 0] = joint[2, 2] = 0.5
    merging = merge(joint)
    assert 1 in merging.linkage[0, :2]
    assert_allclose(merging.ratios, [1.0, 0.0])
    clusters = cut(merging.linkage, 2)
    assert clusters[0] != clusters[2]


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
        assert_array_equal(cut(merging.linkage, len(groups)), expected)
    assert_array_equal(cut(merging.linkage, 1), np.zeros(n_states))
    for n_clusters in (0, n_states + 1):
        with pytest.raises(ValueError, match="`n_clusters`"):
            cut(merging.linkage, n_clusters)


def test_cuts_are_those_of_scipy():
    linkage = merge_states(random_joint(30)).linkage
    linkage[:, 2] = np.arange(29)  # SciPy needs distinct heights
    for n_clusters in (2, 5, 29):
        assert_array_equal(cut(linkage, n_clusters), scipy_hierarchy.cut_tree(linkage, n_clusters)[:, 0])


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
