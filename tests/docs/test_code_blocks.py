"""Every Python block of the README and the documentation runs, so that it stays true."""

import re
from pathlib import Path

import pytest

import neuralbayes as nb

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(text: str) -> list[tuple[int, str]]:
    """The Python blocks of a page, each with the number of its first line."""
    return [(text[: match.start(1)].count("\n") + 1, match.group(1)) for match in BLOCK.finditer(text)]


README = blocks(PAGES[0].read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "data"))
    namespace: dict[str, object] = {"__name__": "__main__"}
    for line, code in blocks(page.read_text(encoding="utf-8")):
        # The empty lines make a traceback point into the page.
        exec(compile("\n" * (line - 1) + code, str(page), "exec"), namespace)


def test_the_readme_shows_its_picture_and_three_blocks_before_any_heading_but_its_own() -> None:
    text = PAGES[0].read_text(encoding="utf-8")
    assert len(README) == 3
    top = text.split("\n## ")[0]
    assert len(blocks(top)) == 3
    assert "make demo" in top
    assert "make test" in top
    assert top.index("![") < top.index("```")


def test_a_new_objective_takes_at_most_twenty_lines() -> None:
    (code,) = (code for _, code in README if "nb.Objective" in code)
    assert "nb.backward(" in code
    assert len(code.strip().splitlines()) <= 20


def test_pictures_and_pages_that_the_readme_names_exist() -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", PAGES[0].read_text(encoding="utf-8"))
    assert "docs/pictures/manifolds.png" in targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_what_the_readme_prints_is_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(README[0][1], {"nb": nb})
    assert capsys.readouterr().out.strip() == README[0][1].split("# ")[-1].splitlines()[0]


def test_every_public_name_is_in_the_reference() -> None:
    listed = set((ROOT / "docs" / "api.md").read_text(encoding="utf-8").split())
    assert [name for name in nb.__all__ if name not in listed | {"baselines", "datasets"}] == []
