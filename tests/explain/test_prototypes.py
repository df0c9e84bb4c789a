"""Prototypes lie in the middle of their cluster, and borderline rows between two clusters."""

import numpy as np
import pandas as pd

from neuralbayes.explain.columns import as_cells
from neuralbayes.explain.prototypes import borderline_members, points_of, rank_members


def test_outliers_come_last_however_sure_they_are():
    x = np.random.default_rng(0).normal(size=(300, 2))
    x[7] = [40.0, 40.0]
    (ranked,) = rank_members(x, np.zeros(300, int), 1)
    assert ranked[-1] == 7
    assert np.linalg.norm(x[ranked[:5]], axis=1).max() < 1.0


def test_the_prototype_of_a_ring_is_on_it():
    angle = np.random.default_rng(0).uniform(0, 2 * np.pi, 400)
    ring = np.c_[np.cos(angle), np.sin(angle)]
    x = np.vstack([ring, [[0.0, 0.0]]])
    (ranked,) = rank_members(x, np.zeros(401, int), 1)
    assert ranked[0] != 400
    assert 400 in ranked[len(ranked) // 2 :]


def test_ranks_are_those_of_members_and_many_are_drawn_from():
    labels = np.repeat([0, 2], [2700, 3])
    labels[0] = -1
    found = rank_members(np.arange(len(labels), dtype=float)[:, None], labels, 3)
    assert [len(rows) for rows in found] == [2000, 0, 3]
    assert (labels[found[0]] == 0).all()


def test_borderline_rows_are_the_least_ahead_of_the_second_best():
    p_zx = np.array([[0.5, 0.45, 0.05], [0.9, 0.05, 0.05], [0.4, 0.3, 0.3], [0.1, 0.8, 0.1]])
    found = borderline_members(p_zx, p_zx.argmax(axis=1), 2)
    assert [rows.tolist() for rows in found] == [[0, 2], [3], []]
    assert [rows.tolist() for rows in borderline_members(np.ones((4, 1)), np.zeros(4, int), 2)] == [[]]


def test_points_of_a_mixed_table_are_finite_and_leave_out_text():
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 5.0], "c": ["a", None, "b", "a"]})
    frame["d"] = pd.to_datetime(["2020", "2021", "2021", "2024"])
    points = points_of(as_cells(frame))
    assert points.shape == (4, 1 + 3 + 1)
    assert np.isfinite(points).all()
    assert points[1, 0] == 0.0
