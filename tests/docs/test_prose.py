"""The checker of English finds awkward phrases in pages and docstrings, and no file has any."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKER = runpy.run_path(str(ROOT / "docs" / "prose.py"))


@pytest.mark.parametrize("path", CHECKER["pages"](), ids=lambda path: "/".join(path.parts[-2:]))
def test_no_phrase_has_to_be_rewritten(path: Path) -> None:
    assert CHECKER["problems"](path) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "The number from which on rows are neighbours.",
        "Three groups were found in the table.",
        "It takes those that are left.",
        "The claim speaks of two layers.",
        "It is None where there is no folder.",
        "The table has one value a seed.",
        " ".join(["word"] * 41) + ".",
    ],
)
def test_a_phrase_or_a_long_sentence_is_found(sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKER["problems"].__globals__, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(f"# Title with groups\n\n{sentence}\n\n```python\ngroups = those that are\n```\n", encoding="utf-8")
    assert len(CHECKER["problems"](page)) == 1


MODULE = '''"""{summary}"""

LIMIT = 3
"""{attribute}"""


def f(x):
    """Double a number.

    Parameters
    ----------
    x : float
        {parameter}

    Returns
    -------
    float

    Examples
    --------
    >>> f(1)  # those that are doubled
    2
    """
    return 2 * x
'''
GOOD = {"summary": "Arithmetic.", "attribute": "Maximum number.", "parameter": "The number."}


@pytest.mark.parametrize(
    "change",
    [
        {"summary": "What numbers become."},
        {"summary": "Numbers, none of which is told from another."},
        {"attribute": "Of the numbers."},
        {"attribute": "Numbers from which on it stops."},
        {"parameter": "That of the caller."},
        {"parameter": " ".join(["word"] * 41) + "."},
    ],
)
def test_docstrings_are_checked_too(change: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CHECKER["problems"].__globals__, "ROOT", tmp_path)
    module = tmp_path / "module.py"
    module.write_text(MODULE.format(**GOOD), encoding="utf-8")
    assert CHECKER["problems"](module) == []
    module.write_text(MODULE.format(**GOOD | change), encoding="utf-8")
    assert len(CHECKER["problems"](module)) == 1


def test_sentences_are_measured() -> None:
    found = CHECKER["measure"](["The model was saved by the command. You can load it again. It is what people want."])
    assert (found.sentences, found.mean_words) == (3, pytest.approx(17 / 3))
    assert (found.passive, found.inverted) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
