"""The checker of English finds what it looks for, and the pages have none of it."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKER = runpy.run_path(str(ROOT / "docs" / "prose.py"))


@pytest.mark.parametrize("path", CHECKER["pages"](), ids=lambda path: "/".join(path.parts[-2:]))
def test_a_page_has_no_phrase_that_is_to_be_rewritten(path: Path) -> None:
    assert CHECKER["problems"](path) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The number from which on rows are neighbours.",
        "Three groups were found in the table.",
        "It takes those that are left.",
        " ".join(["word"] * 41) + ".",
    ],
)
def test_a_phrase_or_a_long_sentence_is_found(sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKER["problems"].__globals__, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"# Title with groups\n\n{sentence}\n\n```python\ngroups = those that are\n```\n", encoding="utf-8")
    assert len(CHECKER["problems"](page)) == 1


def test_sentences_are_measured() -> None:
    found = CHECKER["measure"](["The model was saved by the command. You can load it again. It is what people want."])
    assert (found.sentences, found.mean_words) == (3, pytest.approx(17 / 3))
    assert (found.passive, found.inverted) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
