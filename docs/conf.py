"""Sphinx configuration."""

import re
from importlib.metadata import version as package_version
from typing import Any

project = "neuralbayes"
author = "the neuralbayes developers"
copyright = "2026, the neuralbayes developers"
version = release = package_version("neuralbayes")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas without a network
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "neuralbayes"

# Docstrings are written for readers of the code: (n, *spatial) and labels_ without the backslashes that
# reStructuredText wants. They are added here, after numpydoc (500), outside of literals, strong text and examples.
KEPT_OR_SPECIAL = re.compile(r"``.+?``|`[^`]+`|\*\*.+?\*\*|\*(?=(?:spatial|features|rest)\b)|\b\w+_(?!\w)")


def escape_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "... ")):
            lines[i] = KEPT_OR_SPECIAL.sub(_escaped, line)


def _escaped(match: re.Match[str]) -> str:
    text = match.group()
    if text == "*":
        return "\\*"
    return text[:-1] + "\\_" if text.endswith("_") else text


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", escape_docstring, priority=600)
