"""The library stays small enough to hold in one's head: lines by folder, and no long files."""

from collections import Counter
from pathlib import Path

import neuralbayes

ROOT = Path(neuralbayes.__file__).parent
LINES, FILES, LINES_OF_A_FILE = 22_500, 170, 400
"""Largest numbers of lines and files of Python in the package, and of lines in one of its files."""


def n_lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def test_the_package_is_small():
    by_folder: Counter[str] = Counter()
    for path in ROOT.rglob("*.py"):
        by_folder[path.relative_to(ROOT).parts[0]] += n_lines(path)
    print(*(f"{lines:6,} {folder}" for folder, lines in by_folder.most_common()), sep="\n")
    assert sum(by_folder.values()) <= LINES


def test_files_are_short_and_few():
    paths = list(ROOT.rglob("*.py"))
    assert len(paths) <= FILES
    assert not {path.name: n for path in paths if (n := n_lines(path)) > LINES_OF_A_FILE}
