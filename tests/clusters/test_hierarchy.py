"""Linkage matrices from merges, against hand values, the merging itself and SciPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.cluster import hierarchy as scipy_hierarchy

from neuralbayes.clusters.hierarchy import (
    check_linkage,
    cut,
    leaf_order,
    linkage_from_merges,
    neighbor_heights,
    truncate,
)
from neuralbayes.clusters.merging import merge_states


def random_merging(n_states, seed=0):
    joint = np.random.default_rng(seed).gamma(0.3, size=(n_states, n_states))
    return merge_states((joint + joint.T) / (2 * joint.sum()))


def linkage_of(merging):
    return linkage_from_merges(merging.pairs, neighbor_heights(merging.ratios))


def test_heights_are_logarithms_of_how_many_times_less_often_than_the_closest_pair():
    assert_allclose(neighbor_heights(np.array([2.0, 8.0, 1.0])), np.log([4.0, 1.0, 8.0]))
    assert_allclose(neighbor_heights(np.array([8.0, 0.01, 0.001, 0.0])), np.log([1.0, 800.0, 800.0, 800.0]))
    assert neighbor_heights(np.empty(0)).shape == (0,)
    for ratios in (np.array([-1.0]), np.array([np.inf]), np.ones((2, 2))):
        with pytest.raises(ValueError, match="`ratios` must be finite and not negative"):
            neighbor_heights(ratios)


def test_a_height_above_a_later_one_is_lowered_to_it():
    linkage = linkage_from_merges(np.array([[0, 3], [0, 1], [0, 2]]), np.array([5.0, 1.0, 2.0]))
    assert_array_equal(linkage, [[0, 3, 1.0, 2], [1, 4, 1.0, 3], [2, 5, 2.0, 4]])


@pytest.mark.parametrize("n_states", [1, 2, 3, 17, 40])
def test_cuts_are_the_clusters_of_the_merging(n_states):
    merging = random_merging(n_states, seed=n_states)
    linkage = linkage_of(merging)
    check_linkage(linkage)
    assert linkage.shape == (n_states - 1, 4)
    for n_clusters in range(1, n_states + 1):
        assert_array_equal(cut(linkage, n_clusters), merging.clusters(n_clusters))


def test_equal_heights_are_cut_in_their_order():
    linkage = linkage_from_merges(np.array([[2, 3], [0, 1], [0, 2]]), np.zeros(3))
    assert [cut(linkage, k).tolist() for k in (1, 2, 3, 4)] == [[0] * 4, [0, 0, 1, 1], [0, 1, 2, 2], [0, 1, 2, 3]]


def test_scipy_reads_it_and_agrees():
    linkage = linkage_of(random_merging(30))
    assert scipy_hierarchy.is_valid_linkage(linkage)
    assert scipy_hierarchy.is_monotonic(linkage)
    assert_array_equal(leaf_order(linkage), scipy_hierarchy.leaves_list(linkage))
    distinct = linkage.copy()
    distinct[:, 2] = np.arange(29)  # `fcluster` needs distinct heights
    for n_clusters in (2, 5, 29):
        # Not with "maxclust", which may return fewer clusters in scipy 1.14.
        theirs = scipy_hierarchy.fcluster(distinct, 29.5 - n_clusters, "distance")
        pairs = set(zip(cut(linkage, n_clusters).tolist(), theirs.tolist(), strict=True))
        assert len(pairs) == n_clusters == len(set(theirs))


def test_a_linkage_of_scipy_can_be_cut():
    linkage = scipy_hierarchy.linkage(np.array([[0.0], [10.0], [0.5], [11.0], [30.0]]), "ward")
    check_linkage(linkage)
    assert_array_equal(cut(linkage, 3), [0, 1, 0, 1, 2])


def test_members_of_each_cluster_are_side_by_side_in_the_order_of_the_leaves():
    linkage = linkage_of(random_merging(25))
    order = leaf_order(linkage)
    assert_array_equal(np.sort(order), np.arange(25))
    for n_clusters in (2, 6, 14):
        assert (np.diff(cut(linkage, n_clusters)[order]) != 0).sum() == n_clusters - 1


@pytest.mark.parametrize("n_leaves", [1, 2, 9, 20])
def test_the_upper_part_cuts_like_the_whole(n_leaves):
    linkage = linkage_of(random_merging(20))
    upper, leaf = truncate(linkage, n_leaves)
    check_linkage(upper)
    assert_array_equal(upper[:, 2], linkage[20 - n_leaves :, 2])
    for n_clusters in range(1, n_leaves + 1):
        assert_array_equal(cut(upper, n_clusters)[leaf], cut(linkage, n_clusters))


def test_one_state_is_one_leaf():
    linkage = np.empty((0, 4))
    check_linkage(linkage)
    assert cut(linkage, 1).tolist() == leaf_order(linkage).tolist() == [0]
    assert truncate(linkage, 1)[0].shape == (0, 4)


def test_bad_merges_are_refused():
    for pairs in ([[0, 0], [0, 1]], [[0, 1], [0, 1]], [[0, 1], [1, 2]], [[0, 3], [0, 1]]):
        with pytest.raises(ValueError, match="`pairs` must name two different clusters in each step"):
            linkage_from_merges(np.array(pairs), np.zeros(2))
    with pytest.raises(ValueError, match="must have shapes"):
        linkage_from_merges(np.array([[0, 1]]), np.zeros(2))
    with pytest.raises(ValueError, match="`heights` must be finite"):
        linkage_from_merges(np.array([[0, 1]]), np.array([np.nan]))


@pytest.mark.parametrize("n_clusters", [0, 5])
def test_bad_numbers_of_clusters_are_refused(n_clusters):
    linkage = linkage_from_merges(np.array([[0, 1], [0, 2], [0, 3]]), np.arange(3.0))
    for function in (cut, truncate):
        with pytest.raises(ValueError, match=f"`n_clusters` must be from 1 to 4, got {n_clusters}"):
            function(linkage, n_clusters)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((0, 0), 5.0, "merge each cluster once"),  # not made yet
        ((1, 0), 0.0, "merge each cluster once"),  # merged before
        ((0, 0), 0.5, "merge each cluster once"),
        ((0, 2), 7.0, "not be negative or decrease"),
        ((0, 2), -1.0, "not be negative or decrease"),
        ((2, 2), np.nan, "must be finite"),
        ((2, 3), 3.0, "numbers of states"),
    ],
)
def test_what_is_no_linkage_is_refused(place, value, message):
    linkage = linkage_from_merges(np.array([[0, 1], [2, 3], [0, 2]]), np.arange(3.0))
    linkage[place] = value
    with pytest.raises(ValueError, match=message):
        check_linkage(linkage)
    with pytest.raises(ValueError, match="shape"):
        check_linkage(np.zeros((3, 3)))
