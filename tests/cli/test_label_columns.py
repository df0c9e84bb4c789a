"""Columns that `neuralbayes label` uses, with a labeler that splits rows at zero instead of training."""

import json

import numpy as np
import pandas as pd
import pytest
from label_cases import SignLabeler, said, split_at_zero

from neuralbayes.cli import main


@pytest.fixture(autouse=True)
def labeler(monkeypatch):
    split_at_zero(monkeypatch)


@pytest.fixture
def customers(tmp_path):
    """Make a table as in a database, in which only three columns can carry a manifold."""
    rng = np.random.default_rng(0)
    n = 200
    frame = pd.DataFrame(
        {
            "Customer ID": rng.permutation(n) + 7000,
            "Zip Code": rng.integers(10_000, 99_999, n),
            "country": 49,
            "active": rng.integers(0, 2, n),
            "rating": rng.integers(1, 6, n),
            "spent": np.where(rng.uniform(size=n) < 0.6, 0.0, rng.lognormal(size=n)),
            "income": rng.lognormal(size=n),
            "age": rng.normal(40, 10, n).round(1),
        }
    )
    frame.to_csv(tmp_path / "customers.csv", index=False)
    return tmp_path / "customers.csv"


def labelled_json(capsys, *words):
    assert main(["label", *map(str, words), "--clusters", "2", "--no-picture", "--json", "--force"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_certificate_rests_on_numbers_with_gaps_alone(customers, capsys):
    result = labelled_json(capsys, customers)
    assert result["used"] == ["spent", "income", "age"]
    assert {column["name"]: column["kind"] for column in result["columns"]} == {
        "Customer ID": "id",
        "Zip Code": "id",
        "country": "constant",
        "active": "boolean",
        "rating": "number",
        "spent": "number",
        "income": "number",
        "age": "number",
    }
    assert list(pd.read_csv(result["out"]))[:8] == list(pd.read_csv(customers))


def test_clusters_that_touch_are_found_by_all_columns_of_use(customers, capsys, monkeypatch):
    monkeypatch.setattr(SignLabeler, "disjoint", False)
    assert labelled_json(capsys, customers)["used"] == ["active", "rating", "spent", "income", "age"]
    words = ["--as", "Zip Code=category", "--as", "age=ignore"]
    assert labelled_json(capsys, customers, *words)["used"] == ["Zip Code", "active", "rating", "spent", "income"]
    assert labelled_json(capsys, customers, "--columns", "rating,age")["used"] == ["rating", "age"]
    assert labelled_json(capsys, customers, "--columns", "Customer ID,age")["used"] == ["Customer ID", "age"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--as", "colour=number"], "no column 'colour'"),
        (["--as", "age=colour"], "must be one of number, boolean, category, date, text, ignore, got 'colour'"),
        (["--as", "age"], "--as must be COLUMN=KIND"),
        (["--as", "age=number", "--columns", "rating"], "--columns does not select"),
        (["--as", "age=number", "--model", "model"], "--as is for training a model"),
        (["--columns", "colour"], "has no column 'colour'"),
        (["--missing", "guess"], "--missing"),
    ],
)
def test_what_means_nothing_is_refused(customers, capsys, words, message):
    assert main(["label", str(customers), *words]) != 0
    assert message in said(capsys)[1]


def test_a_table_of_categories_alone_is_labelled_without_a_certificate(tmp_path, capsys):
    rng = np.random.default_rng(0)
    pd.DataFrame(rng.integers(0, 2, (100, 3)), columns=["a", "b", "c"]).to_csv(tmp_path / "t.csv", index=False)
    assert labelled_json(capsys, tmp_path / "t.csv")["method"] == "information"
    assert main(["label", str(tmp_path / "t.csv"), "--method", "manifolds", "--force"]) != 0
    assert "needs a column of numbers in which rows can have gaps; --method information" in said(capsys)[1]
