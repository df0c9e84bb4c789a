"""describe(): differences between each cluster and the rest, with and without the data."""

import numpy as np
import pandas as pd
import pytest

import neuralbayes as nb


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], [90, 60])
    mass = rng.normal([3.5, 5.5], 0.2, size=(150, 2))[np.arange(150), groups]
    frame = pd.DataFrame({"mass": mass, "length": rng.normal(0.0, 0.2, size=150)})
    return frame.assign(island=np.where(groups, "Biscoe", "Dream"), tag=[f"P{i:03d}" for i in range(150)])


@pytest.fixture(scope="module", params=[nb.InformationClusterer(2, random_state=0), nb.ManifoldLabeler(2, n_init=2)])
def clusterer(request, table):
    return request.param.set_params(random_state=0).fit(table[["mass", "length"]])


def test_without_data_it_knows_sizes_and_typical_rows(clusterer):
    found = clusterer.describe()
    assert found["size"].tolist() == [90, 60]
    assert list(found.columns) == ["size", "share", "typical"], "what is said of columns is checked on rows"
    for k, rows in enumerate(found["typical"]):
        assert len(rows) == 5
        assert (clusterer.labels_[rows] == k).all()


def test_with_data_it_knows_all_columns_rules_and_rows(clusterer, table):
    found = clusterer.describe(table)
    assert found["name"].tolist() == ["Dream", "Biscoe"]
    assert found.loc[0, "claims"] == "island: Dream (100 %, others 0 %)"
    assert found.loc[1, "rule"].startswith("mass > ")
    assert found[["precision", "recall"]].min().min() == 1.0
    assert all(name.startswith("P") for rows in found["typical"] for name in rows)
    assert found["borderline"].map(len).tolist() == [5, 5]
    assert clusterer.describe(table.iloc[:100])["size"].tolist() == [90, 10], "new rows are labelled"


def test_rows_without_the_fitted_columns_must_be_those_that_were_fitted(clusterer, table):
    found = clusterer.describe(table[["island"]])
    assert found.loc[0, "rule"] == "island is Dream"
    assert found["borderline"].map(len).sum() == 0
    holed = table.copy()
    holed.loc[5, "mass"] = np.nan
    assert clusterer.describe(holed)["size"].tolist() == [90, 60]
    with pytest.raises(ValueError, match=r"`X` must have the 2 columns that were fitted.*or the 150 rows that were"):
        clusterer.describe(table[["island"]].iloc[:9])
    with pytest.raises(ValueError, match="at least one row"):
        clusterer.describe(table.iloc[:0])


def test_a_vectorised_table_is_described_by_its_own_columns(table):
    frame = table.drop(columns="tag").assign(island=table["island"].where(table.index % 7 > 0))
    found = nb.InformationClusterer(2, random_state=0).fit(frame).describe(frame)
    assert found["name"].is_unique
    assert found["precision"].min() > 0.9
    assert not found["rule"].str.contains("=").any(), "the columns of the table, not those of the vectorizer"
