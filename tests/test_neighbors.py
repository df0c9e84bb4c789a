"""The search for neighbours: with trees, with matrix products, and without the point itself."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.neighbors import NearestNeighbors

from neuralbayes import neighbors
from neuralbayes.neighbors import Products, nearest_neighbors

CASES = {
    "normal": lambda x: x,
    "float32": lambda x: x.astype(np.float32),
    "far from the origin": lambda x: x + 1e4,
    "clusters of very different size": lambda x: x * np.where(np.arange(len(x)) % 2, 1.0, 1e-6)[:, None],
    "too large for float32": lambda x: 1e100 * x,
    "one point too large for float32": lambda x: np.where(np.arange(len(x))[:, None] == 7, 1e60, x),
}


@pytest.fixture
def points():
    return np.random.RandomState(0).standard_normal((2000, 20))


@pytest.fixture
def always_products(monkeypatch):
    monkeypatch.setattr(neighbors, "MANY_POINTS", 0)


def slow(points, queries, k):
    return NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points).kneighbors(queries)


@pytest.mark.parametrize("change", CASES.values(), ids=CASES.keys())
def test_products_find_what_scikit_learn_finds(points, change):
    changed = change(points)
    distances, found = Products(changed).kneighbors(changed[:300], 6)
    expected_distances, expected = slow(changed.astype(float), changed[:300].astype(float), 6)
    assert_array_equal(found[:, 1:], expected[:, 1:])
    assert_allclose(distances[:, 1:], expected_distances[:, 1:], rtol=1e-6)


def test_duplicates_are_at_no_distance(points):
    distances, _ = Products(np.repeat(points[:150], 4, axis=0)).kneighbors(points[:150], 5)
    assert_array_equal(distances[:, :4], 0.0)
    assert (distances[:, 4] > 0.0).all()


def test_what_rounding_may_have_hidden_is_searched_again(points, monkeypatch):
    inner, asked = NearestNeighbors.kneighbors, []
    monkeypatch.setattr(NearestNeighbors, "kneighbors", lambda self, X: asked.append(len(X)) or inner(self, X))
    Products(points).kneighbors(points, 6)
    assert not asked
    tight = CASES["clusters of very different size"](points)
    Products(tight).kneighbors(tight, 6)
    assert asked[0] >= 1000


def test_few_dimensions_and_few_points_are_left_to_scikit_learn(points, monkeypatch):
    monkeypatch.setattr(neighbors, "Products", None)
    nearest_neighbors(points, 3)
    monkeypatch.setattr(neighbors, "MANY_POINTS", 0)
    nearest_neighbors(points[:, :15], 3)


@pytest.mark.usefixtures("always_products")
def test_no_point_is_its_own_neighbour(points):
    distances, found = nearest_neighbors(points, 4)
    assert_array_equal(found, slow(points, points, 5)[1][:, 1:])
    assert (np.diff(distances, axis=1) >= 0).all()
    assert nearest_neighbors(points, 4, n_queries=9)[1].shape == (9, 4)


@pytest.mark.usefixtures("always_products")
def test_queries_may_be_points(points):
    assert_array_equal(nearest_neighbors(points, 1, queries=points[5:9])[1].ravel(), [5, 6, 7, 8])
