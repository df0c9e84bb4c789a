"""Typicality by folds: values by hand, the promise with few rows, and rows that are few, equal or far away."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from neuralbayes.clusters.typicality import FLOOR, LOCAL, N_FOLDS, N_NEIGHBORS, Typicality


def normal(n, d=3, seed=0):
    return np.random.RandomState(seed).normal(size=(n, d))


def slow_scores(reference, points):
    """Compute s(x) with loops over the reference rows, from the equation of the module."""
    center, unit = reference.mean(axis=0), reference.std(axis=0)
    reference, points = (reference - center) / unit, (points - center) / unit

    def log_distances(x, others):
        return np.log(sorted(np.sqrt(((x - r) ** 2).sum()) for r in others)[:N_NEIGHBORS])

    spacing = [log_distances(r, np.delete(reference, j, axis=0)).mean() for j, r in enumerate(reference)]
    scores = []
    for x in points:
        near = np.argsort(((x - reference) ** 2).sum(axis=1))[:N_NEIGHBORS]
        scores.append(log_distances(x, reference).mean() - LOCAL * np.mean([spacing[j] for j in near]))
    return np.array(scores)


def rejected(draw, n, *levels, seeds=40, n_new=200, **options):
    """Mean shares of ordinary rows with a typicality of at most each level over training sets, and standard errors."""
    shares = []
    for seed in range(seeds):
        rows = draw(np.random.RandomState(seed), n + n_new)
        fitted = Typicality.fit(rows[:n], random_state=seed, **options)
        shares.append((fitted.p_values(rows[n:])[:, None] <= levels).mean(axis=0))
    return np.mean(shares, axis=0), np.std(shares, axis=0) / np.sqrt(seeds)


def test_the_score_and_the_p_value_are_the_equations_of_the_module():
    rows, new = normal(60), 2.0 * normal(7, seed=1)
    fitted = Typicality.fit(rows, random_state=0)
    order = np.random.RandomState(0).permutation(60)
    n_beyond = np.zeros(7)
    for fold, own in zip(fitted.folds, np.array_split(order, N_FOLDS), strict=True):
        others = np.delete(rows, own, axis=0)
        scores, calibration = slow_scores(others, new), slow_scores(others, rows[own])
        assert_allclose(fold.scores_of(new), scores, rtol=1e-5, atol=1e-6)
        assert_allclose(fold.scores, np.sort(calibration), rtol=1e-5, atol=1e-6)
        n_beyond += (calibration[:, None] >= scores).sum(axis=0)
    assert_allclose(fitted.p_values(new), (1 + n_beyond) / 61)
    score = fold.scores_of(new)[0]  # equal scores count as far out
    single = Typicality((replace(fold, scores=np.array([score - 1.0, score, score, score + 1.0])),))
    assert single.p_values(new)[0] == 4 / 5


@pytest.mark.parametrize("d", [2, 30])
@pytest.mark.parametrize(
    "draw",
    [
        lambda d: lambda rng, n: rng.normal(size=(n, d)) * np.geomspace(1.0, 100.0, d),
        lambda d: lambda rng, n: np.exp(rng.normal(size=(n, d))),
        lambda d: lambda rng, n: rng.randint(3, size=(n, d)).astype(float),
    ],
    ids=["gaussian", "skewed", "ties"],
)
def test_sixty_rows_reject_no_more_than_promised(draw, d):
    mean, error = rejected(draw(d), 60, 1 / 61, 0.1)
    assert (mean <= [1 / 61, 0.1] + 3.0 * error).all()
    if d == 30:
        assert mean[1] >= 0.08 - 3.0 * error[1]


def test_n_rows_allow_a_level_of_one_in_n_plus_1_and_smaller_ones_are_refused():
    fitted = Typicality.fit(normal(178), random_state=0)
    far = np.array([[x, 0.0, -x] for x in (1e3, 1e6, 1e30, 1e300)])
    assert fitted.smallest_level == 1 / 179
    for one in (fitted, Typicality.fit(normal(178), random_state=0, standardize=False)):
        assert_allclose(one.p_values(far), 1 / 179)
    fitted.check_level(0.01)
    fitted.check_level(1 / 179)
    with pytest.raises(ValueError, match="`reject`"):
        fitted.check_level(0.0055)
    fitted.check_level(0.0056)  # the level that the message names
    for level in (0.0, -0.1, 1.0, np.nan, True, "0.1"):
        with pytest.raises(ValueError, match="`reject`"):
            fitted.check_level(level)


def test_wide_rows_are_compared_by_principal_components_and_the_distance_from_them():
    rng = np.random.RandomState(0)
    basis = rng.normal(size=(5, 200))
    rows = rng.normal(size=(2000, 5)) @ basis + 0.01 * rng.normal(size=(2000, 200))
    fitted = Typicality.fit(rows[:1700], random_state=0, standardize=False)
    assert fitted.folds[0].reference.shape == (1360, 129)
    ordinary = rows[1700:]
    assert abs((fitted.p_values(ordinary) <= 0.1).mean() - 0.1) < 0.06
    off = ordinary + 30.0 * np.linalg.svd(rows)[2][-1]  # a direction in which no row varies
    assert (fitted.p_values(off) <= 0.01).all()


def test_rows_of_unit_length_are_compared_by_angle_and_another_length_is_atypical():
    rows = normal(800, d=20) + 8.0 * np.eye(20)[np.random.RandomState(1).randint(3, size=800)]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fitted = Typicality.fit(rows[:600].astype(np.float16), random_state=0, standardize=False)
    assert abs((fitted.p_values(rows[600:]) <= 0.1).mean() - 0.1) < 0.06
    assert_allclose(fitted.p_values(np.stack([2.0 * rows[0], -rows[0]])), 1 / 601)


def test_neither_the_origin_nor_the_units_of_columns_matter():
    rows, new = normal(300), normal(50, seed=1)
    here = Typicality.fit(rows, random_state=2).p_values(new)
    factors = np.array([1e-3, 1.0, 1e6])
    assert_allclose(
        Typicality.fit(rows * factors + 1e4, random_state=2).p_values(new * factors + 1e4), here, atol=0.007
    )
    here = Typicality.fit(rows, random_state=2, standardize=False).p_values(new)
    there = Typicality.fit(1e-30 * rows, random_state=2, standardize=False).p_values(1e-30 * new)
    assert_allclose(there, here, atol=0.007)


def test_columns_that_are_not_standardised_keep_their_weight():
    rows = normal(200, d=2) * [1.0, 1e-3]  # a shift by .01 is small in the units of the second column as given
    shifted = np.array([[0.0, 0.01]])
    assert Typicality.fit(rows, random_state=0).p_values(shifted) < 0.01
    assert Typicality.fit(rows, random_state=0, standardize=np.array([True, False])).p_values(shifted) > 0.2


@pytest.mark.parametrize("n", range(2, 11))
def test_a_handful_of_rows_has_typicalities(n):
    fitted = Typicality.fit(normal(n, d=4), random_state=0)
    p_values = fitted.p_values(np.array([[1e6, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]))
    assert p_values[0] == fitted.smallest_level == 1 / (n + 1)
    assert p_values[1] >= p_values[0]
    with pytest.raises(ValueError, match="`reject`"):
        fitted.check_level(0.05)


def test_a_row_off_a_dense_cluster_is_less_typical_than_one_in_the_flank_of_a_wide_one():
    rows = np.r_[normal(500, d=2) * 0.1, normal(500, d=2, seed=1) * 2.0 + 20.0]
    off_dense, in_flank = Typicality.fit(rows, random_state=1).p_values(np.array([[0.45, 0.45], [21.5, 21.5]]))
    assert off_dense < in_flank


def test_equal_rows_and_constant_columns_have_typicalities():
    equal = Typicality.fit(np.ones((40, 2)), random_state=0)
    assert_allclose(equal.p_values(np.array([[1.0, 1.0], [1.0, 2.0]])), [1.0, 1 / 41])
    assert equal.folds[0].floor == FLOOR
    rows = np.repeat(normal(100, d=2), 4, axis=0)
    rows[:, 1] = 7.0
    p_values = Typicality.fit(rows, random_state=0).p_values(np.array([[0.0, 7.0], [0.0, 9.0], [0.0, 99.0]]))
    assert p_values[0] > 0.1 > p_values[2]
    assert Typicality.fit(np.zeros((40, 2)), random_state=0).p_values(np.array([[0.0, 1.0]])) == 1 / 41


def test_a_training_row_is_as_typical_as_a_new_one():
    for n in (800, 6000):  # by folds, and by one fold
        rows = normal(n, d=4)
        p_values = Typicality.fit(rows, random_state=0).p_values(rows[:3000])
        assert abs((p_values <= 0.1).mean() - 0.1) < 0.03  # 0.07 less if each row had distance 0 from itself


@pytest.mark.parametrize("shape", [(60, 3), (1700, 140), (6000, 2)])
def test_the_arrays_make_the_same_typicality_again(shape):
    fitted, new = Typicality.fit(normal(*shape), random_state=0), normal(20, d=shape[1], seed=1)
    arrays = fitted.arrays()
    assert all(isinstance(part, np.ndarray) for part in arrays.values())
    assert_array_equal(Typicality.from_arrays(arrays).p_values(new), fitted.p_values(new))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("reference", lambda a: a[:, :-1]),
        ("center", lambda a: a * np.nan),
        ("unit", lambda a: 0.0 * a),
        ("components", lambda a: np.zeros((2, 2))),
        ("floor", lambda a: a[None]),
        ("scores", lambda a: a[::-1]),
        ("scores", lambda a: a.astype(np.int64)),
    ],
)
def test_a_damaged_part_is_named_and_so_are_missing_and_unknown_ones(name, change):
    arrays = Typicality.fit(normal(60), random_state=0).arrays()
    with pytest.raises(ValueError, match=f"`{name}`"):
        Typicality.from_arrays({**arrays, f"1.{name}": change(arrays[f"1.{name}"])})
    with pytest.raises(TypeError, match=name):
        Typicality.from_arrays({key: part for key, part in arrays.items() if key != f"1.{name}"})
    with pytest.raises(TypeError, match="other"):
        Typicality.from_arrays({**arrays, "1.other": np.zeros(3)})


def test_folds_that_do_not_belong_together_are_refused():
    folds = [Typicality.fit(normal(60, d), random_state=0).folds[0] for d in (3, 2)]
    for wrong in ((), tuple(folds), (replace(folds[0], scores=np.empty(0)),)):
        with pytest.raises(ValueError, match="folds"):
            Typicality(wrong)
