"""Descriptions of clusters by all columns of a table."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.clusters.description import describe_clusters, name_clusters
from neuralbayes.clusters.summary import N_PROTOTYPES, summarize, summary_frame


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [200, 150, 100])
    frame = pd.DataFrame(
        {
            "customer_id": [f"C{i:04d}" for i in range(450)],
            "spend": rng.normal([100.0, 300.0, 300.0], 20.0, size=(450, 3))[np.arange(450), labels],
            "city": np.where(labels == 2, "Bonn", rng.choice(["Köln", "Trier"], 450)),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 450), unit="D"),
            "note": [None if i % 3 else f"note {i}" for i in range(450)],
        }
    )
    frame.loc[frame.index[labels == 1][:70], "since"] = pd.NaT
    return frame, labels


def test_every_cluster_has_size_name_words_rule_and_rows(table):
    frame, labels = table
    p_zx = np.eye(3)[labels] * 0.9 + 0.1 / 3
    p_zx[3] = [0.5, 0.45, 0.05]
    described = describe_clusters(frame, labels, 3, p_zx=p_zx)
    found = described.to_frame()
    assert found["size"].tolist() == [200, 150, 100]
    assert found["share"].sum() == pytest.approx(1.0)
    assert found["name"].is_unique
    assert found.loc[0, "name"] == "low spend"
    assert found.loc[2, "name"] == "Bonn"
    assert "since missing in 47 % (rest 0 %)" in found.loc[1, "differences"]
    assert found.loc[2, "rule"] == "city is Bonn"
    assert found["precision"].min() > 0.9
    assert found["recall"].min() > 0.9
    assert all(len(rows) == 5 for rows in found["prototypes"])
    assert found.loc[0, "borderline"][0] == "C0003"
    assert described.clusters[0].borderline[0] == 3


def test_without_names_rows_are_numbers_and_without_probabilities_none_is_borderline(table):
    frame, labels = table
    found = describe_clusters(frame[["spend"]], labels, 3).to_frame()
    assert all(isinstance(row, int) for rows in found["prototypes"] for row in rows)
    assert found["borderline"].map(len).sum() == 0


def test_rules_are_made_of_the_fitted_columns_and_differences_of_all(table):
    frame, labels = table
    found = describe_clusters(frame, labels, 3, fitted=["spend"])
    assert {c.column for cluster in found.clusters for c in cluster.rule.conditions} == {"spend"}
    assert found.clusters[2].differences[0].column == "city"


def test_what_the_library_wrote_and_what_is_left_out_explains_nothing(table):
    frame, labels = table
    frame = frame.assign(label=labels, p_0=0.2, p_1=0.3, p_2=0.5)
    found = describe_clusters(frame, labels, 3, left_out=["city"])
    used = {one.column for cluster in found.clusters for one in cluster.differences}
    assert used == {"spend", "since"}


def test_one_cluster_and_empty_clusters_are_described(table):
    frame, _ = table
    found = describe_clusters(frame, np.zeros(450, int), 2).to_frame()
    assert found["size"].tolist() == [450, 0]
    assert found["rule"].tolist() == ["", ""]
    assert found["name"].is_unique
    assert found["prototypes"].map(len).tolist() == [5, 0]


def test_many_rows_are_described_by_some_of_them(monkeypatch, table):
    frame, labels = table
    monkeypatch.setattr("neuralbayes.clusters.description.MAX_ROWS", 300)
    found = describe_clusters(frame, labels, 3)
    assert len(found.rows) == 300
    assert [cluster.size for cluster in found.clusters] == [200, 150, 100]
    for k, cluster in enumerate(found.clusters):
        assert (labels[cluster.prototypes] == k).all()
    names = [row for rows in found.to_frame()["prototypes"] for row in rows]
    assert all(name.startswith("C") for name in names)


def test_labels_must_fit_the_rows(table):
    with pytest.raises(ValueError, match=r"`labels` must have shape \(450,\), got \(3,\)"):
        describe_clusters(table[0], np.zeros(3, int), 1)


def test_names_alone_cost_no_rules(table):
    frame, labels = table
    assert name_clusters(frame, labels, 3)[2] == ("Bonn", "city always Bonn (rest 0 %)")


def test_a_summary_holds_means_and_prototypes_of_a_bounded_number_of_rows(monkeypatch):
    monkeypatch.setattr("neuralbayes.clusters.summary.MAX_ROWS", 500)
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], [3000, 1000])
    x = rng.normal(size=(4000, 3)) + labels[:, None] * [0.0, 4.0, 0.0]
    asked = []

    def read(rows):
        asked.append(len(rows))
        return x[rows]

    summary = summarize(read, lambda rows: x[rows], labels, 2, 3)
    assert asked == [500]
    np.testing.assert_allclose(summary.means[1] - summary.means[0], [0, 4, 0], atol=0.3)
    assert (labels[summary.prototypes] == [[0], [1]]).all()
    frame = summary_frame(summary, labels, ["a", "b", "c"])
    assert frame["size"].tolist() == [3000, 1000]
    assert frame["name"].tolist() == ["low b", "high b"]
    assert frame.loc[1, "differences"].startswith("higher b (4")


def test_a_summary_has_room_for_clusters_with_few_rows_or_none():
    summary = summarize(
        lambda rows: np.zeros((len(rows), 1)), lambda rows: np.zeros((len(rows), 1)), np.zeros(3, int), 2, 1
    )
    assert summary.prototypes.shape == (2, N_PROTOTYPES)
    assert summary.prototypes[0, 3:].tolist() == [-1, -1]
    assert (summary.prototypes[1] == -1).all()
    assert np.isfinite(summary.means).all()
    assert summary_frame(summary, np.zeros(3, int), ["a"])["name"].is_unique
