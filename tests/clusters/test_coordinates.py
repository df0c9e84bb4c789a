"""Coordinates for typicality, and how many samples they need."""

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from neuralbayes.clusters.coordinates import Coordinates, fit_typicality
from neuralbayes.networks.states import StateNetwork


def network_of(X, *, own=False):
    d = X.shape[1]
    basis = torch.full((d,), 0.5) if own else 0.5 * torch.eye(d)
    return StateNetwork(torch.from_numpy(X.mean(axis=0)), basis.double(), nn.Identity(), torch.eye(1))


def coordinates_of(X, **options):
    network = network_of(X, **options)
    read = torch.from_numpy(X)
    found = Coordinates.fit(lambda rows: read[rows], np.arange(len(X)), network, 2, np.random.RandomState(0))
    return found, found(network, read)


def test_a_bounded_number_of_samples_is_read():
    X = np.random.RandomState(0).normal(size=(200_000, 2))
    read = set()

    def note(rows):
        read.update(rows.tolist())
        return torch.from_numpy(X[rows])

    seen = np.arange(len(X)) < 60_000
    _, typicality = fit_typicality(note, seen, network_of(X), 64, np.random.RandomState(0))
    assert len(typicality.reference) == 20_000
    assert len(typicality.scores) == 5000
    assert len(read) == 25_000


def test_rows_of_different_lengths_are_in_the_coordinates_of_the_network():
    X = np.random.RandomState(0).normal(size=(50, 3))
    found, points = coordinates_of(X)
    assert found.length == 0.0
    assert_allclose(points, (X - X.mean(axis=0)) / 2, atol=1e-6)


def test_a_network_of_ones_own_has_principal_components():
    X = np.random.RandomState(0).normal(size=(500, 5)) * [9.0, 1e-3, 1e-3, 5.0, 1e-3]
    found, points = coordinates_of(X, own=True)
    assert found.components.shape == (5, 2)
    assert_allclose(np.abs(points), np.abs(X - X.mean(axis=0))[:, [0, 3]] / 2, rtol=0.1, atol=0.3)


def test_rows_of_one_length_get_unit_length_and_what_their_length_is_beyond():
    X = np.random.RandomState(0).normal(size=(500, 3))
    X *= 7.0 / np.linalg.norm(X, axis=1, keepdims=True)
    found, points = coordinates_of(X)
    assert_allclose(found.length, 7.0)
    assert_allclose(np.linalg.norm(points[:, :-1], axis=1), 1.0)
    assert_allclose(points[:, -1], 0.0, atol=1e-12)
    assert_allclose(found(network_of(X), torch.from_numpy(3.0 * X[:1]))[0, -1], 2.0)


@pytest.mark.parametrize("origin", [1e3, 1e6])
def test_lengths_that_only_the_origin_makes_equal_are_different(origin):
    assert coordinates_of(np.random.RandomState(0).normal(size=(500, 3)) + origin)[0].length == 0.0
