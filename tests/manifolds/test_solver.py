"""Linear systems of a random walk."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.manifolds import solver
from neuralbayes.manifolds.graph import NeighborGraph
from neuralbayes.manifolds.solver import Solver


def system(n_dimensions, n=150):
    graph = NeighborGraph(np.random.RandomState(0).standard_normal((n, n_dimensions)), 10)
    return 1.01 * graph.degree, graph.weight


@pytest.mark.parametrize("max_band", [solver.MAX_BAND, 0], ids=["band", "sparse factors"])
@pytest.mark.parametrize("n_dimensions", [1, 2, 12])
def test_solutions_are_those_of_the_dense_system(n_dimensions, max_band, monkeypatch):
    monkeypatch.setattr(solver, "MAX_BAND", max_band)
    diagonal, weight = system(n_dimensions)
    b = np.random.RandomState(1).standard_normal((150, 3))
    expected = np.linalg.solve(np.diag(diagonal) - weight.toarray(), b)
    given = b.copy()
    assert_allclose(Solver(diagonal, weight)(given), expected, rtol=1e-9, atol=1e-12)
    assert_array_equal(given, b)


def test_nothing_passes_between_parts_that_no_edge_joins():
    diagonal, weight = system(2)
    solve = Solver(np.tile(diagonal, 2), sp.block_diag([weight, weight], format="csr"))
    solved = solve(np.repeat([1.0, 0.0], 150)[:, None]).ravel()
    assert (solved[:150] > 0.0).all()
    assert_array_equal(solved[150:], 0.0)


def test_points_without_edges_are_solved_too():
    assert_allclose(Solver(np.array([2.0, 4.0]), sp.csr_matrix((2, 2)))(np.ones((2, 1))), [[0.5], [0.25]])


def test_a_system_that_is_not_positive_definite_is_refused():
    with pytest.raises(ValueError, match="`diagonal` must be larger"):
        Solver(np.ones(2), sp.csr_matrix([[0.0, 2.0], [2.0, 0.0]]))
