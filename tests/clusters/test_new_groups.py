"""New groups among new rows, and the sample of old ones."""

import numpy as np

from neuralbayes.clusters.update import find_new_groups, mixed_reservoir, more_than_chance


def test_more_rows_than_chance_would_make_atypical_are_noticed():
    ordinary = (np.arange(1000) + 0.5) / 1000
    assert not more_than_chance(ordinary, 500)
    assert more_than_chance(np.r_[ordinary, np.full(60, 0.002)], 500)
    assert not more_than_chance(np.full(5, 0.01), 500)  # too few for a cluster
    assert not more_than_chance(np.full(100, 0.2), 10)  # 10 calibration rows cannot detect 1 in 20
    # By chance, 1 in 10 rows may be beyond the farthest of 19 calibration rows; with 999 rows, this cannot happen.
    some = np.r_[ordinary[::5], np.full(15, 0.001)]
    assert not more_than_chance(some, 19)
    assert more_than_chance(some, 999)


def test_ordinary_rows_are_noticed_one_time_in_a_hundred():
    rng = np.random.RandomState(0)
    found = 0
    for _ in range(1000):
        calibration, new = rng.uniform(size=99), rng.uniform(size=400)
        p_values = (1 + (calibration[:, None] >= new).sum(axis=0)) / 100
        found += more_than_chance(p_values, 99)
    assert found <= 20


def test_several_new_groups_are_told_apart():
    rng = np.random.RandomState(0)
    old = rng.normal(size=(400, 3))
    groups = [rng.normal(size=(200, 3)), rng.normal((9, 0, 0), 1, (60, 3)), rng.normal((0, 9, 0), 1, (40, 3))]
    p_values = np.r_[rng.uniform(size=200), np.full(100, 0.005)]
    zeros = np.zeros(400, np.int64)
    found = find_new_groups(old, zeros, np.concatenate(groups), zeros[:300], p_values, 199, 10)
    assert (found[:200] == -1).mean() > 0.95
    assert (found[200:260] == 0).mean() > 0.95
    assert (found[260:] == 1).mean() > 0.95
    assert (find_new_groups(old, zeros, np.concatenate(groups), zeros[:300], p_values, 199, 0) == -1).all()


def test_the_reservoir_is_a_fair_sample_of_all_rows():
    rng = np.random.RandomState(0)
    of_old, of_new = mixed_reservoir(1000, 4500, 500, rng, at_most=1000)
    assert len(of_old) + len(of_new) == 1000
    assert abs(len(of_new) / 1000 - 0.1) < 0.04
    assert len(np.unique(of_old)) == len(of_old)
    assert list(map(len, mixed_reservoir(300, 300, 500, rng, at_most=1000))) == [300, 500]
    assert sum(map(len, mixed_reservoir(300, 300, 5000, rng, at_most=1000))) == 1000
