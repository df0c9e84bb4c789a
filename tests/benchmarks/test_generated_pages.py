"""The pages of the benchmarks are what their generators make of the committed results."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {
    "labeling": ("labeling.py", ["labeling-sets.png", "labeling-time.png"]),
    "clustering": ("field.py", ["field.png", "tried.png"]),
}


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_generated_from_the_committed_results(page: str, tmp_path: Path) -> None:
    script, pictures = PAGES[page]
    command = [sys.executable, str(ROOT / "benchmarks" / script), "--page", "--docs", str(tmp_path)]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert (tmp_path / f"{page}.md").read_text("utf-8") == (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == pictures
