"""Every number of the paper that the repository cites exists and stands where it is said to stand.

numbering.json holds the numbers. Where the LaTeX of the paper is available, it is counted again: at NEURAL_BAYES_TEX,
or at ../shared/paper/neural-bayes.tex beside the repository.
"""

import json
import os
import re
from itertools import chain
from pathlib import Path

import pytest
from latex import count

ROOT = Path(__file__).parents[2]
TEX = Path(os.environ.get("NEURAL_BAYES_TEX", ROOT.parent / "shared" / "paper" / "neural-bayes.tex"))
PAPER = json.loads(Path(__file__).with_name("numbering.json").read_text(encoding="utf-8"))
SECTIONS, STATEMENTS = PAPER["sections"], PAPER["statements"]
N_EQUATIONS = max(chain.from_iterable(SECTIONS.values()))
PAGE = ROOT / "docs" / "paper.md"
SOURCES = [
    *sorted((ROOT / "docs").rglob("*.md")),
    *(
        path
        for folder in ("src", "paper", "tests", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path.name != Path(__file__).name
    ),
]

LIST = r"(\d+(?:(?:[-\u2013]| to |, | and | or )\d+)*)\b"
EQUATIONS = re.compile(rf"\bEqs?\. {LIST}")
STATEMENT = re.compile(r"\b(Lemma|Theorem|Proposition|Definition) (\d+)", re.IGNORECASE)
PLACE = re.compile(r"\b(?:[Ss]ections?|[Aa]ppendix) ([1-7A-Z](?:\.\d)*)\b")
TOGETHER = re.compile(
    rf"\b((?:Lemma|Theorem|Proposition|Section|Appendix) [\dA-Z](?:\.\d)*),? (?:\(|drops the )?Eqs?\. {LIST}",
    re.IGNORECASE,
)


def numbers(text):
    """The numbers of a list such as "3, 4 and 43-56"."""
    found = []
    for part in re.split(r", | and | or ", text):
        first, *last = map(int, re.split(r"[-\u2013]| to ", part))
        found += range(first, (last[0] if last else first) + 1)
    return found


def equations_of(place):
    """The equations of "Theorem 3" or "Appendix C.1"; a section includes its subsections."""
    kind, number = place.lower().split()
    if kind in ("section", "appendix"):
        inside = [key for key in SECTIONS if key.lower() == number or key.lower().startswith(f"{number}.")]
        return sorted(chain.from_iterable(SECTIONS[key] for key in inside))
    return list(STATEMENTS[f"{kind} {number}"])


def citations(pattern):
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        for match in pattern.finditer(text):
            yield f"{path.relative_to(ROOT)}: {match.group()!r}", match


def wrong(pattern, is_right):
    return [where for where, match in citations(pattern) if not is_right(match)]


@pytest.mark.skipif(not TEX.is_file(), reason="the LaTeX of the paper is not part of the repository")
def test_the_numbers_are_those_of_the_latex():
    assert count(TEX.read_text(encoding="utf-8")) == PAPER


def test_every_equation_that_is_cited_exists():
    assert wrong(EQUATIONS, lambda match: set(numbers(match[1])) <= set(range(1, N_EQUATIONS + 1))) == []


def test_every_statement_that_is_cited_exists():
    assert wrong(STATEMENT, lambda match: f"{match[1].lower()} {match[2]}" in STATEMENTS) == []


def test_every_section_and_appendix_that_is_cited_exists():
    assert wrong(PLACE, lambda match: match[1] in SECTIONS) == []


def test_an_equation_that_is_cited_with_its_place_stands_there():
    """Equations of the proof count too; those before a theorem in its appendix are of the appendix."""
    assert wrong(TOGETHER, lambda match: set(numbers(match[2])) <= set(equations_of(match[1]))) == []


def test_the_page_maps_every_equation_to_the_place_where_it_stands():
    mapped = {}
    for line in PAGE.read_text(encoding="utf-8").split("## Networks")[0].splitlines():
        if (match := re.match(rf"\| ([A-Z]\w+ [\dA-Z.]+), Eqs?\. {LIST}", line)) is not None:
            mapped.setdefault(match[1], []).extend(numbers(match[2]))
    assert sorted(set(chain.from_iterable(mapped.values()))) == list(range(1, N_EQUATIONS + 1))
    for place, found in mapped.items():
        if place.startswith(("Section", "Appendix")):
            assert set(found) <= set(equations_of(place)), place
        else:
            assert sorted(found) == equations_of(place), place


def test_the_pages_map_every_statement_section_of_experiments_figure_and_table():
    text = PAGE.read_text(encoding="utf-8")
    cited = {f"{kind.lower()} {number}" for kind, number in STATEMENT.findall(text)}
    assert set(STATEMENTS) <= cited
    experiments = (ROOT / "paper" / "README.md").read_text(encoding="utf-8").split("```")[0].lower()
    for kind in ("figure", "table"):
        lists = re.findall(rf"\| {kind}s? ([\d, and]+):", experiments)
        assert {int(n) for found in lists for n in re.findall(r"\d", found)} == {*range(1, PAPER[f"{kind}s"] + 1)}
    places = set(PLACE.findall(text))
    assert {key for key in SECTIONS if key.isalpha()} - places == {"D", "E", "F", "C"}  # proofs, and C by its parts
