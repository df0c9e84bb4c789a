"""Run every command that writes on a full and on a read-only disk, and check its message and its files.

A small disk in memory (tmpfs) is mounted in a separate namespace, which most Linux systems allow for every user. If it
is not allowed, this script says so and exits with code 77. Each command first runs normally. Then the disk is filled up
to a few kilobytes, or made read-only, and the command runs again. It must exit with code 2 and one paragraph that names
the path, leave every earlier file unchanged, and leave no temporary file. With free space, the same command must then
succeed. `disks.py embed label` tries two commands, and `--record FILE` saves the results.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from neuralbayes.cli import main as command
from neuralbayes.system.files import read_json, write_json

SIZE = "96m"
NOT_ALLOWED = 77
ROOM = 8192
"""Free bytes of a full disk: enough to start writing, but not to finish."""


@dataclass(frozen=True)
class Writer:
    """A command that writes. DISK stands for the disk, and DATA for a folder elsewhere.

    A finished run is not written again. With `moves`, the command therefore uses another folder the second time.
    """

    words: str
    room: int = ROOM
    moves: bool = False

    def line(self, disk: Path, data: Path, *, again: bool) -> list[str]:
        """The words of the command line."""
        words = self.words.replace("DISK", str(disk)).replace("DATA", str(data)).split()
        if again and self.moves:
            words[-1] += "-again"
        return [*words, *([] if "--json" in words else ["--quiet"])]


PRETRAIN = "pretrain DATA/bars.npz --encoder tiny --batch 32 --microbatch 32 --epochs 2 --out DISK/run"
WRITERS = {
    "pretrain": Writer(PRETRAIN, room=100_000, moves=True),
    "probe": Writer("probe DISK/run --head linear --seeds 1 --json"),
    "embed": Writer("embed DISK/run DATA/bars.npz --out DISK/features.npy --force"),
    "embed .parquet": Writer("embed DISK/run DATA/bars.npz --out DISK/features.parquet --force"),
    "label": Writer("label DATA/rows.csv -k 2 --out DISK/rows.csv --save DISK/model --force"),
    "label .parquet": Writer("label DATA/rows.csv -k 2 --out DISK/rows.parquet --no-picture --force", room=4096),
    "report": Writer("report DISK/model DATA/rows.csv --out DISK/report.html"),
    "export --to torch": Writer("export DISK/run --to torch --out DISK/encoder.pt2 --force"),
    "export --to onnx": Writer("export DISK/run --to onnx --out DISK/encoder.onnx --force"),
    "demo": Writer("demo --out DISK/demo --no-open"),
}
NEEDS = {"probe": "pretrain", "embed": "pretrain", "export": "pretrain", "report": "label"}
"""The command whose results another command needs."""


def write_data(folder: Path, n_pictures: int = 64, n_rows: int = 200) -> None:
    """Write pictures of vertical and horizontal bars, and rows in two clusters."""
    rng = np.random.default_rng(0)
    pictures, labels = rng.integers(0, 60, (n_pictures, 24, 24, 1), dtype=np.uint8), np.arange(n_pictures) % 2
    for picture, upright in zip(pictures, labels, strict=True):
        picture[4:14, 4:7] += 180 * (upright == 1).astype(np.uint8)
        picture[4:7, 4:14] += 180 * (upright == 0).astype(np.uint8)
    np.savez(folder / "bars.npz", train_images=pictures, train_labels=labels, test_images=pictures, test_labels=labels)
    half = n_rows // 2
    rows = np.r_[rng.normal(size=(half, 3)), rng.normal(size=(half, 3)) + 8]
    np.savetxt(folder / "rows.csv", rows, delimiter=",", header="a,b,c", comments="")


def call(line: list[str]) -> tuple[int, str]:
    """Run a command in a new process; returns its exit code and its standard error."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(said.fileno(), 2)
            code = command(line)
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return code, said.read()


@contextmanager
def full(disk: Path, room: int) -> Iterator[None]:
    """Leave only `room` bytes on the disk."""
    filler = disk / "filler"
    with open(filler, "wb") as file:
        free = os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize
        os.posix_fallocate(file.fileno(), 0, free - room)
    yield
    filler.unlink()


@contextmanager
def read_only(disk: Path, room: int) -> Iterator[None]:
    """Make the disk read-only."""
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    yield
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)


TROUBLES = {"full": full, "read-only": read_only}


def contents(disk: Path) -> dict[str, str]:
    """Digests of all files on the disk, except locks, which are empty."""
    files = sorted(path for path in disk.rglob("*") if path.is_file() and path.name not in ("filler", ".lock"))
    return {str(path.relative_to(disk)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def complaints(code: int, said: str, disk: Path, before: dict[str, str]) -> list[str]:
    """List what a command did wrong."""
    after = contents(disk)
    found = [] if code == 2 else [f"exit code {code}"]
    if not re.fullmatch(r"error: [^\n]+\n", said):
        found.append("not one paragraph")
    if str(disk) not in said:
        found.append("names no path")
    found += [f"changed {name}" for name, digest in before.items() if after.get(name) != digest]
    return found + [f"left {name}" for name in after if ".tmp" in name]


def tried(name: str, disk: Path, data: Path) -> dict[str, Any]:
    """Try a command on a full disk and on a read-only disk."""
    writer = WRITERS[name]
    code, said = call(writer.line(disk, data, again=False))
    if code:
        raise RuntimeError(f"{name} failed under normal conditions: {said}")
    found: dict[str, Any] = {"command": name}
    line = writer.line(disk, data, again=True)
    for trouble, provoked in TROUBLES.items():
        before = contents(disk)
        with provoked(disk, writer.room):
            code, said = call(line)
            wrong = complaints(code, said, disk, before)
        found[trouble] = {"said": said.replace(str(disk), "").strip()[:400], "wrong": wrong}
    code, said = call(line)
    found["goes_on"] = code == 0
    if code:
        found["then"] = said
    return found


def inside(names: list[str], folder: Path, record: Path | None) -> list[dict[str, Any]]:
    """Mount the disk and try the commands; runs in the namespace."""
    import lightning_fabric  # noqa: F401  slow to import, so import it before forking

    disk, data = folder / "disk", folder / "data"
    for path in (disk, data):
        path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", disk], check=True)
    write_data(data)
    needed = {NEEDS[name.split()[0]] for name in names if name.split()[0] in NEEDS} - set(names)
    for name in needed:
        call(WRITERS[name].line(disk, data, again=False))
    results = []
    for name in names:
        found = tried(name, disk, data)
        results.append(found)
        if record is not None:
            keep(found, record)
        for trouble in TROUBLES:
            wrong = ", ".join(found[trouble]["wrong"]) or "correct"
            print(f"{name}, {trouble}: {wrong}\n  {found[trouble]['said']}", flush=True)
        print(f"{name}, with free space: {'succeeds' if found['goes_on'] else found['then']}", flush=True)
    return results


def keep(found: dict[str, Any], record: Path) -> None:
    """Add the result of a command to the record."""
    rows = {row["command"]: row for row in (read_json(record)["writers"] if record.exists() else [])}
    rows[found["command"]] = found
    ordered = [rows[name] for name in WRITERS if name in rows]
    write_json(record, {"command": "python benchmarks/guarantees/disks.py", "writers": ordered})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", nargs="*", help=f"{', '.join(WRITERS)}; all by default")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    names = arguments.commands or list(WRITERS)
    if unknown := set(names) - set(WRITERS):
        parser.error(f"unknown commands: {', '.join(sorted(unknown))}; choose from {', '.join(WRITERS)}")
    if arguments.inside is None:
        unshare = ["unshare", "--user", "--map-root-user", "--mount"]
        if shutil.which("unshare") is None or subprocess.run([*unshare, "true"]).returncode:
            print("cannot mount a disk: this needs Linux and permission to create a user namespace")
            sys.exit(NOT_ALLOWED)
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, __file__, *sys.argv[1:], "--inside", folder]
            sys.exit(subprocess.run([*unshare, *line]).returncode)
    results = inside(names, arguments.inside, arguments.record)
    if any(found[trouble]["wrong"] for found in results for trouble in TROUBLES) or not all(
        found["goes_on"] for found in results
    ):
        sys.exit(1)


if __name__ == "__main__":
    main()
