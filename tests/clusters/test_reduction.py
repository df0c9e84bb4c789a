"""Sparse rows of many columns, reduced to dense rows of few columns."""

import numpy as np
import scipy.sparse as sp
from numpy.testing import assert_allclose

from neuralbayes.clusters.space import fit_reduction


def sparse_rows(rank, rng):
    left, right = rng.standard_normal((80, rank)), rng.standard_normal((rank, 60)) * (rng.uniform(size=60) < 0.5)
    return sp.csr_array(left @ right)


def test_rows_of_low_rank_lose_nothing():
    rng = np.random.RandomState(0)
    rows = sparse_rows(5, rng)
    reduction = fit_reduction(rows, np.arange(80), 20, rng)
    assert reduction.shape == (60, 5)  # singular vectors that are only rounding are left out
    assert_allclose(rows @ reduction @ reduction.T, rows.toarray(), atol=1e-9)


def test_a_row_of_weight_two_counts_as_two():
    rng = np.random.RandomState(0)
    rows = sparse_rows(6, rng)
    weight = rng.randint(1, 4, size=80)
    repeated = rows[np.repeat(np.arange(80), weight)]
    one = fit_reduction(rows, np.arange(80), 6, rng, weight=weight.astype(float))
    other = fit_reduction(repeated, np.arange(repeated.shape[0]), 6, rng)
    assert_allclose(np.abs(one), np.abs(other), atol=1e-6)


def test_directions_alone_count_with_unit():
    rng = np.random.RandomState(0)
    rows = sparse_rows(6, rng)
    long = sp.diags_array(np.geomspace(1e-3, 1e3, 80)) @ rows
    one, other = (fit_reduction(x.tocsr(), np.arange(80), 3, np.random.RandomState(0), unit=True) for x in (rows, long))
    assert_allclose(one @ one.T, other @ other.T, atol=1e-6)


def test_rows_of_zeros_have_a_reduction():
    assert fit_reduction(sp.csr_array((5, 9)), np.arange(5), 3, np.random.RandomState(0)).shape == (9, 1)
