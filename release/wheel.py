"""Build the wheel and the sdist twice, and check them: the same bytes both times, every tracked file in them, no other.

`make wheel` runs it in an environment that has `build` and `twine`; the results lie in dist/.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/neuralbayes/"
LEFT_OUT = (".ci/", ".dockerignore", ".github/", ".pre-commit-config.yaml", "Dockerfile", "release/")
"""What only the repository needs: not in the sdist."""


def tracked() -> list[str]:
    """The files that git knows, those that are removed in the working tree aside."""
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [name for name in names.splitlines() if (ROOT / name).exists()]


def built(folder: Path) -> list[Path]:
    """Wheel and sdist, dated by the last commit."""
    date = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True)
    environment = os.environ | {"SOURCE_DATE_EPOCH": date.stdout.strip()}
    command = [sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.iterdir())


def wheel_differs(path: Path) -> list[str]:
    """Files that the wheel lacks or has too many."""
    with zipfile.ZipFile(path) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    return sorted(names ^ {name.removeprefix("src/") for name in tracked() if name.startswith(PACKAGE)})


def sdist_differs(path: Path) -> list[str]:
    """Files that the sdist lacks or has too many."""
    with tarfile.open(path) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    return sorted(names ^ ({"PKG-INFO"} | {name for name in tracked() if not name.startswith(LEFT_OUT)}))


def main() -> None:
    start = time.perf_counter()
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    for old in dist.glob("neuralbayes-*"):
        old.unlink()
    files = built(dist)
    with tempfile.TemporaryDirectory() as folder:
        again = built(Path(folder))
        other = [one.name for one, two in zip(files, again, strict=True) if one.read_bytes() != two.read_bytes()]
    problems = [f"{name} has other bytes when it is built again" for name in other]
    for path in files:
        differs = wheel_differs(path) if path.suffix == ".whl" else sdist_differs(path)
        problems += [f"{path.name} and the repository differ in {name}" for name in differs]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)], check=True)
    for path in files:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1e6:.2f} MB  sha256:{digest}")
    print(f"built twice in {time.perf_counter() - start:.0f} s")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
