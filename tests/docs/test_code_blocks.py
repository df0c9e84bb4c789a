"""Every Python block of the README and the documentation runs and prints what its comments say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import neuralbayes as nb

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tutorials").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHAPE = re.compile(r"\([\d, ]+\)$")
PRINTED = re.compile(r"[\d\[]|True|False")


def blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the number of its first line."""
    return [(text[: match.start(1)].count("\n") + 1, match.group(1)) for match in BLOCK.finditer(text)]


def statements(line: int, code: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements of a block, numbered as in the page, each with the comment at the end of its last line."""
    rows = code.splitlines()
    for node in ast.parse(code).body:
        found = re.search(r"  # (.*)$", rows[(node.end_lineno or 1) - 1])
        yield ast.increment_lineno(node, line - 1), found[1] if found else ""


README = blocks(PAGES[0].read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: "/".join(page.parts[-2:]))
def test_the_blocks_of_a_page_run_one_after_the_other_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "data"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        for node, comment in statements(line, code):
            exec(compile(ast.Module([node], []), str(page), "exec"), namespace)
            printed = capsys.readouterr().out.strip()
            match node:
                case ast.Expr(ast.Call(ast.Name("print"))) if PRINTED.match(comment):
                    assert printed == comment, f"{page.name}, line {node.lineno}"
                case ast.Assign([ast.Name(name)]) if SHAPE.match(comment):
                    shape = str(tuple(getattr(namespace[name], "shape", ())))
                    assert shape == comment, f"{page.name}, line {node.lineno}"


def test_what_is_said_to_be_printed_is_found() -> None:
    code = "x = [1,\n     2]  # two\nprint(x)  # [1, 2]\n"
    assert [(node.lineno, comment) for node, comment in statements(11, code)] == [(11, "two"), (13, "[1, 2]")]


def test_the_readme_shows_a_picture_then_the_installation_three_blocks_the_commands_and_the_peers() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(README) == 3
    order = ["![", "pip install torch", "```python", "nb.Objective", "make demo", "make test", "| k-means |"]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "](" in text[: text.index("\n## ")], "the picture comes before the first heading"
    assert len(text.splitlines()) < 150


def test_the_first_page_shows_its_picture_and_three_blocks_before_any_heading_but_its_own() -> None:
    top = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").split("\n## ")[0]
    assert len(blocks(top)) == 3
    assert top.index("![") < top.index("```")


def test_a_new_objective_takes_at_most_twenty_lines() -> None:
    (code,) = (code for _, code in README if "nb.Objective" in code)
    assert "nb.fit(" in code
    assert len(code.strip().splitlines()) <= 20


@pytest.mark.parametrize("module", ["", "datasets", "plot", "training"])
def test_every_public_name_is_in_the_reference(module: str) -> None:
    listed = set((ROOT / "docs" / "api.md").read_text(encoding="utf-8").split())
    if not module:
        public = set(nb.__all__) - {"datasets", "plot"}
    else:
        names = __import__(f"neuralbayes.{module}", fromlist=["__all__"]).__all__
        public = {f"{module}.{name}" for name in names}
    assert sorted(public - listed) == []
