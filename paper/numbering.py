"""Count the equations, sections, statements, figures and tables of the paper in its LaTeX.

    python -m paper.numbering neural-bayes.tex

writes their numbers to numbering.json, against which a test checks every number that the repository cites.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

NUMBERS = Path(__file__).with_suffix(".json")
STATEMENTS = ("lemma", "theorem", "definition", "proposition")
NOT_NUMBERED = re.compile(r"\\begin\{(align\*|cases|tabular)\}.*?\\end\{\1\}", re.DOTALL)
COMMAND = re.compile(
    r"\\(begin|end|label|setcounter|caption|appendix|nonumber|\\|(?:sub)*section(?!\*))(?:\{([\w:]*)\*?\})?(?:\{(\d+)\})?"
)


def count(tex: str) -> dict[str, Any]:
    """Number what LaTeX would number.

    Returns
    -------
    dict
        sections, statements: the numbers of the equations in each, as ``{"4.2": [11, 12, 13], ...}``.
        figures, tables: how many there are.
        labels: the number that each label stands for.
    """
    sections: dict[str, list[int]] = {}
    statements: dict[str, list[int]] = {}
    labels: dict[str, str] = {}
    counters: Counter[str] = Counter()
    heading: list[int] = []
    pending: list[str] = []  # labels in an unnumbered row belong to the next number
    n_equations, appendix, in_align, numbered = 0, False, False, True
    section = statement = floating = last = ""
    for command, argument, value in COMMAND.findall(NOT_NUMBERED.sub("", tex)):
        match command:
            case "\\" | "end" if in_align:
                if numbered:
                    n_equations += 1
                    sections[section].append(n_equations)
                    if statement:
                        statements[statement].append(n_equations)
                    labels.update(dict.fromkeys(pending, str(n_equations)))
                    pending = []
                in_align, numbered = command == "\\", True
            case "begin" if argument == "align":
                in_align = True
            case "begin" if argument in STATEMENTS:
                counters[argument] += 1
                last = str(counters[argument])
                statement = f"{argument} {last}"
                statements.setdefault(statement, [])
            case "end" if argument in STATEMENTS:
                statement = ""
            case "begin" if argument in ("figure", "table"):
                floating = argument
            case "caption":
                counters[floating] += 1
                last = str(counters[floating])
            case "label" if in_align:
                pending.append(argument)
            case "label":
                labels[argument] = last
            case "nonumber":
                numbered = False
            case "setcounter":
                counters[argument] = int(value)
            case "appendix":
                appendix, heading = True, []
            case "section" | "subsection" | "subsubsection":
                depth = command.count("sub")
                heading = [*heading, 0, 0][: depth + 1]
                heading[depth] += 1
                first = chr(ord("A") + heading[0] - 1) if appendix else str(heading[0])
                section = last = ".".join([first, *map(str, heading[1:])])
                sections[section] = []
    numbers = {"figures": counters["figure"], "tables": counters["table"]}
    return {"sections": sections, "statements": statements, "labels": labels, **numbers}


if __name__ == "__main__":
    found = count(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = (f"{json.dumps(key)}: {json.dumps(value, sort_keys=key == 'labels')}" for key, value in found.items())
    NUMBERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
