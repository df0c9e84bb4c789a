"""Check the English of README, the documentation and the help of the command line; `make lint` runs it.

python docs/prose.py            phrases that native readers would not write, and sentences that are too long
python docs/prose.py --measure FILE ...   length of sentences, passive and inverted clauses, also of other texts (.rst)
"""

from __future__ import annotations

import argparse
import ast
import re
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 40
"""Words that a sentence may have."""

GENERATED_PAGES = {"results.md"}
"""Pages that other generators write, from recorded experiments."""

LONG = 30
"""Words from which a sentence counts as long in a measurement."""

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
    r"(?<!row )(?<!process )(?<!control )\bgroups?\b(?! of rows)": "cluster, manifold or state",
    r"\ba (class|row|cluster|fit|side|step|layer|state|trial|core), \d|\blabels a class\b": "per class",
    r"\bis no (\w+)\b(?! (longer|more|less|gap|valley|chain|larger))": "is not a",
}
"""Phrases by a pattern, and what to write instead."""

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
CODE = re.compile(r"`[^`\n]+`(?!_)")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SENTENCE = re.compile(r"(?<=[.!?])[\"')*]*\s+(?=[A-Z\"'(*`0-9])|\n\s*\n|\n(?=\s*(?:[-*]|\d+\.)\s)|:\s*\n")


@dataclass(frozen=True)
class Measured:
    """Figures of one text."""

    sentences: int
    mean_words: float
    long: float
    passive: float
    inverted: float


def pages() -> list[Path]:
    """What is checked: README, the documentation without what it generates, and the commands."""
    docs = ROOT / "docs"
    return [
        ROOT / "README.md",
        *sorted(page for page in docs.glob("*.md") if page.name not in GENERATED_PAGES),
        *sorted((docs / "tutorials").glob("*.md")),
        *sorted((ROOT / "src" / "neuralbayes" / "cli").glob("*.py")),
    ]


def prose(path: Path) -> str:
    """The running text of a page, or the help of a command: no code, tables, formulas, headings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return "\n\n".join(_helps(text))
    if path.suffix == ".rst":
        return _of_rst(text)
    for pattern in (FENCED, GENERATED, COMMENT):
        text = pattern.sub("\n", text)
    text = LINK.sub(r"\1", CODE.sub("X", MATH.sub("X", text)))
    kept = [line for line in text.splitlines() if not line.lstrip().startswith(("|", "#", ":", "("))]
    return "\n".join(kept)


def _helps(source: str) -> Iterator[str]:
    """The docstrings of commands, which are their help."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            text = ast.get_docstring(node) or ""
            yield re.sub(r"^\w+_?$|^-+$|^Parameters$", "", text, flags=re.MULTILINE)


def _of_rst(text: str) -> str:
    """Paragraphs of reStructuredText: no directives, indented blocks, headings."""
    text = re.sub(r"^\.\. .*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(\s{2,}|>>>|[=\-~^\"*+|]{3,}).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^(.+)\n(?=\n?[=\-~^]{3,})", "", text, flags=re.MULTILINE)
    text = re.sub(r":\w+:`([^`<]*)(?:<[^>]*>)?`|``[^`]*``|`([^`<]*)(?:<[^>]*>)?`_*", "X", text)
    return "\n".join(line for line in text.splitlines() if not line.startswith((":", "|")))


def sentences(text: str) -> list[str]:
    """The sentences of a text; what has fewer than four words is none."""
    found = (" ".join(part.split()).lstrip("-*0123456789. ") for part in SENTENCE.split(text))
    return [sentence for sentence in found if len(words(sentence)) >= 4]


def words(sentence: str) -> list[str]:
    """Its words."""
    return re.findall(r"[A-Za-z][\w'-]*|\d[\d,.]*", sentence)


def problems(path: Path) -> list[str]:
    """What is to be rewritten in a page."""
    text = prose(path)
    flat = " ".join(text.split())
    found = [
        f"{path.relative_to(ROOT)}: {match.group()!r} in ...{flat[max(0, match.start() - 40) : match.end() + 30]}...: "
        f"write {instead}"
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, flat, re.IGNORECASE)
    ]
    too_long = [(len(words(sentence)), sentence) for sentence in sentences(text)]
    return found + [
        f"{path.relative_to(ROOT)}: {n} words, at most {LONGEST}: {sentence[:90]}..."
        for n, sentence in too_long
        if n > LONGEST
    ]


def measure(texts: list[str]) -> Measured:
    """Figures of texts together, shares of their sentences."""
    found = [sentence for text in texts for sentence in sentences(text)]
    lengths = [len(words(sentence)) for sentence in found]
    return Measured(
        len(found),
        statistics.mean(lengths),
        sum(n > LONG for n in lengths) / len(found),
        sum(bool(PASSIVE.search(sentence)) for sentence in found) / len(found),
        sum(bool(INVERTED.search(sentence)) for sentence in found) / len(found),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="*", type=Path, metavar="FILE", help="print figures of these files")
    options = parser.parse_args()
    if options.measure is not None:
        paths = options.measure or pages()
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
