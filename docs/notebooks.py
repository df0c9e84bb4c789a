"""Write the notebooks of docs/tutorials from examples of the gallery, which `make docs` runs.

python docs/notebooks.py
"""

import json
from pathlib import Path
from typing import Any

from sphinx_gallery.gen_gallery import DEFAULT_GALLERY_CONF
from sphinx_gallery.notebook import jupyter_notebook
from sphinx_gallery.py_source_parser import split_code_and_text_blocks

DOCS = Path(__file__).parent
NOTEBOOKS = {
    "tutorials/wine.ipynb": "gallery/tutorials/plot_wine.py",
    "tutorials/paper_mim.ipynb": "gallery/tutorials/plot_paper_mim.py",
    "tutorials/paper_dml.ipynb": "gallery/tutorials/plot_paper_dml.py",
}
"""Notebooks, and the example that each is made from."""


def notebook_text(example: str) -> str:
    """Make the notebook of an example, as JSON without outputs."""
    path = DOCS / example
    _, blocks = split_code_and_text_blocks(str(path))
    notebook: dict[str, Any] = jupyter_notebook(blocks, dict(DEFAULT_GALLERY_CONF), str(path.parent))
    notebook["metadata"]["language_info"] = {"name": "python"}
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


if __name__ == "__main__":
    for notebook, example in NOTEBOOKS.items():
        (DOCS / notebook).write_text(notebook_text(example), encoding="utf-8")
