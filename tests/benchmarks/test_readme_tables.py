"""The numbers of the README are those of the committed run of the demo."""

import json
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_readme_is_what_its_generator_makes_of_the_committed_result() -> None:
    generator = runpy.run_path(str(ROOT / "benchmarks" / "readme_tables.py"))
    result = json.loads((ROOT / "results" / "demo.json").read_text(encoding="utf-8"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert generator["tables"](result) in readme
    assert generator["with_tables"](readme, result) == readme
