"""The pages of the benchmarks equal the output of their generators on the committed results."""

import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "labeling": ("labeling.py", ["labeling-sets.png", "labeling-time.png"]),
    "clustering": ("field.py", ["field.png"]),
}


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_generated_from_the_committed_results(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, pictures = PAGES[page]
    path = ROOT / "benchmarks" / script
    monkeypatch.setattr(sys, "argv", [str(path), "--page", "--docs", str(tmp_path)])
    monkeypatch.syspath_prepend(path.parent)
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert (tmp_path / f"{page}.md").read_text("utf-8") == (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == pictures
