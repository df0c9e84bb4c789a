"""A summary describes clusters without the data."""

import numpy as np

from neuralbayes.explain.summary import MAX_ROWS, N_TYPICAL, summarize, summary_frame


def test_a_summary_holds_means_and_typical_rows_of_a_bounded_number_of_rows():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [9000, 3000])
    x = rng.normal(size=(12_000, 3)) + labels[:, None] * [0.0, 4.0, 0.0]
    asked = []

    def read(rows):
        asked.append(len(rows))
        return x[rows]

    summary = summarize(read, lambda rows: x[rows], labels, 2, 3)
    assert asked == [MAX_ROWS]
    np.testing.assert_allclose(summary.means[1] - summary.means[0], [0, 4, 0], atol=0.1)
    assert (labels[summary.typical] == [[0], [1]]).all()
    frame = summary_frame(summary, labels, ["a", "b", "c"])
    assert frame["size"].tolist() == [9000, 3000]
    assert "name" not in frame, "a name must be checked on rows"
    assert frame.loc[0, "differences"].startswith("lower b (")
    assert frame.loc[1, "differences"].startswith("higher b (3.9")


def test_a_summary_has_room_for_clusters_with_few_rows_or_none():
    summary = summarize(
        lambda rows: np.zeros((len(rows), 1)), lambda rows: np.zeros((len(rows), 1)), np.zeros(3, int), 2, 1
    )
    assert summary.typical.shape == (2, N_TYPICAL)
    assert summary.typical[0, 3:].tolist() == [-1, -1]
    assert (summary.typical[1] == -1).all()
    assert np.isfinite(summary.means).all()
    assert summary_frame(summary, np.zeros(3, int), ["a"])["differences"].tolist() == ["", ""]
