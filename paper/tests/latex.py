"""Count the equations, sections, statements, figures and tables of a paper in its LaTeX."""

import re
from collections import Counter

STATEMENTS = ("lemma", "theorem", "definition", "proposition")
NOT_NUMBERED = re.compile(r"\\begin\{(align\*|cases|tabular)\}.*?\\end\{\1\}", re.DOTALL)
COMMAND = re.compile(
    r"\\(begin|end|setcounter|caption|appendix|nonumber|\\|(?:sub)*section(?!\*))(?:\{([\w:]*)\*?\})?(?:\{(\d+)\})?"
)


def count(tex):
    """The numbers of the equations in each section and statement, and how many figures and tables there are."""
    sections, statements, counters, heading = {}, {}, Counter(), []
    appendix, in_align, numbered = False, False, True
    section = statement = floating = ""
    for command, argument, value in COMMAND.findall(NOT_NUMBERED.sub("", tex)):
        match command:
            case "\\" | "end" if in_align:
                if numbered:
                    counters["equation"] += 1
                    sections[section].append(counters["equation"])
                    if statement:
                        statements[statement].append(counters["equation"])
                in_align, numbered = command == "\\", True
            case "begin" if argument == "align":
                in_align = True
            case "begin" if argument in STATEMENTS:
                counters[argument] += 1
                statement = f"{argument} {counters[argument]}"
                statements.setdefault(statement, [])
            case "end" if argument in STATEMENTS:
                statement = ""
            case "begin" if argument in ("figure", "table"):
                floating = argument
            case "caption":
                counters[floating] += 1
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
                section = ".".join([first, *map(str, heading[1:])])
                sections[section] = []
    numbers = {"figures": counters["figure"], "tables": counters["table"]}
    return {"sections": sections, "statements": statements, **numbers}
