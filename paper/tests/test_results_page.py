"""The results page is what the records say."""

from pathlib import Path

import pytest
from paper import NAMES, load_experiment
from paper.page import compose

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page():
    return compose(ROOT / "results" / "reproduce")


def test_the_page_of_this_repository_is_written_from_its_records(page):
    text, pictures = page
    assert (ROOT / "docs" / "results.md").read_text(encoding="utf-8") == text, "run `python -m paper page`"
    there = {path.name for path in (ROOT / "docs" / "pictures").glob("results-*.png")}
    assert there == {f"results-{picture.name}.png" for picture in pictures}


def test_every_claim_has_the_papers_words_a_rule_and_a_verdict_in_its_row(page):
    text, _ = page
    claims = [claim for name in NAMES for claim in load_experiment(name).claims([])]
    assert f"**Of {len(claims)} claims: " in text
    for claim in claims:
        assert f"| “{claim.words}” (" in text
        assert claim.rule in text


def test_the_page_lists_what_was_not_run_and_the_settings_that_differ(page):
    text, _ = page
    for words in ("CIFAR-100", "STL-10", "BS 4000", "authors' settings", "appendix H at full width"):
        assert words in text.split("## Not run")[1].split("\n## ")[0]
    differ = text.split("## Settings that differ")[1].split("\n## ")[0]
    assert "encoder: **a quarter of the channels** (200-500-700-1000)" in differ
    assert "beta: **0.5** (4)" in differ
    assert "at laptop scale" in text


def test_a_folder_without_records_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no recorded runs"):
        compose(tmp_path)
