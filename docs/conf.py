"""Sphinx configuration."""

from importlib.metadata import version as package_version

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
]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
autosummary_generate = True
numpydoc_show_class_members = False
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "neuralbayes"
html_static_path = ["pictures"]
