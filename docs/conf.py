"""Sphinx configuration."""

import re
import sys
from importlib import import_module
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

project = "neuralbayes"
author = "the neuralbayes developers"
copyright = "2026, the neuralbayes developers"
version = release = package_version("neuralbayes")

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]  # gallery_look, paper


def commands() -> str:
    """The help of the commands with what stands below it and their examples, which reference.md includes."""
    app, pages = import_module("neuralbayes.cli").app, []
    for section in re.split(r"(?m)^## neuralbayes (?=\w)", app.generate_docs().split("\n## neuralbayes --")[0])[1:]:
        name, _, text = section.split("**Everywhere**")[0].partition("\n")
        below, _, shown = str(app[name].help_epilogue).replace("\\[", "[").partition("[bold]Examples[/bold]")
        examples = "\n".join(re.findall(r"\[cyan\](.*?)\[/cyan\]", shown))
        pages.append(f"### {name}\n{text}\n{below}\n```console\n{examples}\n```\n")
    return "\n".join(pages)


(DOCS / "commands.txt").write_text(commands(), encoding="utf-8")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
    "sphinx-mathjax-offline",  # formulas without internet access
    "sphinx_gallery.gen_gallery",
]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings contain them
autodoc_inherit_docstrings = False
templates_path = ["templates"]
numpydoc_show_class_members = False
nitpicky = True  # broken references are errors
exclude_patterns = ["_build", "gallery"]
html_theme = "furo"
html_title = "neuralbayes"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "reset_modules": ("matplotlib", "gallery_look.reset_pictures"),
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 340),
    "doc_module": ("neuralbayes",),
    "backreferences_dir": "examples/of",
    "remove_config_comments": True,
    "show_signature": False,
    "download_all_examples": False,
    "min_reported_time": 10_000,  # the time of an example depends on the machine
    "write_computation_times": False,
}

# Docstrings are written for readers of the code: (n, *spatial) and labels_ without the backslashes that
# reStructuredText needs. They are added here, after numpydoc (500), outside literals, strong text and examples.
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
