"""docs/guarantees.md names tests, scripts and targets; each must exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")


def test_every_test_that_the_page_names_exists() -> None:
    named = set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT))
    files = {file: (ROOT / file).read_text(encoding="utf-8") for file, _ in named if (ROOT / file).is_file()}
    assert [pair for pair in sorted(named) if f"def {pair[1]}(" not in files.get(pair[0], "")] == []


def test_every_script_and_target_that_the_page_names_exists() -> None:
    scripts = set(re.findall(r"`python (benchmarks/[\w/]+\.py)[^`]*`", TEXT))
    assert [script for script in scripts if not (ROOT / script).is_file()] == []
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([a-z-]+)`", TEXT))
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_every_promise_has_a_proof() -> None:
    tables = TEXT.split("| guarantee | checked by |\n| --- | --- |\n")[1:]
    promises = [line for table in tables for line in table.split("\n\n")[0].splitlines()]
    assert promises
    assert [line for line in promises if not re.search(r"`tests/\S+::\w+`|`python benchmarks/[^`]+`", line)] == []
