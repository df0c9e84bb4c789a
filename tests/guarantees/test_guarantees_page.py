"""docs/guarantees.md names tests and commands; each must exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
COMMANDS = sorted(set(re.findall(r"`python (benchmarks/[\w/]+\.py)[^`]*`", TEXT)))
SCRIPTS = [script for script in COMMANDS if script.startswith("benchmarks/guarantees/")]
PROOF = re.compile(r"`tests/\S+::\w+`|`python benchmarks/[^`]+`")


@pytest.mark.parametrize(("file", "test"), TESTS)
def test_a_test_that_the_page_names_exists_and_is_marked_slow_where_the_page_says_so(file: str, test: str) -> None:
    found = re.search(rf"((?:^@.*\n)*)^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert found
    said = re.search(rf"\*slow\*[^|]*`{re.escape(file)}::{test}`", TEXT)
    assert ("mark.slow" in found[1]) == bool(said)


@pytest.mark.parametrize("script", COMMANDS)
def test_a_script_that_the_page_names_exists(script: str) -> None:
    assert (ROOT / script).is_file()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_command_that_the_page_names_exists_and_its_result_is_on_the_page(script: str) -> None:
    source = (ROOT / script).read_text(encoding="utf-8")
    assert '"--record"' in source
    assert f'"command": "python {script}"' in source
    assert f"<!-- results/guarantees/{Path(script).stem}.json" in TEXT


def test_every_promise_has_a_proof() -> None:
    tables = TEXT.split("| guarantee | checked by |\n| --- | --- |\n")[1:]
    promises = [line for table in tables for line in table.split("\n\n")[0].splitlines()]
    assert len(promises) > 25
    assert [line for line in promises if not PROOF.search(line)] == []


def test_every_make_target_that_the_page_names_exists() -> None:
    targets = set(re.findall(r"`make ([a-z-]+)`", TEXT))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_the_page_was_found_to_name_something() -> None:
    assert len(TESTS) > 25
    assert len(SCRIPTS) == 6
