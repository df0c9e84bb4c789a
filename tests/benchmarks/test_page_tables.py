"""The numbers of the pages equal the committed results."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["README.md", "docs/benchmarks.md"])
def test_a_page_is_what_its_generator_makes_of_the_committed_results(page: str) -> None:
    generator = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))
    text = (ROOT / page).read_text(encoding="utf-8")
    assert page in generator["PAGES"]
    assert generator["MARKED"].search(text)
    assert generator["with_tables"](text) == text
