"""Pages are short, in plain English, and name only what exists: files, headings, functions, commands and options."""

import re
import shlex
import tomllib
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from test_layers import LAYERS
from walks import table

import neuralbayes as nb

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
GUIDES = sorted(path for path in DOCS.rglob("*.md") if not {"_build", "api", "examples"} & set(path.parts))
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *GUIDES]
EXAMPLES = sorted((DOCS / "gallery").glob("*.py"))
REFERENCE = (DOCS / "reference.md").read_text(encoding="utf-8")
LISTED = re.findall(r"^   ([\w.]+)$", REFERENCE, re.MULTILINE)
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)

BANNED = [
    *(r"from which on", r"\bin the place of\b", r"\bso that all are taken\b", r"\b(is|are) to be had\b"),
    *(r"\bcommonest\b", r"\blikeliest\b", r"\bsurest\b", r"\banew\b", r"\bnext to nothing\b", r"\bone's own\b"),
    *(r"\bspeaks? of\b", r"\bso many\b", r"\b(somebody|nobody)\b", r"\btold from\b", r"\bmemory is not enough\b"),
    *(r"\bsimply\b", r"\bjust works\b", r"\bpowerful\b", r"\bseamless", r"\bstate.of.the.art\b", r"\beffortless"),
]
"""Phrases that a native reader would not write, and praise."""


def words(page: Path) -> int:
    """Words and numbers, without the bars of tables."""
    return len(re.findall(r"[^\s|]*\w[^\s|]*", page.read_text(encoding="utf-8")))


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text(encoding="utf-8"))


@cache
def anchors(page: Path) -> set[str]:
    """Anchors of a page: its headings, as GitHub and MyST write them, and its own labels."""
    headings = re.findall(r"^#{1,3} (.+)$", prose(page), re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
    return slugs | set(re.findall(r"^\(([\w-]+)\)=$", prose(page), re.MULTILINE))


def source(target: Path) -> Path:
    """The source of a page of the gallery, and every other page itself."""
    if DOCS / "examples" not in target.parents:
        return target
    return DOCS / "gallery" / ("GALLERY_HEADER.rst" if target.stem == "index" else f"{target.stem}.py")


def test_pages_are_few_and_short():
    assert len(GUIDES) <= 12
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in GUIDES) <= 15_000
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        assert words(ROOT / name) <= 900, name


def test_links_lead_to_files_and_headings():
    lost = []
    for page in PAGES:
        for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", prose(page))):
            name, _, anchor = link.partition("#")
            target = page if not name else source((page.parent / name).resolve())
            if "://" not in link and (not target.exists() or (anchor and anchor not in anchors(target))):
                lost.append(f"{page.name}: {link}")
    assert lost == []


def test_every_page_is_in_the_contents_and_every_picture_on_a_page():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {line for block in re.findall(r"```\{toctree\}(.*?)```", index, re.DOTALL) for line in block.split()}
    assert {page.relative_to(DOCS).with_suffix("").as_posix() for page in GUIDES} - listed == {"index"}
    shown = {Path(name).name for page in PAGES for name in re.findall(r"!\[.*?\]\((.+?)\)", prose(page))}
    assert {path.name for path in (DOCS / "pictures").iterdir()} == shown


def test_names_of_records_do_not_break_lines():
    """A comment at the start of a line ends the paragraph."""
    broken = [page.name for page in PAGES if re.search(r"^ *<!-- results/[^,\n]*-->", page.read_text("utf-8"), re.M)]
    assert broken == []


def test_no_page_has_a_banned_phrase():
    found = [
        f"{page.name}: {match.group()}"
        for page in PAGES
        for match in re.finditer("|".join(BANNED), " ".join(prose(page).split()), re.IGNORECASE)
    ]
    assert found == []


def test_commands_and_options_that_pages_name_exist():
    pytest.importorskip("neuralbayes.cli.cluster")
    from neuralbayes.cli import COMMANDS, app

    commands = [name for group in COMMANDS.values() for name in group]
    options = {name: {n for a in app[name].assemble_argument_collection() for n in a.names} for name in commands}
    anywhere = {n for a in app.meta.assemble_argument_collection() for n in a.names} | {"--help", "--version"}
    anywhere.add("--scale")  # of `python -m paper`
    pages = [page for page in [*PAGES, *EXAMPLES] if page.name != "CHANGELOG.md"]
    blocks = [(page.name, block) for page in pages for block in FENCED.findall(page.read_text(encoding="utf-8"))]
    shown = re.compile(r"^(?:srun )?(neuralbayes .+)$", re.MULTILINE)
    lines = [(name, line) for name, block in blocks for line in shown.findall(block) if "```python" not in block]
    inline = [(page.name, line) for page in GUIDES for line in re.findall(r"`(neuralbayes [^`]+)`", prose(page))]
    assert len(lines) > 15
    for page, line in lines + inline:
        command, *rest = shlex.split(line, comments=True)[1:]
        given = {word.partition("=")[0] for word in rest if word.startswith("-")}
        assert command in [*commands, "COMMAND", "--version"], f"{page}: {line}"
        assert given <= options.get(command, set()) | anywhere, f"{page}: {line}"
    named = {option for page in GUIDES for option in re.findall(r"`(--?[a-z][a-z-]*)", prose(page))}
    assert named <= anywhere.union(*options.values())


def test_functions_that_pages_name_exist():
    roles = re.compile(r"(?:\{(?:func|class)\}|:(?:func|class|mod):)`~?neuralbayes\.([\w.]+)`")
    named = {name for page in [*PAGES, *EXAMPLES] for name in roles.findall(page.read_text(encoding="utf-8"))}
    assert sorted(named - set(LISTED)) == []


@pytest.mark.parametrize("module", ["", "datasets", "plot", "training"])
def test_every_public_name_is_in_the_reference(module):
    names = nb.__all__ if not module else import_module(f"neuralbayes.{module}").__all__
    public = {f"{module}.{name}".lstrip(".") for name in names} - {"datasets", "plot"}
    assert sorted(public - set(LISTED)) == []


def test_names_in_the_reference_are_documented_and_the_main_ones_have_an_example():
    """The doctests of `src` run them. Those of `cluster`, `pretrain` and `probe` show what they take and return."""
    docs = {}
    for name in LISTED:
        module, _, attribute = f"neuralbayes.{name}".rpartition(".")
        docs[name] = getattr(import_module(module), attribute).__doc__ or ""
    assert [name for name, text in docs.items() if not text] == []
    main = {name for name in LISTED if "." not in name or name.startswith("plot.")} - {
        "Clustering",
        "load",
        "PretrainConfig",
        "ProbeResult",
    }
    assert [name for name in sorted(main) if ">>> " not in docs[name]] == []


def test_an_example_ends_in_a_picture_and_words_and_uses_public_names():
    assert 1 < len(EXAMPLES) <= 6
    for path in EXAMPLES:
        text = path.read_text(encoding="utf-8")
        assert re.match(r'"""\n(.+)\n=+\n\n\S', text), "a title and an introduction"
        assert len(re.findall(r"^# \S", text.rsplit("plt.show()", 1)[1], re.MULTILINE)) >= 2
        used = set(re.findall(r"\bnb\.((?:plot\.|datasets\.)?[A-Za-z]\w*)", text))
        assert sorted(used - set(LISTED)) == [], path.name


def test_the_tree_for_contributors_is_that_of_the_package():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("## The tree")[1].split("\n## ")[0]
    first = "".join(line.split("|")[1] for line in text.splitlines() if line.startswith("| "))
    assert set(re.findall(r"`(\w+)(?:/|\.py)`", first)) == {*LAYERS} - {"__main__"}


def test_the_walks_for_contributors_are_those_of_a_profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert table() in said, "run `python tests/walks.py`"


def test_the_version_and_the_requirements_are_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## {version} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    path = ROOT / "release" / "conda" / "recipe.yaml"
    if not path.exists():
        pytest.skip("the recipe is not part of the sdist")
    recipe = path.read_text(encoding="utf-8")
    assert f'\n  version: "{version}"\n' in recipe
    renamed = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
    needed = {
        f"{renamed.get(name, name)} >={least}" for name, least in (d.split(">=") for d in project["dependencies"])
    }
    asked = set(re.findall(r"^    - (\S.+)$", recipe.split("\n  run:\n")[1].split("\ntests:")[0], re.MULTILINE))
    assert asked == needed | {f"python {project['requires-python']}"}


def test_the_readme_counts_the_verdicts_of_the_results_page():
    results = (DOCS / "results.md").read_text(encoding="utf-8")
    n, counts = re.search(r"\*\*Of (\d+) claims: (.+?)\.\*\*", results).groups()
    found = {verdict: count for count, verdict in re.findall(r"(\d+) \*(.+?)\*", counts)}
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    said = {"holds": "{} hold,", "holds in part": "{} hold in part", "reversed": "{} came out reversed"}
    said |= {"does not hold here": "{} do not hold here", "undecided": "{} are undecided"}
    assert f"Of {n} claims" in readme
    for verdict, sentence in said.items():
        assert sentence.format(found[verdict]) in readme
