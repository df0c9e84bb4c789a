"""Run a mix of commands for some minutes with faults such as kills, full disks and bad files, and check for losses.

A small disk in memory is mounted in a separate namespace, as in `disks.py`. Every command first runs twice without
faults. The files that are the same both times are its results. Then, until the time is over, every command runs with
every fault in random order, again and again:

- nothing;
- it is killed (SIGKILL) at a random moment, or while it writes: before bytes reach the disk, before a file gets its
  name, or right after;
- it is interrupted (SIGINT, SIGTERM) at a random moment;
- the disk is full except for a random number of bytes, or files may not become longer than that;
- its input is truncated, has changed bytes, or is a file of another kind.

The command must end with an exit code that the fault allows, and never with a traceback. The files of all other
commands must be unchanged. Its own results must be the old ones or complete new ones. Then the same command without a
fault must succeed with the same results, byte for byte.

The processes are forked from one that has imported the libraries, the data are small and training is short. This allows
many rounds per minute, because the test is about files.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from disks import NOT_ALLOWED, SIZE, contents, full, write_data
from faults import WRITING, die_while_writing, is_whole, load, spoil, start, write_no_more_than

from neuralbayes.system.files import write_json


@dataclass(frozen=True)
class Job:
    """A command. OWN stands for the folder that it writes to, DATA for its input, DISK/NAME for the folder of job NAME.

    `goes_on` means that it continues from the files in its folder, which is therefore emptied before each round.
    """

    words: str
    goes_on: bool = False

    def line(self, name: str, disk: Path, data: Path) -> list[str]:
        """The words of the command line."""
        words = self.words.replace("OWN", str(disk / name)).replace("DATA", str(data))
        return [*re.sub(r"\bDISK\b", str(disk), words).split(), *([] if "--json" in words else ["--quiet"])]


JOBS = {
    "label": Job("label DATA/rows.csv -k 2 --out OWN/rows.csv --save OWN/model --force"),
    "label-information": Job(
        "label DATA/rows.csv --method information -k 2 --out OWN/rows.parquet --no-picture --force"
    ),
    "label-model": Job("label DATA/rows.csv --model DISK/label/model --out OWN/rows.csv --no-picture --force"),
    "report": Job("report DISK/label/model DATA/rows.csv --out OWN/page.html"),
    "pretrain": Job("pretrain DATA/bars.npz --encoder tiny --batch 8 --microbatch 8 --epochs 2 --out OWN/run", True),
    "embed": Job("embed DISK/pretrain/run DATA/bars.npz --out OWN/features.npy --force"),
    "export": Job("export DISK/pretrain/run --to torch --out OWN/encoder.pt2 --force"),
}
"""Commands by name. A command comes after the commands whose results it needs."""

FAULTS = ("nothing", "killed", "killed while writing", "interrupted", "full disk", "short files", "bad file")
ALLOWED = {
    "nothing": {0},
    "killed": {0, -signal.SIGKILL},
    "killed while writing": {0, -signal.SIGKILL},
    "interrupted": {0, 2, 130, 143, -signal.SIGINT, -signal.SIGTERM},
    "full disk": {0, 2},
    "short files": {0, 2},
    "bad file": {0, 2},
}
"""Exit codes that a fault allows; 0 if the command finished before the fault, or if the fault had no effect."""


TIMED = (".html", "result.json")
"""Files that contain times or memory, which may be the same twice by chance."""


class Soak:
    """The disk, the expected results of the commands, and the findings."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.disk, self.data, self.spoilt, self.loaded = (
            folder / name for name in ("disk", "data", "spoilt", "loaded")
        )
        self.rng = random.Random(seed)
        self.results: dict[str, dict[str, str]] = {}
        self.seconds: dict[str, float] = {}
        self.rounds: Counter[tuple[str, str]] = Counter()
        self.ends: Counter[tuple[str, int]] = Counter()
        self.wrong: list[str] = []
        self.hidden = 0

    def prepare(self) -> None:
        """Run every command twice; the files that are the same both times are its results."""
        for path in (self.disk, self.data):
            path.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", self.disk], check=True)
        write_data(self.data, n_pictures=16, n_rows=60)
        for name in JOBS:
            self.empty(name)
            first = self.alone(name)
            load(self.loaded.read_text(encoding="utf-8").splitlines())
            if JOBS[name].goes_on:
                self.empty(name)
            second = self.alone(name)
            alike = {path: digest for path, digest in first.items() if second[path] == digest}
            self.results[name] = {path: digest for path, digest in alike.items() if not path.endswith(TIMED)}

    def empty(self, name: str) -> None:
        shutil.rmtree(self.disk / name, ignore_errors=True)
        (self.disk / name).mkdir()

    def alone(self, name: str) -> dict[str, str]:
        """Run a command without faults; returns the digests of its files."""
        begun = time.monotonic()
        code, said = self.run(name, self.data, lambda: None, None)
        self.seconds[name] = time.monotonic() - begun
        if code:
            raise RuntimeError(f"{name} failed without a fault ({code}): {said}")
        return contents(self.disk / name)

    def run(
        self, name: str, data: Path, before: Callable[[], None], disturb: Callable[[int], None] | None
    ) -> tuple[int, str]:
        with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
            child = start(JOBS[name].line(name, self.disk, data), said, before, self.loaded)
            if disturb is not None:
                disturb(child)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            said.seek(0)
            return code, said.read()

    def round(self, name: str, fault: str) -> None:
        """Run a command with a fault, then again without."""
        rng = self.rng
        if JOBS[name].goes_on and fault != "bad file":
            keep = self.disk.parent / "kept"  # other commands need these files
            shutil.copytree(self.disk / name, keep)
            self.empty(name)
        before = contents(self.disk)
        moment = rng.uniform(0.0, 1.1 * self.seconds[name])

        def struck(number: int) -> Callable[[int], None]:
            def disturb(child: int) -> None:
                time.sleep(moment)
                os.kill(child, number)

            return disturb

        room = int(10 ** rng.uniform(2.0, 6.0))
        patch: Callable[[], None] = lambda: None  # noqa: E731
        disturb = None
        data = self.data
        if fault == "killed":
            disturb = struck(signal.SIGKILL)
        elif fault == "interrupted":
            disturb = struck(rng.choice((signal.SIGINT, signal.SIGTERM)))
        elif fault == "killed while writing":
            patch = partial(die_while_writing, rng.choice(WRITING), rng.choice((1, 1, 2, 3, 5, 8)))
        elif fault == "short files":
            patch = partial(write_no_more_than, room)
        elif fault == "bad file":
            spoil(self.data, self.spoilt, rng)
            data = self.spoilt
        if fault == "full disk":
            with full(self.disk, room):
                code, said = self.run(name, data, patch, disturb)
        else:
            code, said = self.run(name, data, patch, disturb)
        self.rounds[name, fault] += 1
        self.ends[fault, code] += 1
        self.judge(name, fault, code, said, before)
        for path in self.disk.rglob("*.tmp*"):
            if not JOBS[name].goes_on:  # a command that continues must remove these files itself
                self.hidden += 1
                path.unlink()
        try:
            after = self.alone(name)
        except RuntimeError as error:
            self.wrong.append(f"after {fault}: {error}")
            self.empty(name)
            after = self.alone(name)
        lost = [path for path, digest in self.results[name].items() if after.get(path) != digest]
        self.wrong += [f"{name}, after {fault} and alone: {path} differs" for path in lost]
        cut = [path for path in after if not is_whole(self.disk / name / path)]
        self.wrong += [f"{name}, after {fault} and alone: {path} is truncated" for path in cut]
        self.wrong += [f"{name}, after {fault} and alone: {path} is left" for path in after if ".tmp" in path]
        if JOBS[name].goes_on and fault != "bad file":
            shutil.rmtree(self.disk / name)
            shutil.move(keep, self.disk / name)

    def judge(self, name: str, fault: str, code: int, said: str, before: dict[str, str]) -> None:
        """Record everything that is wrong right after a fault."""
        if code not in ALLOWED[fault]:
            self.wrong.append(f"{name}, {fault}: exit code {code}: {said[-300:]}")
        if "Traceback" in said:
            self.wrong.append(f"{name}, {fault}: a traceback: {said[-300:]}")
        if code == 2 and not said.startswith(("error: ", "warning: ")):
            self.wrong.append(f"{name}, {fault}: no error message: {said[-300:]}")
        after = contents(self.disk)
        for path, digest in before.items():
            owner, _, own = path.partition("/")
            if after.get(path) == digest or (fault == "bad file" and owner == name and code == 0):
                continue
            new = owner == name and after.get(path) == self.results[name].get(own, after.get(path))
            if path not in after or not new or not is_whole(self.disk / path):
                self.wrong.append(f"{name}, {fault}: {path} is lost")

    def found(self, minutes: float) -> dict[str, Any]:
        """Make the record."""
        rounds = {name: {fault: self.rounds[name, fault] for fault in FAULTS} for name in JOBS}
        faults = {
            fault: {
                "rounds": sum(n for (_, one), n in self.rounds.items() if one == fault),
                "ended by it": sum(n for (one, code), n in self.ends.items() if one == fault and code != 0),
            }
            for fault in FAULTS
        }
        return {
            "minutes": round(minutes, 1),
            "commands": sum(2 * n for n in self.rounds.values()),
            "rounds": rounds,
            "faults": faults,
            "same_results": sum(len(files) for files in self.results.values()),
            "hidden_left_by_kills": self.hidden,
            "wrong": self.wrong,
        }


def pairs(rng: random.Random) -> Iterator[tuple[str, str]]:
    """Yield every command with every fault in random order, endlessly."""
    every = [(name, fault) for name in JOBS for fault in FAULTS]
    while True:
        rng.shuffle(every)
        yield from every


def inside(folder: Path, minutes: float, seed: int) -> Iterator[dict[str, Any]]:
    """Mount the disk and run commands with faults until the time is over; yields the record after each round.

    It runs in the namespace.
    """
    soak = Soak(folder, seed)
    soak.prepare()
    begun = time.monotonic()
    for name, fault in pairs(soak.rng):
        soak.round(name, fault)
        passed = (time.monotonic() - begun) / 60.0
        yield soak.found(passed)
        if passed >= minutes:
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside is None:
        unshare = ["unshare", "--user", "--map-root-user", "--mount"]
        if shutil.which("unshare") is None or subprocess.run([*unshare, "true"]).returncode:
            print("cannot mount a disk: this needs Linux and permission to create a user namespace")
            sys.exit(NOT_ALLOWED)
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, __file__, *sys.argv[1:], "--inside", folder]
            sys.exit(subprocess.run([*unshare, *line]).returncode)
    found: dict[str, Any] = {}
    for found in inside(
        arguments.inside, arguments.minutes, arguments.seed
    ):  # saved after each round, in case this is killed
        if arguments.record is not None:
            write_json(arguments.record, {"command": "python benchmarks/guarantees/soak.py"} | found)
    for fault, counts in found["faults"].items():
        print(f"{fault}: {counts['rounds']} rounds, ended by it {counts['ended by it']}")
    print(f"{found['commands']} commands in {found['minutes']} minutes; wrong: {len(found['wrong'])}")
    for line in found["wrong"]:
        print(f"  {line}")
    if found["wrong"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
