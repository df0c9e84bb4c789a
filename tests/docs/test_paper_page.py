"""docs/paper.md names functions and tests; each must exist."""

import re
from pathlib import Path

import pytest

import neuralbayes as nb
from neuralbayes import bayes
from neuralbayes.networks import hidden

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
NAMES = sorted(set(re.findall(r"`([A-Za-z_]+)(?:\([^`]*\))?`", TEXT.split("## Where the paper")[0])))


@pytest.mark.parametrize(("file", "test"), TESTS)
def test_a_test_that_the_page_names_exists(file: str, test: str) -> None:
    assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_a_function_that_the_page_names_exists(name: str) -> None:
    owners = (nb, bayes, hidden, nb.MIM)
    assert any(hasattr(owner, name) for owner in owners)


def test_the_page_was_found_to_name_something() -> None:
    assert len(TESTS) > 20
    assert "mutual_information" in NAMES
