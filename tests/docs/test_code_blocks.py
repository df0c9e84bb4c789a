"""Every Python block of the README and the documentation runs and prints what its comments say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPE = re.compile(r"\([\d, ]+\)$")
PRINTED = re.compile(r"-?[\d\[]|True|False|\w+$|.* > ")  # other comments explain what is printed


def statements(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a page, numbered as there, each with the comment at the end of its last line."""
    for block in BLOCK.finditer(text):
        rows = block[1].splitlines()
        for node in ast.parse(block[1]).body:
            found = re.search(r"  # (.*)$", rows[(node.end_lineno or 1) - 1])
            yield ast.increment_lineno(node, text[: block.start(1)].count("\n")), found[1] if found else ""


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text("utf-8"))], ids=lambda p: p.stem
)
def test_the_blocks_of_a_page_run_one_after_the_other_and_print_what_they_say(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "data"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for node, comment in statements(page.read_text(encoding="utf-8")):
        exec(compile(ast.Module([node], []), str(page), "exec"), namespace)
        printed = capsys.readouterr().out.strip()
        match node:
            case ast.Expr(ast.Call(ast.Name("print"))) if PRINTED.match(comment):
                assert printed == comment, f"{page.name}, line {node.lineno}"
            case ast.Assign([ast.Name(name)]) if SHAPE.match(comment):
                assert str(namespace[name].shape) == comment, f"{page.name}, line {node.lineno}"


def test_what_is_said_to_be_printed_is_found():
    text = "Words\n```python\nx = [1,\n     2]  # two\nprint(x)  # [1, 2]\n```\n"
    assert [(node.lineno, comment) for node, comment in statements(text)] == [(3, "two"), (5, "[1, 2]")]
