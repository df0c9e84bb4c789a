"""The numbers of the pages equal the committed results."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from records import ROOT
from tables import MARKED, PAGES, with_tables

COMMENT = re.compile(r"<!--.*?-->")
RECORD = re.compile(r"results/[\w/*.-]+(?<![.,])")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_what_its_generator_makes_of_the_committed_results(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    assert MARKED.search(text)
    assert with_tables(text) == text


def test_no_sentence_beside_the_generated_ones_names_a_record() -> None:
    pages = "".join((ROOT / page).read_text(encoding="utf-8") for page in PAGES)
    assert "<!-- results/" not in MARKED.sub("", pages)


def test_every_record_that_a_page_names_exists() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    comments = [one for page in pages for one in COMMENT.findall(page.read_text(encoding="utf-8"))]
    names = {name for comment in comments for name in RECORD.findall(comment)}
    assert names
    assert not {name for name in names if not list(ROOT.glob(name))}
