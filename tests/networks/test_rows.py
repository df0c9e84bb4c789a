"""Preprocessing of rows: a reduction, and unit length."""

import torch
from torch.testing import assert_close

from neuralbayes.networks.rows import RowLayer


def test_by_default_rows_stay_what_they_are():
    x = torch.randn(3, 2, 4)
    assert RowLayer()(x) is x
    assert_close(RowLayer()(torch.eye(3).to_sparse()), torch.eye(3))


def test_sparse_and_dense_rows_are_reduced_alike():
    x = torch.randn(5, 7, dtype=torch.float64) * (torch.rand(5, 7) < 0.4)
    layer = RowLayer(torch.randn(7, 3, dtype=torch.float64), unit=True)
    assert_close(layer(x.to_sparse()), layer(x))
    assert_close(layer(3.0 * x), layer(x))


def test_the_reduction_is_saved_and_unit_length_has_nothing_to_save():
    assert list(RowLayer(torch.eye(2), unit=True).state_dict()) == ["reduction"]
    assert not RowLayer(unit=True).state_dict()


def test_rows_of_zeros_stay_finite():
    assert_close(RowLayer(unit=True)(torch.zeros(1, 4)), torch.zeros(1, 4, dtype=torch.float64))
