"""The examples of the gallery compile, explain what they show, and use only public names; `make docs` runs them."""

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = sorted((DOCS / "gallery").rglob("*.py"))
REFERENCE = set((DOCS / "api.md").read_text(encoding="utf-8").split())


def public_names_used(tree: ast.Module) -> set[str]:
    """Names that an example uses from the library, as in the reference: "MIM", "plot.StatesDisplay"."""
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "neuralbayes":
            prefix = (node.module or "").removeprefix("neuralbayes").lstrip(".")
            used |= {f"{prefix}.{alias.name}".lstrip(".") for alias in node.names}
        match node:
            case ast.Attribute(ast.Attribute(ast.Name("nb"), module), name) if module in {
                "plot",
                "datasets",
            }:
                used.add(f"{module}.{name}")
            case ast.Attribute(ast.Name("nb"), name) if name not in {"plot", "datasets"}:
                used.add(name)
    return used


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 8
    assert {path.parent.name for path in EXAMPLES} == {"tutorials", "labels", "features", "objectives"}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_compiles_and_uses_public_names_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
    used = public_names_used(tree)
    assert used
    assert sorted(used - REFERENCE) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_ends_in_a_picture_and_words(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert path.name.startswith("plot_")
    assert re.match(r'"""\n(.+)\n=+\n\n\S', text), "a title and an introduction"
    after = text.rsplit("plt.show()", 1)[1]
    assert len(re.findall(r"^# \S", after, re.MULTILINE)) >= 2


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_reproducible(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for call in re.findall(r"nb\.(?:ManifoldLabeler|MIMEncoder)\([^\n]*", text):
        assert "random_state=" in call
    if "torch.optim" in text:
        assert "torch.manual_seed(" in text
