"""The page of the labelling benchmark is what its generator makes of the committed results."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_generated_from_the_committed_results(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "labeling.py"), "--page", "--docs", str(tmp_path)]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert (tmp_path / "labeling.md").read_text("utf-8") == (ROOT / "docs" / "labeling.md").read_text("utf-8")
    pictures = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert pictures == ["labeling-sets.png", "labeling-time.png"]
