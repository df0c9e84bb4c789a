"""Links between pages lead somewhere: to a file, a page of the gallery, a heading, a function.

`make docs` checks more, but takes minutes; this takes a second.
"""

import re
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from test_layers import LAYERS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md")), *TUTORIALS]
EXAMPLES = sorted((DOCS / "gallery").rglob("*.py"))
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
ROLE = re.compile(
    r"\{(?:func|class|mod|meth|attr)\}`~?(neuralbayes[\w.]*)`|:(?:func|class|mod|meth):`~?(neuralbayes[\w.]*)`"
)


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return [target for target in LINK.findall(INLINE_CODE.sub("", prose(page))) if "://" not in target]


@cache
def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as GitHub and MyST make them, and its own labels."""
    headings = re.findall(r"^#{1,3} (.+)$", prose(page), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", prose(page), re.MULTILINE))


def source(target: Path) -> Path:
    """The source file of a page that is generated with the documentation: an example."""
    if DOCS / "examples" not in target.parents:
        return target
    inside = target.relative_to(DOCS / "examples")
    return (
        DOCS
        / "gallery"
        / (inside.with_name("GALLERY_HEADER.rst") if inside.stem == "index" else inside.with_suffix(".py"))
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    lost = []
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = page if not name else source((page.parent / name).resolve())
        if not target.exists() or (anchor and anchor not in anchors(target)):
            lost.append(link)
    assert lost == []


@pytest.mark.parametrize("page", [*PAGES, *EXAMPLES], ids=lambda page: page.name)
def test_functions_that_are_named_exist(page: Path) -> None:
    found = {a or b for a, b in ROLE.findall(page.read_text(encoding="utf-8"))}
    assert [name for name in sorted(found) if not exists(name)] == []


def exists(name: str) -> bool:
    module, *attributes = name.split(".")
    found = import_module(module)
    for attribute in attributes:
        module = f"{module}.{attribute}"
        if not hasattr(found, attribute):
            try:
                import_module(module)
            except ImportError:
                return False
        found = getattr(found, attribute)
    return True


def test_every_page_is_in_the_table_of_contents() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {line for block in re.findall(r"```\{toctree\}(.*?)```", index, re.DOTALL) for line in block.split()}
    pages = [*DOCS.glob("*.md"), *TUTORIALS]
    assert {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages} - listed == {"index"}


def test_links_are_found_and_a_wrong_one_would_be() -> None:
    assert "quickstart.md" in links(DOCS / "index.md")
    assert "choose-the-number-of-clusters" in anchors(DOCS / "tables.md")
    assert not exists("neuralbayes.nothing")
    assert exists("neuralbayes.training.train")


def test_the_list_of_places_for_contributors_is_that_of_the_layers() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = re.findall(r"^\| `(\w+)(?:/|\.py)` \|", text, re.MULTILINE)
    assert places == [layer for layer in LAYERS if layer != "__main__"]


def test_the_walks_for_contributors_are_short_and_their_files_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    walks = [re.findall(r"`([\w/]+\.py)`", line) for line in text.splitlines() if line.startswith(("| a ", "| an "))]
    assert len(walks) == 5
    for walk in walks:
        assert 5 < len(walk) <= 15
        assert len(set(walk)) == len(walk)
    answers = re.findall(r"`([\w/]+\.py)`", text.split("## Where is ...?")[1].split("\n## ")[0])
    assert len(answers) >= 15
    for file in {*(file for walk in walks for file in walk), *answers}:
        assert (ROOT / "src" / "neuralbayes" / file).is_file(), file
