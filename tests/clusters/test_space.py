"""Scaled columns, rows in units of their noise, the rounding of columns, and the reduction of sparse rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from scipy.stats import norm, rankdata

from neuralbayes.clusters.space import Frame, fit_reduction, make_space, rounding_variance, scalings

WEIGHT = np.random.RandomState(1).randint(1, 4, size=200).astype(float)


@pytest.fixture
def rng():
    return np.random.RandomState(0)


def test_a_boolean_is_all_rounding_and_a_measurement_has_none(rng):
    X = np.column_stack([rng.randint(2, size=1000), rng.randint(5, size=1000), rng.standard_normal(1000)])
    assert_allclose(rounding_variance(X)[:2], 1 / 12)
    assert rounding_variance(X)[2] < 0.01
    assert_allclose(rounding_variance(np.array([[0.0], [1.0], [3.0]])), (1 + 1.5**2 + 4) / 36)


def test_a_direction_along_which_all_clusters_are_wide_is_made_narrow(rng):
    X = rng.standard_normal((600, 8)) * np.r_[10.0, np.ones(7)]
    X[300:, 1] += 8.0  # two clusters next to each other along a narrow direction
    space, basis = make_space(X - X.mean(axis=0), rng)
    y = np.repeat([0, 1], 300)

    def spread(points):
        within = np.mean([points[y == k].var(axis=0).sum() for k in (0, 1)])
        return within / points.var(axis=0).sum()

    assert spread(space.denoised) < 0.92 * spread(space.points)
    assert_allclose((X - X.mean(axis=0)) @ basis, space.points)


@pytest.mark.parametrize("weight", [None, WEIGHT])
def test_every_scaling_has_mean_0_and_deviation_1_and_constants_are_0(rng, weight):
    X = np.column_stack([rng.exponential(size=200), rng.randint(2, size=200), np.full(200, 7.0)])
    for scaled in scalings(X, weight)[0].values():
        assert_allclose(np.average(scaled, axis=0, weights=weight), 0.0, atol=1e-12)
        assert_allclose(np.sqrt(np.average(scaled**2, axis=0, weights=weight)), [1.0, 1.0, 0.0], atol=1e-12)


def test_the_scalings_are_the_formulas(rng):
    x = np.exp(rng.standard_normal(101))  # the quartiles of 101 values are values
    scaled, frame = scalings(x[:, None])

    def unit(values):
        return (values - values.mean()) / values.std()

    low, median, high = np.interp([0.25, 0.5, 0.75], (np.arange(101) + 0.5) / 101, np.sort(x))
    expected = {
        "standard": unit(x),
        "clipped": unit(np.clip(unit(x), -2.5, 2.5)),
        "compressed": unit(np.arcsinh((x - median) / ((high - low) / 1.349))),
        "ranked": unit(norm.ppf((rankdata(x) - 0.5) / 101)),
    }
    for name, values in expected.items():
        assert_allclose(scaled[name][:, 0], values, atol=1e-10, err_msg=name)
    assert_allclose(frame(x[:, None])[:, 0], expected["clipped"], atol=1e-10)


def test_a_column_of_two_values_is_the_same_in_all_scalings_and_chosen_widths_are_kept(rng):
    X = np.column_stack([rng.uniform(size=300) < 0.1, 3.0 * rng.standard_normal(300)]).astype(float)
    two = [scaled[:, 0] for scaled in scalings(X)[0].values()]
    for other in two:
        assert_allclose(other, two[0])
    kept, frame = scalings(X, keep_scale=True)
    for scaled in kept.values():
        assert_allclose(scaled.std(axis=0), X.std(axis=0))
    assert_allclose(frame(X), kept["clipped"])


def test_a_row_of_weight_two_counts_as_two(rng):
    X = rng.exponential(size=(200, 3)).round(1)
    rows = np.repeat(np.arange(200), WEIGHT.astype(int))
    weighted, frame = scalings(X, WEIGHT)
    repeated, other = scalings(X[rows])
    for name, scaled in weighted.items():
        assert_allclose(scaled[rows], repeated[name], atol=1e-10)
    assert_allclose(frame(X), other(X))


def test_a_frame_is_restored_from_its_arrays_and_refuses_others(rng):
    X = rng.standard_normal((50, 4))
    frame = scalings(X)[1].after(None, unit=True)
    assert_allclose(Frame.from_arrays(frame.arrays())(X), frame(X))
    with pytest.raises(ValueError, match="basis"):
        Frame.from_arrays({**frame.arrays(), "basis": np.ones((3, 2))})


def test_a_value_that_stands_for_missing_ones_counts_as_the_nearest_other(rng):
    rows = rng.normal(size=(300, 2))
    missing = rows.copy()
    missing[::10, 0] = -999.0
    least = missing[missing[:, 0] > -999.0, 0].min()
    scaled, frame = scalings(missing)
    bounded, _ = scalings(missing.clip([least, -np.inf]))
    assert frame.lower[0] >= least
    for name, x in scaled.items():
        assert_allclose(x, bounded[name])
    alone = np.append(rows[:, :1], [[-999.0]], axis=0)  # an outlier is not shared by several rows
    assert frame.lower[0] > scalings(alone)[1].lower[0]


def sparse_rows(rank, rng):
    left, right = rng.standard_normal((80, rank)), rng.standard_normal((rank, 60)) * (rng.uniform(size=60) < 0.5)
    return sp.csr_array(left @ right)


def test_rows_of_low_rank_lose_nothing(rng):
    rows = sparse_rows(5, rng)
    reduction = fit_reduction(rows, np.arange(80), 20, rng)
    assert reduction.shape == (60, 5)  # singular vectors that are only rounding are left out
    assert_allclose(rows @ reduction @ reduction.T, rows.toarray(), atol=1e-9)
    assert fit_reduction(sp.csr_array((5, 9)), np.arange(5), 3, rng).shape == (9, 1)  # zeros only


def test_a_sparse_row_of_weight_two_counts_as_two(rng):
    rows = sparse_rows(6, rng)
    weight = rng.randint(1, 4, size=80)
    repeated = rows[np.repeat(np.arange(80), weight)]
    one = fit_reduction(rows, np.arange(80), 6, rng, weight=weight.astype(float))
    other = fit_reduction(repeated, np.arange(repeated.shape[0]), 6, rng)
    assert_allclose(np.abs(one), np.abs(other), atol=1e-6)


def test_directions_alone_count_with_unit(rng):
    rows = sparse_rows(6, rng)
    long = sp.diags_array(np.geomspace(1e-3, 1e3, 80)) @ rows
    one, other = (fit_reduction(x.tocsr(), np.arange(80), 3, np.random.RandomState(0), unit=True) for x in (rows, long))
    assert_allclose(one @ one.T, other @ other.T, atol=1e-6)
