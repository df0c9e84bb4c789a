"""The numbers of the pages equal the committed results."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["README.md", "docs/benchmarks.md"]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_generator_makes_of_the_committed_results(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    generator = runpy.run_path(str(ROOT / "benchmarks" / "tables.py"))
    text = (ROOT / page).read_text(encoding="utf-8")
    assert generator["MARKED"].search(text)
    assert generator["with_tables"](text) == text
    assert set(generator["PAGES"]) == set(PAGES)
