"""Data that look disjoint but are not must not be certified."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from neuralbayes import ManifoldLabeler
from neuralbayes.data.toys import make_blobs, make_moons, make_ring

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def beside(column, n=300, seed=0):
    """Three Gaussian columns that form one piece, and another column."""
    rng = np.random.RandomState(seed)
    return np.column_stack([rng.standard_normal((n, 3)), column(n, rng)])


DISCRETE = {
    "boolean": lambda n, rng: rng.uniform(size=n) < 0.3,
    "year": lambda n, rng: rng.randint(1990, 2021, n),
    "code": lambda n, rng: rng.choice([101, 102, 205, 300, 999], n),
    "ids": lambda n, rng: np.arange(n) + np.where(np.arange(n) < n // 2, 0, 5 * n),
    "zip": lambda n, rng: np.where(rng.uniform(size=n) < 0.4, 90_000, 10_000) + rng.randint(0, 5000, n),
    "half zeros": lambda n, rng: np.where(rng.uniform(size=n) < 0.5, 0.0, 5.0 + rng.lognormal(size=n)),
    "sentinel": lambda n, rng: np.where(np.arange(n) % 20 == 0, -999.0, rng.standard_normal(n)),
    "one-hot": lambda n, rng: np.eye(3)[rng.randint(0, 3, n)],
}


@pytest.mark.parametrize("n_clusters", [2, "auto"])
@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kind", DISCRETE)
def test_a_division_that_a_discrete_column_makes_is_not_certified(kind, standardize, n_clusters):
    X = beside(DISCRETE[kind])
    labeler = ManifoldLabeler(n_clusters, standardize=standardize, random_state=0).fit(X)
    assert not labeler.disjoint_.any()
    if n_clusters == "auto":
        assert labeler.n_clusters_ == 1


def test_the_column_behind_a_division_is_named():
    X = pd.DataFrame(beside(lambda n, rng: 10.0 * (rng.uniform(size=n) < 0.4)), columns=["a", "b", "c", "smoker"])
    with pytest.warns(ConvergenceWarning, match="smoker"):
        labeler = ManifoldLabeler(2, random_state=0).fit(X)
    assert labeler.discrete_columns_ == [3]
    with pytest.warns(ConvergenceWarning, match="smoker"):
        ManifoldLabeler("auto", random_state=0).fit(X)
    with pytest.warns(ConvergenceWarning, match="x3"):
        ManifoldLabeler(2, random_state=0).fit(X.to_numpy())


def test_only_columns_behind_a_division_are_named_rounded_ones_too():
    rng = np.random.RandomState(0)
    beside_another = [rng.standard_normal((400, 2)), 6.0 * (rng.uniform(size=400) < 0.4), rng.uniform(size=400) < 0.5]
    assert ManifoldLabeler(2, random_state=0).fit(np.column_stack(beside_another)).discrete_columns_ == [2]
    rounded = np.column_stack([rng.randint(0, 30, 1200), 0.01 * rng.standard_normal(1200)])
    assert ManifoldLabeler(2, random_state=0).fit(rounded).discrete_columns_ == [0]


def test_numbers_are_tried_until_two_fail():
    ring = ManifoldLabeler("auto", random_state=0).fit(make_ring(400, random_state=0)[0])
    assert ring.selection_["n_clusters"] == [2, 3]
    X, _ = make_blobs(300, n_blobs=4, scale=0.05, random_state=0)
    assert ManifoldLabeler("auto", random_state=0).fit(X).selection_["n_clusters"] == [2, 3, 4, 5, 6]


def test_a_division_that_other_columns_make_too_is_certified():
    X, _ = make_moons(400, random_state=0)
    boolean = np.random.RandomState(0).uniform(size=400) < 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labeler = ManifoldLabeler(2, random_state=0).fit(np.column_stack([X, 0.01 * boolean]))
    assert labeler.disjoint_.all()
    assert labeler.discrete_columns_ == []


def test_rounding_does_not_take_a_certificate_away():
    X, _ = make_blobs(400, random_state=0)
    assert ManifoldLabeler(3, random_state=0).fit(np.round(X * 20)).disjoint_.all()


def spiral(rng):
    """Its turns are as far apart as two arms would be, and its rows have uneven distances."""
    radius = np.sqrt(rng.uniform(0.25, 16.0, 600))
    return radius[:, None] * np.column_stack([np.cos(2 * np.pi * radius), np.sin(2 * np.pi * radius)])


ONE_PIECE = {
    "duplicates": lambda rng: np.r_[np.repeat(rng.standard_normal((1, 3)), 40, axis=0), rng.standard_normal((260, 3))],
    "heavy tails": lambda rng: rng.standard_normal((200, 2)) / np.sqrt(rng.chisquare(2, 200) / 2).reshape(-1, 1),
    "spiral": spiral,
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ONE_PIECE)
def test_a_division_of_one_piece_is_not_certified(kind, seed):
    X = ONE_PIECE[kind](np.random.RandomState(seed))
    for n_clusters in (2, "auto"):
        assert not ManifoldLabeler(n_clusters, random_state=seed).fit(X).disjoint_.any()


def test_too_few_neighbours_certify_nothing():
    X = np.random.RandomState(0).standard_normal((300, 2))  # which two neighbours divide, as they do any data
    assert not ManifoldLabeler(2, n_neighbors=2, random_state=0).fit(X).disjoint_.any()


def test_many_rows_are_certified_on_others_than_those_fitted_and_the_null_is_below():
    X, _ = make_moons(1000, random_state=0)
    labeler = ManifoldLabeler(2, max_samples=400, random_state=0).fit(X)
    assert labeler.disjoint_.all()
    assert 0.0 < labeler.null_separation_ < labeler.separation_.min()
