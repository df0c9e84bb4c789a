"""The record of `make mutants` agrees with docs/guarantees.md."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECORD = json.loads((ROOT / "results" / "guarantees" / "mutants.json").read_text(encoding="utf-8"))
FILES = [row["file"] for row in RECORD["files"]]


@pytest.mark.parametrize(
    "core",
    [
        "bayes",
        "gradients/exact",
        "gradients/passes",
        "gradients/microbatches",
        "manifolds/certificate",
        "data/columns",
        "clusters/merging",
    ],
)
def test_the_core_is_in_the_record(core: str) -> None:
    assert f"src/neuralbayes/{core}.py" in FILES


def test_every_objective_is_in_the_record() -> None:
    objectives = (ROOT / "src" / "neuralbayes" / "objectives").glob("[a-z]*.py")
    formulas = {str(path.relative_to(ROOT)) for path in objectives if path.name != "reference.py"}  # it only has names
    assert formulas <= set(FILES)


def test_the_tests_notice_at_least_95_percent_of_the_changes() -> None:
    assert sum(row["mutants"] for row in RECORD["files"]) > 1000
    assert sum(row["killed"] for row in RECORD["files"]) >= 0.95 * sum(row["mutants"] for row in RECORD["files"])


@pytest.mark.parametrize("row", RECORD["files"], ids=FILES)
def test_every_change_that_is_not_noticed_is_named_as_equivalent(row: dict) -> None:
    assert len(row["survivors"]) == row["mutants"] - row["killed"]
    assert [survivor["change"] for survivor in row["survivors"] if not survivor["equivalent"]] == []
    assert all(re.fullmatch(rf"{re.escape(row['file'])}:\d+", survivor["place"]) for survivor in row["survivors"])
