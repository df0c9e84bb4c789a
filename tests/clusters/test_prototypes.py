"""Members from prototypes to outliers, against a slow loop."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from neuralbayes.clusters import prototypes as module
from neuralbayes.clusters.prototypes import rank_members


@pytest.mark.parametrize("size", [2, 3, 8, 21])
def test_members_are_ranked_by_the_mean_distance_to_the_nearer_half_of_their_cluster(size):
    x = np.random.RandomState(size).normal(size=(size, 3))
    distances = np.sqrt(np.square(x[:, None] - x).sum(axis=2))
    spread = [np.sort(np.delete(row, i))[: size // 2].sum() for i, row in enumerate(distances)]
    ranked = rank_members(x, np.zeros(size, int), 1, np.random.RandomState(0))[0]
    assert_array_equal(ranked, np.argsort(np.round(spread, 9), kind="stable"))


def test_the_centre_is_first_and_outliers_are_last():
    rng = np.random.RandomState(0)
    x = np.r_[rng.normal(size=(300, 2)), [[0.0, 0.0], [40.0, 0.0], [0.0, -60.0]]]
    ranked = rank_members(x, np.zeros(303, int), 1, rng)[0]
    assert ranked[-2:].tolist() == [301, 302]
    assert np.linalg.norm(x[ranked[:10]], axis=1).max() < 0.8
    assert_array_equal(np.sort(ranked), np.arange(303))


def test_each_row_is_ranked_in_its_own_cluster():
    x = np.array([[0.0], [5.0], [0.1], [5.1], [0.4], [9.0]])
    ranked = rank_members(x, np.array([0, 2, 0, 2, 0, -1]), 4, np.random.RandomState(0))
    assert [members.tolist() for members in ranked] == [[0, 2, 4], [], [1, 3], []]


def test_distances_are_taken_to_a_bounded_number_of_members(monkeypatch):
    rng = np.random.RandomState(0)
    x = np.r_[rng.normal(size=(500, 2)), [[40.0, 0.0]]]
    monkeypatch.setattr(module, "MAX_MEMBERS", 50)
    seen = []
    chunked = module.pairwise_distances_chunked

    def recorded(x, drawn, **rest):
        seen.append(len(drawn))
        return chunked(x, drawn, **rest)

    monkeypatch.setattr(module, "pairwise_distances_chunked", recorded)
    ranked = rank_members(x, np.zeros(501, int), 1, rng)[0]
    assert seen == [50]
    assert ranked[-1] == 500
    assert np.linalg.norm(x[ranked[:10]], axis=1).max() < 1.0


def test_bad_input_is_refused():
    rng = np.random.RandomState(0)
    with pytest.raises(ValueError, match="must have shapes"):
        rank_members(np.zeros((3, 2)), np.zeros(2, int), 1, rng)
    for label in (-2, 2):
        with pytest.raises(ValueError, match="`labels` must be from -1 to 1"):
            rank_members(np.zeros((1, 2)), np.array([label]), 2, rng)
    assert [len(members) for members in rank_members(np.zeros((0, 2)), np.zeros(0, int), 2, rng)] == [0, 0]
