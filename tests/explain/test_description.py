"""Descriptions of clusters by all columns of a table."""

import numpy as np
import pandas as pd
import pytest

from neuralbayes.explain import describe


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
    described = describe(frame, labels, proba=p_zx)
    found = described.to_frame()
    assert found["size"].tolist() == [200, 150, 100]
    assert found["share"].sum() == pytest.approx(1.0)
    assert found["name"].is_unique
    assert found.loc[0, "name"] == "lower spend"
    assert found.loc[2, "name"] == "Bonn"
    assert "more often since missing (" in found.loc[1, "differences"]
    assert found.loc[2, "rule"] == "city is Bonn"
    assert found["precision"].min() > 0.9
    assert found["recall"].min() > 0.9
    assert all(len(rows) == 5 for rows in found["typical"])
    assert found.loc[0, "borderline"][0] == "C0003"
    assert described.clusters[0].borderline[0] == 3


def test_rules_are_made_of_the_fitted_columns_and_differences_of_all(table):
    frame, labels = table
    found = describe(frame, labels, fitted=["spend"])
    assert {c.column for cluster in found.clusters for c in cluster.rule.conditions} == {"spend"}
    assert found.clusters[2].differences[0].condition.column == "city"


def test_what_the_library_wrote_and_what_is_left_out_explains_nothing(table):
    frame, labels = table
    frame = frame.assign(cluster=labels, name="a", probability=0.5)
    found = describe(frame, labels, left_out=["city"])
    used = {one.condition.column for cluster in found.clusters for one in cluster.differences}
    assert used == {"spend", "since"}


def test_one_cluster_and_empty_clusters_are_described(table):
    frame, _ = table
    found = describe(frame, np.zeros(450, int), n_clusters=2).to_frame()
    assert found["size"].tolist() == [450, 0]
    assert found["rule"].tolist() == ["", ""]
    assert found["name"].is_unique
    assert found["typical"].map(len).tolist() == [5, 0]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("proba", np.zeros((450, 2))),
        ("points", np.zeros((3, 2))),
        ("labels", np.zeros(450)),
        ("labels", np.zeros(3, int)),
        ("labels", np.full(450, -2)),
        ("texts", ["a"] * 3),
        ("table", None),
    ],
)
def test_arrays_must_fit_the_rows(table, name, given):
    frame, labels = table
    with pytest.raises((ValueError, TypeError), match=f"`{name}`"):
        describe(**{"table": frame, "labels": labels, name: given})


def test_texts_name_clusters_and_points_find_typical_texts():
    texts = ["reset my password", "password reset", "forgot the password"] * 5
    texts += ["where is my parcel", "parcel", "the parcels came late", "two parcels", "no parcel yet"] * 2
    labels = np.repeat([0, 1], [15, 10])
    points = labels[:, None] + np.linspace(0, 0.1, 25)[:, None]
    found = describe(None, labels, texts=texts, points=points)
    assert [cluster.name.split(",")[0] for cluster in found.clusters] == ["password", "parcel"]
    assert [len(cluster.typical) for cluster in found.clusters] == [5, 5]
    assert found.clusters[0].rule is None
    assert describe(None, labels, texts=[None, np.nan, *texts[2:]]).clusters[1].name == found.clusters[1].name
    assert found.to_frame()["claims"].str.contains("password").tolist() == [True, False]


@pytest.mark.filterwarnings("error")
def test_bad_columns_are_passed_over(table):
    frame, labels = table
    n = len(frame)
    bad = pd.DataFrame(
        {
            "empty": [None] * n,
            "nan": np.nan,
            "one": 3.0,
            "infinite": np.inf,
            "some infinite": np.where(np.arange(n) % 2, np.inf, np.arange(n)),
            "huge": [10**400 + i for i in range(n)],
            "near the limit": np.linspace(-1.0, 1.0, n) * 1.7e308,
            "tiny": np.linspace(5e-324, 1e-320, n),
            "lists": [[i] for i in range(n)],
            "mixed": [i if i % 2 else f"word {i % 7}" for i in range(n)],
            "complex": np.arange(n) * 1j,
            "": np.arange(n) % 5,
            "only one number": [1.0] + [None] * (n - 1),
        },
    )
    found = describe(pd.concat([bad, frame], axis=1), labels).to_frame()
    assert found["name"].is_unique
    assert found.loc[2, "name"] == "Bonn"


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_hardly_any_rows(n):
    found = describe(pd.DataFrame({"x": np.arange(n, dtype=float), "c": ["a", "b", "c"][:n]}), np.arange(n))
    assert len(found.clusters) == n
