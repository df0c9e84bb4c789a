"""Each notebook of the tutorials is made from its example, and its cells compile."""

import ast
import json
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
GENERATOR = runpy.run_path(str(DOCS / "notebooks.py"))


@pytest.mark.parametrize("notebook", GENERATOR["NOTEBOOKS"])
def test_a_notebook_is_what_its_example_makes(notebook: str) -> None:
    text = (DOCS / notebook).read_text(encoding="utf-8")
    assert text == GENERATOR["notebook_text"](GENERATOR["NOTEBOOKS"][notebook])
    cells = json.loads(text)["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 5
    for source in code:
        ast.parse(source)


def test_every_notebook_is_listed() -> None:
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.glob("tutorials/*.ipynb")} == set(GENERATOR["NOTEBOOKS"])
