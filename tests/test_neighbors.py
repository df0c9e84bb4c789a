"""The search for neighbours, without the point itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

from neuralbayes.neighbors import nearest_neighbors


@pytest.fixture(params=[3, 40])
def points(request):
    return np.random.RandomState(0).standard_normal((500, request.param))


def test_neighbours_are_the_nearest_and_no_point_is_its_own(points):
    distances, found = nearest_neighbors(points, 4)
    expected_distances, expected = NearestNeighbors(n_neighbors=5, algorithm="brute").fit(points).kneighbors()
    assert_array_equal(found, expected[:, :4])
    assert_allclose(distances, expected_distances[:, :4])
    assert nearest_neighbors(points, 4, n_queries=9)[1].shape == (9, 4)


def test_queries_may_be_points(points):
    assert_array_equal(nearest_neighbors(points, 1, queries=points[5:9])[1].ravel(), [5, 6, 7, 8])


def test_points_that_coincide_are_neighbours_at_no_distance(points):
    distances, found = nearest_neighbors(np.repeat(points[:60], 4, axis=0), 3)
    assert_allclose(distances, 0.0, atol=1e-6)
    assert (found != np.arange(240)[:, None]).all()
