"""docs/paper.md names functions and files, and paper/README.md experiments; each exists, and none is left out."""

import re
from pathlib import Path

from paper import NAMES, reference

import neuralbayes as nb
from neuralbayes import bayes
from neuralbayes.data import normalize
from neuralbayes.manifolds import separation
from neuralbayes.networks import encoders, hidden

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "paper.md").read_text(encoding="utf-8")
CODE = re.findall(r"`([^`]+)`", TEXT.split("## Experiments")[0])
NAMED = {name for code in CODE for name in re.findall(r"(?:^|, |\.)([A-Za-z_]\w*)(?=$|,|\()", code)}


def test_functions_and_files_that_the_page_names_exist():
    owners = (reference, nb, nb.MIM, bayes, encoders, hidden, normalize, separation)
    assert {name for name in NAMED if not any(hasattr(owner, name) for owner in owners)} == set()
    files = set(re.findall(r"(?:\]\(|\]: )(\.\./[\w/.]+)", TEXT))
    assert len(files) > 20
    assert [name for name in sorted(files) if not (DOCS / name).resolve().is_file()] == []
    assert set(re.findall(r"\]\[([\w-]+)\]", TEXT)) == set(re.findall(r"^\[([\w-]+)\]: ", TEXT, re.MULTILINE))


def test_every_experiment_has_its_file_and_command():
    readme = (DOCS.parent / "paper" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"\| `(\w+)\.py` \| `python -m paper ([\w-]+)` \|", readme)
    assert sorted(name for _, name in rows) == sorted(NAMES)
    assert [file for file, _ in rows] == [name.replace("-", "_") for _, name in rows]


def test_every_function_of_the_literal_code_for_an_equation_is_named():
    """All but the variants of the authors."""
    source = Path(reference.__file__).read_text(encoding="utf-8")
    defined = set(re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE))
    assert {name for name in defined if not name.endswith("_authors")} <= NAMED
