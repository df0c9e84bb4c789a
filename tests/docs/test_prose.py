"""Phrases that a native reader would not write: none in the README, the documentation and the docstrings."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]

INSTEAD = {
    r"from which on": "above which",
    r"\bthose that\b": "name the thing again",
    r"\bin the place of\b": "in place of",
    r"\b(goes|go) on (with|from)\b": "continues",
    r"\bcommonest\b": "most common",
    r"\bmemory is not enough\b": "out of memory",
    r"\bso that all are taken\b": "so a single cluster is returned",
    r"\b(is|are) to be had\b": "is available",
    r"\blabels a class\b": "labels per class",
    r"\b(none|nan|empty|zero|false) where\b": "if",
    r"\bspeaks? of\b": "is about",
    r"\bone's own\b": "your own",
    r"\bone (\w+ )?an? (seed|draw|table|run|epoch|step|image|pair|sample|process|core)\b": "one per",
    r"\b(after|from|by|up to) so many\b": "give the number a name",
    r"\b(somebody|nobody)\b": "someone; no one",
    r"\btold (from|apart)\b": "distinguished from",
    r"\b(likeliest|surest)\b": "most probable; most certain",
    r"\banew\b": "again",
    r"\bnext to no(thing)?\b": "almost no",
}
"""Phrases by a pattern, and what to write instead."""

NOT_PROSE = re.compile(
    r"^(```|~~~).*?^(```|~~~)\s*$|<!--.*?-->|^\|.*?$|`[^`\n]+`|\$[^$\n]+\$", re.MULTILINE | re.DOTALL
)
"""Code, comments, tables and formulas of a page."""


def prose() -> Iterator[tuple[str, str]]:
    """Each page and docstring with its place."""
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "docs" / "tutorials").glob("*.md")):
        yield page.name, NOT_PROSE.sub(" ", page.read_text(encoding="utf-8"))
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "paper").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", NOT_PROSE.sub(" ", node.value.value.split(">>> ")[0])


def awkward(text: str) -> list[str]:
    return [
        f"{match.group()!r}: write {instead}"
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, " ".join(text.split()), re.IGNORECASE)
    ]


def test_an_awkward_phrase_is_found() -> None:
    assert len(awkward("The number from which on nobody is told apart.")) == 3


def test_no_page_and_no_docstring_has_an_awkward_phrase() -> None:
    assert [f"{place}: {problem}" for place, text in prose() for problem in awkward(text)] == []
