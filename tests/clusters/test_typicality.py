"""Typicality: values by hand, the conformal guarantee, and rows that are few, equal, far away or not finite."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.clusters import typicality as module
from neuralbayes.clusters.typicality import FLOOR, LOCAL, Typicality, reject_atypical, split_rows


def fit(points, rng):
    reference, calibration = split_rows(np.ones(len(points), bool), rng)
    return Typicality.fit(points[reference], points[calibration])


def fitted(n=400, d=3, seed=0):
    rng = np.random.RandomState(seed)
    return fit(rng.normal(size=(n, d)), rng)


def slow_scores(typicality, points):
    """Compute s(x) with loops over the reference rows, from the equation of the module."""
    reference = typicality.reference.astype(np.float64)
    k = module.N_NEIGHBORS

    def log_distances(x, others):
        distance = sorted(np.sqrt(((x - r) ** 2).sum()) for r in others)[:k]
        return np.log(np.maximum(distance, typicality.floor))

    spacing = [log_distances(r, np.delete(reference, j, axis=0)).mean() for j, r in enumerate(reference)]
    scores = []
    for x in (points - typicality.center) / typicality.scale:
        near = np.argsort(((x - reference) ** 2).sum(axis=1))[:k]
        scores.append(log_distances(x, reference).mean() - LOCAL * np.mean([spacing[j] for j in near]))
    return scores


def test_the_score_is_the_equation_of_the_module():
    typicality = fitted(n=60)
    points = np.random.RandomState(1).normal(size=(7, 3)) * 2.0
    assert_allclose(typicality.scores_of(points), slow_scores(typicality, points), rtol=1e-5)


def test_a_p_value_counts_the_calibration_rows_that_lie_at_least_as_far_out():
    typicality = fitted()
    points = np.random.RandomState(1).normal(size=(5, 3))
    scores = typicality.scores_of(points)
    typicality = replace(typicality, scores=np.sort([scores[0] - 1.0, scores[0], scores[0], scores[0] + 1.0]))
    assert typicality.p_values(points)[0] == 4 / 5  # ties count, and so does the row itself
    assert_allclose(typicality.p_values(points), [(1 + (typicality.scores >= s).sum()) / 5 for s in scores])


@pytest.mark.parametrize("kind", ["gaussian", "heavy", "ties"])
def test_at_most_a_share_a_of_ordinary_rows_has_a_typicality_of_a_or_less(kind):
    rates = []
    for seed in range(40):
        rng = np.random.RandomState(seed)
        draw = {
            "gaussian": lambda n, rng=rng: rng.normal(size=(n, 2)),
            "heavy": lambda n, rng=rng: rng.standard_cauchy(size=(n, 2)),
            "ties": lambda n, rng=rng: rng.randint(3, size=(n, 2)).astype(float),
        }[kind]
        p_values = fit(draw(400), rng).p_values(draw(500))
        rates.append([(p_values <= a).mean() for a in (0.05, 0.2, 0.5)])
    mean, error = np.mean(rates, axis=0), np.std(rates, axis=0) / np.sqrt(len(rates))
    assert (mean <= np.array([0.05, 0.2, 0.5]) + 3.0 * error).all()
    if kind != "ties":  # and almost that share if scores do not tie
        assert (mean >= np.array([0.05, 0.2, 0.5]) - 0.02 - 3.0 * error).all()


def test_calibration_rows_are_not_in_the_reference():
    points = np.arange(100.0)[:, None]
    typicality = Typicality.fit(points[30:], points[:30])
    kept = np.sort(typicality.reference[:, 0] * typicality.scale + typicality.center)
    assert_allclose(kept, points[30:, 0], atol=1e-4)
    assert_allclose(typicality.scores, np.sort(typicality.scores_of(points[:30])))


@pytest.mark.parametrize(("n_seen", "first"), [(100, 0), (90, 0), (70, 70), (1, 1)])
def test_rows_calibrate_that_were_not_trained_on_where_these_are_a_quarter(n_seen, first):
    reference, calibration = split_rows(np.arange(100) < n_seen, np.random.RandomState(0))
    assert len(calibration) == 25
    assert calibration.min() >= first
    assert_array_equal(np.sort(np.r_[reference, calibration]), np.arange(100))
    assert n_seen < 100 or len(set(calibration // 25)) == 4  # at random


def test_reference_and_calibration_rows_are_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_REFERENCE", 50)
    monkeypatch.setattr(module, "MAX_CALIBRATION", 20)
    reference, calibration = split_rows(np.ones(400, bool), np.random.RandomState(0))
    assert (len(reference), len(calibration)) == (50, 20)
    assert not set(reference) & set(calibration)
    assert fitted().reference.dtype == np.float32


def test_no_rows_have_no_typicality():
    assert fitted().p_values(np.empty((0, 3))).shape == (0,)


def test_neither_the_origin_nor_the_scale_of_the_data_matters():
    points = np.random.RandomState(0).normal(size=(300, 3))
    new = np.random.RandomState(1).normal(size=(50, 3))
    here = fit(points, np.random.RandomState(2)).p_values(new)
    there = fit(1e-3 * points + 1e4, np.random.RandomState(2)).p_values(1e-3 * new + 1e4)
    assert_allclose(there, here, atol=2 / 76)


@pytest.mark.parametrize("far", [1e3, 1e6, 1e30, 1e300])
def test_a_row_far_away_is_as_atypical_as_can_be(far):
    typicality = fitted()
    assert_allclose(typicality.p_values(np.array([[far, 0.0, -far]])), 1 / 101)


def test_a_row_off_a_dense_cluster_is_less_typical_than_one_in_the_flank_of_a_wide_one(monkeypatch):
    rng = np.random.RandomState(0)
    points = np.r_[rng.normal(size=(500, 2)) * 0.1, rng.normal(size=(500, 2)) * 2.0 + 20.0]
    rows = np.array([[0.45, 0.45], [21.5, 21.5]])
    off_dense, in_flank = fit(points, np.random.RandomState(1)).scores_of(rows)
    assert off_dense > in_flank
    monkeypatch.setattr(module, "LOCAL", 0.0)  # by distance only, the order would be reversed
    off_dense, in_flank = fit(points, np.random.RandomState(1)).scores_of(rows)
    assert off_dense < in_flank


def test_with_few_rows_nothing_is_rejected():
    for n in (1, 2, 3, 10):
        typicality = fitted(n=n)
        p_values = typicality.p_values(np.array([[1e6, 0.0, 0.0]]))
        assert_allclose(p_values, 1 / (n // 4 + 1))
        assert reject_atypical(np.array([0]), p_values, 0.01)[0] == 0


def test_equal_rows_and_constant_columns_have_typicalities():
    rng = np.random.RandomState(0)
    equal = fit(np.ones((40, 2)), rng)
    assert_allclose(equal.p_values(np.array([[1.0, 1.0], [1.0, 2.0]])), [1.0, 1 / 11])
    assert equal.floor == FLOOR
    points = np.repeat(rng.normal(size=(100, 2)), 4, axis=0)
    points[:, 1] = 7.0
    p_values = fit(points.astype(np.float32), rng).p_values(np.array([[0.0, 7.0], [0.0, 9.0], [0.0, 99.0]]))
    assert p_values[0] > 0.1 > p_values[2]


def test_a_training_row_is_not_its_own_neighbour():
    rng = np.random.RandomState(0)
    points = rng.normal(size=(800, 4))
    p_values = fit(points, rng).p_values(points)
    assert abs((p_values <= 0.1).mean() - 0.1) < 0.03  # 0.07 less if each row had distance 0 from itself


def test_rejection_is_up_to_and_including_the_level():
    labels = np.array([4, 5, 6], np.int32)
    assert reject_atypical(labels, np.array([0.2, 0.1, 0.05]), 0.1).tolist() == [4, -1, -1]
    assert reject_atypical(labels, np.array([0.2, 0.1, 0.05]), 0.0).tolist() == [4, 5, 6]
    for level in (-0.1, 1.0, np.nan):
        with pytest.raises(ValueError, match="`reject` must be at least 0 and below 1"):
            reject_atypical(labels, np.ones(3), level)


def test_bad_points_are_refused():
    rng = np.random.RandomState(0)
    for points in (np.zeros((0, 2)), np.zeros((3, 0)), np.zeros(3)):
        with pytest.raises(ValueError, match="`reference` must have shape"):
            Typicality.fit(points, points)
    with pytest.raises(ValueError, match=r"`points` must have shape \(n_points, 3\), got \(2, 4\)"):
        fitted().p_values(np.zeros((2, 4)))
    for number in (np.nan, np.inf):
        with pytest.raises(ValueError, match="must be finite"):
            fitted().p_values(np.full((1, 3), number))
        with pytest.raises(ValueError, match="must be finite"):
            fit(np.full((9, 3), number), rng)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"reference": np.zeros((0, 3), np.float32)}, "`reference` must have shape"),
        ({"center": np.zeros(2)}, "must have shapes"),
        ({"spacing": np.zeros(7)}, "must have shapes"),
        ({"scores": np.zeros((2, 2))}, "must have shapes"),
        ({"scores": np.array([1.0, 0.0])}, "must be sorted"),
        ({"scores": np.array([np.nan])}, "must be finite"),
        ({"scale": 0.0}, "positive"),
        ({"floor": -1.0}, "positive"),
    ],
)
def test_a_damaged_state_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(fitted(), **changes)
