"""Certify manifolds, or else find clusters: what "auto" decides."""

import numpy as np
import pytest

import neuralbayes as nb
from neuralbayes.data import toys


def beside_a_gap(n, apart, rng):
    """Two clusters `apart` from each other, and a third far from both."""
    centers = np.repeat([[0.0, 0.0, 0.0], [apart, apart, 0.0], [0.0, 0.0, 60.0]], n, axis=0)
    return centers + rng.standard_normal((3 * n, 3))


def test_clusters_inside_certified_manifolds_tell_more_than_these():
    X = beside_a_gap(200, 4.0, np.random.default_rng(0))
    result = nb.cluster(X)
    assert (result.n_clusters, result.verdict) == (3, "clusters")
    assert "2 certified disjoint manifolds" in result.notes[-1]
    assert (nb.cluster(X, method="manifolds").n_clusters, nb.cluster(X, 2).verdict) == (2, "disjoint")


def test_manifolds_that_hold_no_clusters_stay_certified():
    result = nb.cluster(beside_a_gap(200, 0.0, np.random.default_rng(0)))
    assert (result.n_clusters, result.verdict, result.notes) == (2, "disjoint", [])


@pytest.mark.parametrize("make", [toys.make_moons, toys.make_circles, toys.make_spirals])
def test_pieces_of_manifolds_are_not_clusters_inside_them(make):
    assert nb.cluster(make(random_state=1)[0]).verdict == "disjoint"
