"""The sample of rows that a fit uses."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from paper.toys import rotate_into

from neuralbayes.data import toys
from neuralbayes.manifolds.descent import n_held_out
from neuralbayes.manifolds.geometry import Geometry, Options
from neuralbayes.objectives import DML

OPTIONS = Options(
    beta=3e-4,
    n_init=8,
    n_neighbors=15,
    n_hidden=128,
    max_iter=60,
    tol=1e-3,
    max_samples=600,
    standardize=False,
    verbose=False,
    objective=DML(),
)


@pytest.fixture(scope="module")
def geometry():
    X = rotate_into(toys.make_moons(600, random_state=0)[0], 100, 0)
    return Geometry(X, OPTIONS, np.random.RandomState(0))


def test_the_span_is_found_and_is_an_isometry_up_to_scale(geometry):
    assert geometry.points.shape == (600, 2)
    ratio = np.linalg.norm(geometry.points[:300] - geometry.points[300:], axis=1) / np.linalg.norm(
        geometry.sample[:300] - geometry.sample[300:], axis=1
    )
    assert_allclose(ratio, ratio[0], rtol=1e-9)
    assert_allclose((geometry.points**2).sum(axis=1).mean(), 1.0)


def test_a_span_wider_than_the_sample_is_found_too():
    X = np.random.RandomState(0).standard_normal((50, 200))
    geometry = Geometry(X, OPTIONS, np.random.RandomState(0))
    assert geometry.points.shape == (50, 49)
    distance = np.linalg.norm(geometry.sample[0] - geometry.sample[1:], axis=1)
    assert_allclose(np.linalg.norm(geometry.points[0] - geometry.points[1:], axis=1) / distance, 1 / 14, rtol=0.2)


def test_roughness_is_the_mean_squared_change_along_the_edges(geometry):
    """R_c of each mode, summed over the edges one by one."""
    values = geometry.values
    edges = geometry.graph.weight.tocoo()
    change = (values[edges.row] - values[edges.col]) ** 2 * edges.data[:, None]
    expected = change.sum(axis=0) / 2.0 / geometry.graph.degree.sum()
    ridge = 1e-5 * (geometry.modes[:-1] ** 2).sum(axis=0) + 1e-9 * geometry.modes[-1] ** 2
    assert_allclose(geometry.roughness[1:], (expected + ridge)[1:], rtol=1e-4)
    assert (np.diff(geometry.roughness) >= 0).all()


def test_modes_are_orthonormal_over_the_sample(geometry):
    values = geometry.values[:, :20]
    assert_allclose(values.T @ values / len(values), np.eye(20), atol=1e-6)


def test_the_first_mode_is_constant_and_the_second_tells_the_moons_apart(geometry):
    values = geometry.values
    moon = toys.make_moons(600, random_state=0)[1][geometry.rows]
    assert np.ptp(values[:, 0]) < 1e-3 * np.abs(values[:, 0]).mean()
    one, other = values[moon == 0, 1], values[moon == 1, 1]
    assert one.max() < other.min() or other.max() < one.min()


def test_a_fifth_of_the_rows_is_held_out_unless_they_are_few():
    assert [n_held_out(n) for n in (2, 49, 50, 54, 55, 1000)] == [0, 0, 10, 10, 11, 200]
