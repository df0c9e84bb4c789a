"""docs/paper.md names functions, files and experiments; each exists, and every file of the paper's code is named."""

import re
from pathlib import Path

import pytest
from paper import NAMES, reference

import neuralbayes as nb
from neuralbayes import bayes
from neuralbayes.data import normalize
from neuralbayes.manifolds import separation
from neuralbayes.networks import encoders, hidden

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "paper.md").read_text(encoding="utf-8")
OWNERS = (reference, nb, nb.MIM, bayes, encoders, hidden, normalize, separation)
TABLES = TEXT.split("## Experiments")[0]
FUNCTIONS = sorted(
    {
        name
        for code in re.findall(r"`([^`]+)`", TABLES)
        for name in re.findall(r"(?:^|, |\.)([A-Za-z_]\w*)(?=$|,|\()", code)
    }
)
TARGETS = sorted(set(re.findall(r"(?:\]\(|\]: )(\.\./[\w/.]+)", TEXT)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_that_the_page_names_exists(name: str) -> None:
    assert any(hasattr(owner, name) for owner in OWNERS)


@pytest.mark.parametrize("target", TARGETS)
def test_a_file_that_the_page_links_exists(target: str) -> None:
    assert (DOCS / target).resolve().is_file()


def test_every_label_of_a_link_is_defined() -> None:
    assert set(re.findall(r"\]\[([\w-]+)\]", TEXT)) == set(re.findall(r"^\[([\w-]+)\]: ", TEXT, re.MULTILINE))


def test_the_first_links_are_the_code_of_the_paper_that_of_its_authors_and_the_results() -> None:
    first = re.findall(r"^- .*?\]\((.+?)\)", TEXT, re.MULTILINE)
    assert first == ["../paper/reference.py", "https://github.com/salesforce/NeuralBayes", "results.md"]


def test_every_experiment_has_its_file_and_command() -> None:
    rows = re.findall(r"\]\(\.\./paper/(\w+)\.py\) \| `python -m paper ([\w-]+)` \|", TEXT)
    assert sorted(name for _, name in rows) == sorted(NAMES)
    assert [file for file, _ in rows] == [name.replace("-", "_") for _, name in rows]


def test_every_function_of_the_literal_code_for_an_equation_is_named() -> None:
    """All but the variants of the authors."""
    source = Path(reference.__file__).read_text(encoding="utf-8")
    defined = set(re.findall(r"^(?:def|class) (\w+)", source, re.MULTILINE))
    assert {name for name in defined if not name.endswith("_authors")} <= set(FUNCTIONS)


def test_the_page_was_found_to_name_something() -> None:
    assert {"mutual_information", "R_p", "Smoothness"} <= set(FUNCTIONS)
    assert len(TARGETS) > 25
