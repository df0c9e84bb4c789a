"""Check the English of README, the documentation, docstrings and comments; `make lint` runs it.

python docs/prose.py                       find phrases that native readers would not write, and long sentences
python docs/prose.py --measure PATH ...    measure sentence length, passive and inverted clauses (.md, .rst, .py)
"""

from __future__ import annotations

import argparse
import ast
import inspect
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 40
"""Maximum number of words in a sentence."""

LONG = 30
"""Number of words above which a sentence counts as long in a measurement."""


CODE_FOLDERS = ("src/neuralbayes", "benchmarks", "fuzz", "tests")
"""Folders whose docstrings are checked."""

INSTEAD = {
    r"from which on": "above which",
    r"from \d[\w-]* on\b": "at least; above",
    r"\bthose that\b": "name the thing again",
    r"\bwhat (\w+ )?is is\b": "turn the sentence around",
    r"\btwo of which\b|\bone of which\b(?! is| takes| becomes)": "two sentences",
    r"\bin the place of\b": "in place of; instead of",
    r"\bbeside\b": "next to; compared with",
    r"\bgoes on\b|\bgo on (with|from)\b": "continues",
    r"\bforetell|\bforetold\b": "predict",
    r"\bin the midst\b": "in the middle",
    r"\bcommonest\b": "most common",
    r"\bthe least (loss|number|size)\b": "lowest; smallest",
    r"\bmemory is not enough\b": "out of memory",
    r"\bso that all are taken\b": "so a single cluster is returned",
    r"\bnevertheless\b": "anyway",
    r"\btells? (\w+ )?from the rest\b": "sets apart from the rest",
    r"\b(is|are) to be had\b": "is available",
    r"\bof (its|their|his) own kind\b": "similar",
    r"% of log 2\b": "separation, of 100",
    r"\ba (class|row|cluster|fit|side|step|layer|state|trial|core), \d|\blabels a class\b": "per class",
    r"(?<!there )\bis no (?!longer|more|less|larger)\w+": "is not a",
    r"\b(none|nan|nat|empty|zero|nothing|false) where\b": "if",
    r"\bwhere (there|it|they) (is|are|was|were) (none|not)\b": "if there is none; without",
    r"\bspeaks? of\b": "mentions; is about",
    r"\b(is|are|was|were) to (be|have|get|do|say|stay|hold|give|take)\b": "must; should",
    r"\bone's own\b": "your own; its own",
    r"\bone (\w+ )?an? (seed|draw|table|run|epoch|line|step|image|pair|sample|process|core|trial)\b": "one per",
    r"\b(of|after|from|by|first|up to|up) so many\b": "give the number a name",
    r"\b(somebody|nobody)\b": "someone; no one; or name the subject",
    r"\btold from\b|\btold apart\b": "distinguished from; separated",
    r"\blikeliest\b|\bsurest\b": "most probable; most certain",
    r"\bmend(s|ed)?\b": "fix",
    r"\banew\b": "again",
    r"(?<!there )\b(is|are|was|were) (?-i:none)\b": "is not a",
    r"\bas (it|they) stands?\b": "unchanged",
    r"\bthe most that\b": "the maximum",
    r"\bnext to no(thing)?\b": "almost no",
    r"\bwhat (came|comes) of\b": "the result of",
    r"\bby whatever\b|\bwhatever has\b(?! started)": "name the subject",
}
"""Phrases by a pattern, and what to write instead."""

IN_PAGES = {r"(?<!row )(?<!process )(?<!control )\bgroups?\b(?! of rows)": "cluster, manifold or state"}
"""Phrases that only pages must not have."""

IN_DOCSTRINGS = {
    r"^(Of|That of|Those|What|Where|By what|In which|From which|Such) (?!to\b|as\b)": "start with a verb or a noun",
    r"^(Told|Taken|Said) ": "say who does it",
}
"""Openings of paragraphs in docstrings that make readers guess the subject."""

INVERTED = re.compile(
    r"\b(of|from|in|by|with|to|for|on) which\b|\bthose (that|of|which)\b|\b(is|are|was|were) what\b"
    r"|\bwhat (is|are|was|were)\b|\bnot .{1,30} but\b"
    r"|^(so|such|nor|neither|only|never|hardly) (is|are|was|were|does|do|did)\b|: (so|such) (is|are|does)\b"
    r"|\bbut that\b",
    re.IGNORECASE,
)
IRREGULAR = (
    "made|given|taken|found|kept|known|shown|drawn|learnt|told|held|left|set|put|cut|read|built|chosen|written|run|seen"
)
PASSIVE = re.compile(rf"\b(is|are|was|were|be|been|being)\s+(\w+ly\s+)?(\w+ed|{IRREGULAR})\b", re.IGNORECASE)

FENCED = re.compile(r"^(?:```|~~~|:::).*?^(?:```|~~~|:::)\s*$", re.MULTILINE | re.DOTALL)
GENERATED = re.compile(r"<!-- results/.*?<!-- end -->", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
MATH = re.compile(r"\$\$.*?\$\$|(?<!\\)\$[^$\n]+\$", re.DOTALL)
EXAMPLES = re.compile(r"^(?:Examples|See Also)\n-+\n|^>>> ", re.MULTILINE)
MATH_BLOCK = re.compile(r"^[ ]*\.\. math::.*\n(?:[ ]+\S.*\n|\n(?=[ ]{4,}))*", re.MULTILINE)
USAGE = re.compile(r"^    python .*$", re.MULTILINE)
UNDERLINED = re.compile(r"^\w[\w ]*\n-+$", re.MULTILINE)
TABLE = re.compile(r"^=+ .*?^=+ .*?^=+ .*?$|^=+ .*?^=+ .*?$", re.MULTILINE | re.DOTALL)
PARAMETER = re.compile(r"^[ ]*[\w*][\w*, ]*(?: : .*)?\n(?=[ ]+\S)|^[\w*, ]+ : .*$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`(?!_)")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SENTENCE = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z\"'(*`0-9])|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|:\s*\n")


@dataclass(frozen=True)
class Measured:
    """Figures of a text; shares are those of sentences."""

    sentences: int
    mean_words: float
    long: float
    passive: float
    inverted: float


def pages() -> list[Path]:
    """The checked files: pages in the root, the documentation, and the code."""
    docs = ROOT / "docs"
    return [
        *sorted(ROOT.glob("*.md")),
        *sorted(docs.glob("*.md")),
        *sorted((docs / "tutorials").glob("*.md")),
        *(path for folder in CODE_FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))),
    ]


def prose(path: Path) -> str:
    """The running text of a page or the docstrings of a module, without code, tables, formulas and headings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return "\n\n".join(docstrings(text))
    if path.suffix == ".rst":
        return _of_rst(text)
    for pattern in (FENCED, GENERATED, COMMENT):
        text = pattern.sub("\n", text)
    text = LINK.sub(r"\1", CODE.sub("X", MATH.sub("X", text)))
    kept = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", ":", "("))]
    return "\n".join(kept)


def docstrings(source: str) -> Iterator[str]:
    """The paragraphs of all docstrings, without examples, formulas and the names of parameters."""
    for statement in _statements(ast.parse(source)):
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            text = statement.value.value
            yield from _paragraphs(inspect.cleandoc(text)) if isinstance(text, str) else ()


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements below a node, without a walk through their expressions, which would take longer than parsing."""
    for name in ("body", "orelse", "handlers", "finalbody"):
        for child in getattr(node, name, ()):
            yield child
            yield from _statements(child)


def _paragraphs(docstring: str) -> Iterator[str]:
    """The paragraphs of a docstring; each description of a parameter is one."""
    text = USAGE.sub("\n\n", EXAMPLES.split(docstring)[0])
    text = MATH_BLOCK.sub("\n\n", UNDERLINED.sub("\n\n", TABLE.sub("\n\n", text)))
    text = PARAMETER.sub("\n\n", text)
    text = re.sub(r":\w+:`[^`]*`|``[^`]*``|`[^`]*`", "X", text)
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*[-*] )", text):
        if paragraph.strip():
            yield " ".join(paragraph.split())


def _of_rst(text: str) -> str:
    """Paragraphs of reStructuredText: no directives, indented blocks, headings."""
    text = re.sub(r"^\.\. .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(\s{2,}|>>>|[=\-~^\"*+|]{3,}).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n(?=\n?[=\-~^]{3,})", "", text, flags=re.MULTILINE)
    text = re.sub(r":\w+:`([^`<]*)(?:<[^>]*>)?`|``[^`]*``|`([^`<]*)(?:<[^>]*>)?`_*", "X", text)
    return "\n".join(line for line in text.splitlines() if not line.startswith((":", "|")))


def sentences(text: str) -> list[str]:
    """The sentences of a text with at least four words."""
    found = (" ".join(part.split()).lstrip("-*0123456789. ") for part in SENTENCE.split(text))
    return [sentence for sentence in found if len(words(sentence)) >= 4]


def words(sentence: str) -> list[str]:
    """Its words."""
    return re.findall(r"[A-Za-z][\w'-]*|\d[\d,.]*", sentence)


def problems(path: Path) -> list[str]:
    """The phrases and sentences of a file that should be rewritten."""
    name, text = path.relative_to(ROOT), prose(path)
    is_code = path.suffix == ".py"
    flat = " ".join(text.split())
    found = [
        f"{name}: {match.group()!r} in ...{flat[max(0, match.start() - 40) : match.end() + 30]}...: write {instead}"
        for pattern, instead in (INSTEAD if is_code else INSTEAD | IN_PAGES).items()
        for match in re.finditer(pattern, flat, re.IGNORECASE)
    ]
    found += [
        f"{name}: {paragraph[:70]!r}: {instead}"
        for paragraph in (text.split("\n\n") if is_code else [])
        for pattern, instead in IN_DOCSTRINGS.items()
        if re.search(pattern, paragraph)
    ]
    return found + [
        f"{name}: {n} words, at most {LONGEST}: {sentence[:90]}..."
        for sentence in sentences(text)
        if (n := len(words(sentence))) > LONGEST
    ]


def measure(texts: list[str]) -> Measured:
    """Figures of several texts together."""
    found = [sentence for text in texts for sentence in sentences(text)]
    lengths = [len(words(sentence)) for sentence in found]
    return Measured(
        len(found),
        statistics.mean(lengths),
        sum(n > LONG for n in lengths) / len(found),
        sum(bool(PASSIVE.search(sentence)) for sentence in found) / len(found),
        sum(bool(INVERTED.search(sentence)) for sentence in found) / len(found),
    )


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--measure", nargs="*", type=Path, metavar="PATH", help="print figures of these files and folders"
    )
    options = parser.parse_args()
    if options.measure is not None:
        paths = [file for path in options.measure for file in _files(path)] or pages()
        rows = [(path.name, measure([prose(path)])) for path in paths if sentences(prose(path))]
        for name, row in [*rows, ("all", measure([prose(path) for path in paths]))]:
            print(
                f"{name:<28} {row.sentences:>5} sentences {row.mean_words:5.1f} words {row.long:5.0%} long "
                f"{row.passive:5.0%} passive {row.inverted:5.0%} inverted"
            )
        return 0
    found = [problem for path in pages() for problem in problems(path)]
    print("\n".join(found), file=sys.stderr) if found else None
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
