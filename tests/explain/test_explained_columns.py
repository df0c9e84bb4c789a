"""Columns of a data frame for explanations: kinds, bins, missing cells, names of rows."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.explain.columns import N_BINS, N_LEVELS, OTHERS, as_cells, column_information, row_names, standardized


def column_of(cells, name="column"):
    return as_cells(pd.DataFrame({name: cells}))[0]


@pytest.mark.parametrize(
    ("cells", "name", "wanted"),
    [
        ([1.5, 2.5, 3.5], "height", "number"),
        ([True, False, None], "active", "category"),
        (["a", "b", "a"], "kind", "category"),
        (pd.to_datetime(["2020-01-01", "2021-05-05", "2022-01-01"]), "day", "date"),
        (pd.to_datetime(["2020-01-01", "2021-05-05", None]).tz_localize("Asia/Tokyo"), "day", "date"),
        (pd.to_timedelta([1, 2, 5], unit="h"), "wait", "number"),
        ([f"name {i}" for i in range(50)], "name", "text"),
        (["31/01/2024", "01/02/2024", "15/06/2024"], "day", "date"),
        ([np.inf] * 10, "endless", "text"),
        ([10**400 + i for i in range(20)], "huge", "text"),
        (["cm"] * 5, "unit", "text"),
        (pd.array([1, None, 3, 4], dtype="Int64"), "count", "number"),
    ],
)
def test_kinds_of_columns(cells, name, wanted):
    assert column_of(cells, name).kind == wanted


def test_missing_cells_have_the_last_bin_whatever_they_look_like():
    column = column_of([30.5, np.nan, np.inf, *np.linspace(31.0, 60.0, 30)])
    assert np.flatnonzero(column.missing).tolist() == [1, 2]
    assert column.bins[:4].tolist() == [0, 31, 31, 1]
    text = column_of(["Bonn", None, "  ", " Bonn", "Trier"])
    assert text.levels == ["Bonn", "Trier"]
    assert text.missing.tolist() == [False, True, True, False, False]


def test_bins_of_many_numbers_hold_equal_shares_and_their_edges_divide_them():
    values = np.random.default_rng(0).normal(size=5000)
    column = column_of(values)
    assert column.n_bins == N_BINS
    counts = np.bincount(column.bins, minlength=N_BINS + 1)
    assert counts[-1] == 0
    assert counts[:-1].min() >= 83
    assert counts[:-1].max() <= 84
    for b, edge in enumerate(column.edges):
        np.testing.assert_array_equal(values > edge, column.bins > b)


def test_of_many_values_the_commonest_are_told_apart():
    cells = [f"v{i}" for i in range(N_LEVELS + 20) for _ in range(N_LEVELS + 22 - i)]
    column = column_of(cells)
    assert column.levels[0] == "v0"
    assert column.levels[-1] == OTHERS
    assert len(column.levels) == N_LEVELS + 1


def test_row_numbers_constants_and_sparse_notes_name_no_rows():
    frame = pd.DataFrame(
        {
            "x": np.linspace(0, 1, 60),
            "unit": ["cm"] * 60,
            "note": [f"note {i}" if i % 4 == 0 else None for i in range(60)],
            "customer_id": [f"C{i}" for i in range(60)],
        }
    )
    some = frame.iloc[[3, 9, 20, 21, 40]]
    assert row_names(some, as_cells(some)) == ["C3", "C9", "C20", "C21", "C40"]
    assert row_names(frame.drop(columns="customer_id"), as_cells(frame.drop(columns="customer_id"))) is None
    assert row_names(some.rename_axis("number"), as_cells(some))[0] == "3"


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([np.nan, np.nan], [0.0, 0.0]),
        ([1.0, np.nan, 3.0], [-1.0, np.nan, 1.0]),
        ([2.0, 2.0], [0.0, 0.0]),
        ([1e308, -1e308], [1.0, -1.0]),
    ],
)
def test_standardized_numbers_keep_missing_cells_and_do_not_overflow(values, wanted):
    np.testing.assert_allclose(standardized(np.array(values)), wanted)


def test_information_is_that_about_members_and_noise_has_none():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, -1], 500)
    column = column_of(labels + rng.random(1000) / 2)
    np.testing.assert_allclose(column_information(column, labels, 1), np.log(2), atol=0.01)
    assert not column_information(column, rng.integers(0, 3, 1000), 3).any()
    assert not column_information(column, np.zeros(1000, int), 1).any()
