"""`neuralbayes label` on raw tables: from the file to labels, and to a model for new files."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from neuralbayes.cli import main


def penguins(n: int = 240) -> pd.DataFrame:
    """Make a table of two kinds with a gap between their numbers, and with missing cells."""
    rng = np.random.default_rng(0)
    large = rng.random(n) < 0.4
    frame = pd.DataFrame(
        {
            "species": np.where(large, "Gentoo", rng.choice(["Adelie", "Chinstrap"], n)),
            "bill": rng.normal(np.where(large, 60, 40), 2.0).round(1),
            "mass": rng.normal(np.where(large, 6000, 3500), 250).round(0),
            "sex": rng.choice(["male", "female"], n),
            "egg date": pd.Timestamp("2007-11-01") + pd.to_timedelta(rng.integers(0, 40, n), unit="D"),
            "Individual ID": [f"N{i}A1" for i in range(n)],
            "region": "Anvers",
        }
    )
    return frame.mask(pd.DataFrame(rng.random(frame.shape) < 0.02, columns=frame.columns))


def titanic(n: int = 200) -> pd.DataFrame:
    """Make a table of clusters that touch, mostly with categories."""
    rng = np.random.default_rng(0)
    pclass = rng.choice([1, 2, 3], n)
    return pd.DataFrame(
        {
            "PassengerId": np.arange(1, n + 1),
            "Pclass": pclass,
            "Sex": rng.choice(["male", "female"], n),
            "Age": np.where(rng.random(n) < 0.2, np.nan, rng.gamma(6.0, 5.0, n).round()),
            "Fare": np.exp(rng.normal(4 - pclass, 0.8)).round(2),
            "Cabin": np.where(rng.random(n) < 0.8, None, "C85"),
            "Embarked": rng.choice(["S", "C", "Q"], n, p=[0.7, 0.2, 0.1]),
        }
    )


def label(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    assert main(["label", *map(str, words), "--no-picture", "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def kinds(result: Any) -> dict[str, str]:
    return {column["name"]: column["kind"] for column in result["columns"]}


def test_groups_with_a_gap_are_certified_by_the_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, path, model = penguins(), tmp_path / "penguins.csv", tmp_path / "model"
    frame.to_csv(path, index=False)
    result = label(capsys, path, "--save", model)
    assert kinds(result) == {
        "species": "category",
        "bill": "number",
        "mass": "number",
        "sex": "boolean",
        "egg date": "date",
        "Individual ID": "id",
        "region": "constant",
    }
    assert (result["method"], result["n_clusters"], result["disjoint"]) == ("manifolds", 2, True)
    assert result["used"] == ["bill", "mass"]
    assert any("rows with missing numbers were labelled, but not trained on" in note for note in result["notes"])
    labels = pd.read_csv(result["out"])["label"].to_numpy()
    known = frame["species"].notna().to_numpy()
    assert ((labels == 1) == (frame["species"] == "Gentoo").to_numpy())[known].mean() > 0.97

    new = tmp_path / "new.csv"
    frame[["mass", "region", "bill"]].head(20).assign(extra="x").to_csv(new, index=False)
    again = label(capsys, new, "--model", model)
    np.testing.assert_array_equal(pd.read_csv(again["out"])["label"], labels[:20])
    assert kinds(again)["extra"] == "ignored"


def test_groups_that_touch_are_found_by_all_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame, path, model = titanic(), tmp_path / "titanic.csv", tmp_path / "model"
    frame.to_csv(path, index=False)
    result = label(capsys, path, "--clusters", "3", "--save", model, "--as", "Pclass=category")
    assert kinds(result) == {
        "PassengerId": "id",
        "Pclass": "category",
        "Sex": "boolean",
        "Age": "number",
        "Fare": "number",
        "Cabin": "empty",
        "Embarked": "category",
    }
    assert result["method"] == "information"
    assert result["verdict"] is None  # the number was given
    assert all(0.0 <= state["stability"] <= 1.0 for state in [result, *result["states"]])
    whole = pd.read_csv(result["out"])

    new = tmp_path / "new.parquet"
    frame[frame.columns[::-1]].assign(Embarked="Z").to_parquet(new)
    again = label(capsys, new, "--model", model)
    assert any("'Embarked': 200 cells" in note for note in again["notes"])
    frame[frame.columns[::-1]].to_parquet(new)
    for out in ("a.parquet", "b.csv"):  # in blocks, and in memory
        again = label(capsys, new, "--model", model, "--out", tmp_path / out)
        read = pd.read_parquet if out.endswith("parquet") else pd.read_csv
        np.testing.assert_array_equal(read(again["out"])["label"], whole["label"])

    frame.drop(columns="Age").to_csv(tmp_path / "bad.csv", index=False)
    assert main(["label", str(tmp_path / "bad.csv"), "--model", str(model)]) == 2
    error = " ".join(capsys.readouterr().err.split())
    assert "has no column 'Age'" in error
    assert "with empty cells" in error


@pytest.mark.parametrize("missing", ["impute", "mask", "drop"])
def test_missing_cells_are_handled_as_asked(missing: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    titanic().to_csv(tmp_path / "t.csv", index=False)
    result = label(capsys, tmp_path / "t.csv", "--clusters", "2", "--method", "information", "--missing", missing)
    assert pd.read_csv(result["out"])["label"].notna().all()
    assert any("not trained on" in note for note in result["notes"]) == (missing == "drop")


TABLES = {
    "categories alone": pd.DataFrame({"a": ["x", "y"] * 20, "b": ["u", "v", "w", "u"] * 10}),
    "one column": pd.DataFrame({"a": np.random.default_rng(0).normal(size=60)}),
    "three rows": pd.DataFrame({"a": [1.0, 2.0, 5.0], "b": ["x", "y", "x"]}),
    "equal rows": pd.DataFrame({"a": [1.0] * 30, "b": ["x"] * 30}),
    "words and holes": pd.DataFrame({"a": ["x", None, "y", "y"] * 8, "b": [1.0, 2.0, None, 3.5] * 8}),
}


@pytest.mark.parametrize("name", TABLES)
def test_there_is_an_answer_and_a_next_step(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TABLES[name].to_csv(tmp_path / "t.csv", index=False)
    assert main(["label", str(tmp_path / "t.csv"), "--no-picture"]) == 0
    out = capsys.readouterr().out
    assert "\nnext     " in out
    assert ("one cluster: all rows are equal" in out) == (name == "equal rows")


def test_arrays_with_holes_are_labelled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::7, 1] = np.nan
    np.save(tmp_path / "x.npy", X)
    result = label(capsys, tmp_path / "x.npy", "--clusters", "2", "--save", tmp_path / "model")
    again = label(capsys, tmp_path / "x.npy", "--model", tmp_path / "model", "--force")
    assert result["n_clusters"] == again["n_clusters"] == 2
