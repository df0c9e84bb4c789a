"""Change one operator, number or argument of the core at a time, and check whether a test notices.

mutmut makes the mutants, and this script runs them. The runner of mutmut starts pytest for each mutant, which takes
seconds to import torch and collect tests. Here, tests are collected once, and a child is forked for each mutant. It
runs the tests that reach the changed function until one fails. The test that noticed the last mutant runs first. A
timeout or lack of memory also counts as a failure.

The following are not mutated, because no behaviour depends on them: docstrings, annotations, the arguments of `raise`,
and the `strict` of zip, which is a check. mutmut itself leaves out properties, other decorated functions and code
outside functions. Doctests do not run, so other tests must cover what the examples show.

Mutants in `equivalent_mutants.toml`, each with a reason, are not run and count as not noticed, because they would take
most of the time. `--all` runs them too, and lists the ones that a test does notice.

Outcomes are saved in `.mutants/`, so an interrupted run continues.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import functools
import gc
import hashlib
import importlib
import json
import os
import platform
import re
import resource
import shutil
import signal
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import torch
from _pytest.runner import runtestprotocol
from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.format_utils import get_mutant_name, mangled_name_from_mutant_name
from mutmut.utils.format_utils import orig_function_and_class_names_from_key as original_names

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".mutants"
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.toml")
"""Reasons why mutants that no test can notice are equivalent, by file and by the key in the record."""

OBJECTIVES = ("tests/test_bayes*.py", "tests/objectives/test_*.py")
GRADIENTS = ("tests/gradients/test_*.py",)
CORE = {
    "src/neuralbayes/bayes.py": OBJECTIVES,
    "src/neuralbayes/objectives/base.py": OBJECTIVES,
    "src/neuralbayes/objectives/dml.py": OBJECTIVES,
    "src/neuralbayes/objectives/mim.py": OBJECTIVES,
    "src/neuralbayes/objectives/running.py": OBJECTIVES,
    "src/neuralbayes/objectives/smoothness.py": OBJECTIVES,
    "src/neuralbayes/objectives/virtual_adversarial.py": OBJECTIVES,
    "src/neuralbayes/objectives/weighted.py": OBJECTIVES,
    "src/neuralbayes/gradients/exact.py": GRADIENTS,
    "src/neuralbayes/gradients/passes.py": GRADIENTS,
    "src/neuralbayes/gradients/microbatches.py": GRADIENTS,
    "src/neuralbayes/distributed/sums.py": GRADIENTS,
    "src/neuralbayes/manifolds/certificate.py": ("tests/manifolds/test_certificate.py",),
    "src/neuralbayes/data/columns.py": ("tests/data/test_columns.py",),
    "src/neuralbayes/manifolds/separation.py": ("tests/manifolds/test_separation.py",),
    "src/neuralbayes/manifolds/descent.py": ("tests/manifolds/test_geometry.py",),
    "src/neuralbayes/clusters/merging.py": ("tests/clusters/test_merging.py",),
}
"""Files to mutate, and the tests that should notice."""

PARTS = {
    "src/neuralbayes/manifolds/certificate.py": ("columns_in_doubt", "tells_apart", "without_columns"),
    "src/neuralbayes/manifolds/descent.py": ("n_held_out",),
}
"""Functions to mutate, for files in which not all are mutated."""

SLOW = (
    "tests/gradients/test_gradient_memory.py",
    "tests/gradients/test_process_group.py",
    "tests/gradients/test_recompute.py::test_the_memory_is_less_than_two_thirds",
)
"""Tests to leave out: they start new processes, which do not have the mutant."""

LEFT_OUT = "docstrings, annotations, arguments of raise, strict of zip, decorated functions, code outside functions"

SECONDS, TIMES, GIGABYTES = 20, 10, 8
"""Limits for a mutant: SECONDS plus TIMES the time of its tests, and GIGABYTES of address space."""


@dataclass(frozen=True)
class Mutant:
    """One change to one function."""

    file: str
    line: int
    function: str
    change: str
    name: str

    @property
    def key(self) -> str:
        """The function and the change, without the line."""
        return f"{self.function}: {self.change}"

    @property
    def reached(self) -> str:
        """The name of the function in mutmut's list of reached functions."""
        return str(mangled_name_from_mutant_name(self.name))


def mutated(file: str) -> tuple[str, list[Mutant]]:
    """Make the mutants of a file; returns source code that contains all of them, and their list."""
    source = (ROOT / file).read_text(encoding="utf-8")
    made = mutate_file_contents(file, source)
    lines = made.code.splitlines()
    places = {name: node.lineno for name, node in _functions(ast.parse(source))}
    mutants = []
    for mangled in made.mutant_names:
        name = get_mutant_name(Path(file), mangled)
        function, owner = original_names(name)
        function = f"{owner}.{function}" if owner else function
        if function.split(".")[-1] not in PARTS.get(file, (function.split(".")[-1],)):
            continue
        whole = [
            _body(lines, made.line_span_by_function_name[f"{mangled_name_from_mutant_name(mangled)}__mutmut_orig"])
        ]
        whole.append(_body(lines, made.line_span_by_function_name[mangled]))
        offset, change = _difference(*whole)
        if _only_strict(change):
            continue
        mutants.append(Mutant(file, places[function] + offset, function, change, name))
    return made.code, mutants


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from (
                (f"{node.name}.{child.name}", child) for child in node.body if isinstance(child, ast.FunctionDef)
            )


def _body(lines: Sequence[str], span: Any) -> list[str]:
    """The lines of a function, starting at its `def` but without its name, which differs."""
    body = list(lines[span.start - 1 : span.end])
    while not body[0].lstrip().startswith("def "):
        body.pop(0)
    return [body[0].partition("(")[2], *body[1:]]


def _difference(before: list[str], after: list[str]) -> tuple[int, str]:
    """The first line that differs, counted from 0, and the old and new code."""
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    changed = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    first, last = changed[0], changed[-1]
    old = " ".join(line.strip() for line in before[first[1] : last[2]])
    new = " ".join(line.strip() for line in after[first[3] : last[4]])
    return first[1], f"{old}  ->  {new}"


def _only_strict(change: str) -> bool:
    """Whether only the `strict` of a zip differs, a check that never fails if the code is correct."""
    old, new = (re.sub(r"(, *)?strict=\w+", "", text).replace(", )", ")") for text in change.split("  ->  "))
    return old == new


class Runner:
    """Pytest plugin that runs mutants instead of tests, each in a fork of the process that collected the tests."""

    def __init__(self, work: Callable[[Runner], None]) -> None:
        self.work = work
        self.items: dict[str, pytest.Item] = {}
        self.seconds: dict[str, float] = {}
        self.reaching: dict[str, list[str]] = {}
        """The tests that reach each function: first the tests that noticed the last mutants, then the fastest."""

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:
            raise session.Failed(f"{session.testsfailed} errors while tests were collected")
        self.items = {item.nodeid: item for item in session.items}
        self._time()
        gc.collect()
        gc.freeze()  # a collection in a child would copy every page of the parent
        self.work(self)
        return True

    def _time(self) -> None:
        """Run all tests on the original code, and record how long each takes and which functions it reaches."""

        def measure(write: Callable[[Any], None]) -> None:
            set_mutant_under_test("stats")
            items = list(self.items.values())
            for item, following in zip(items, [*items[1:], None], strict=True):
                state()._stats.clear()
                start = time.perf_counter()
                failed = _fails(item, following)
                write([item.nodeid, time.perf_counter() - start, failed, sorted(state()._stats)])
            write(sorted(sys.modules))

        *measured, loaded = map(json.loads, self._in_child(measure, 3600)[1])
        for name in set(loaded) - set(sys.modules):  # import them once here instead of in every child
            with suppress(Exception):
                importlib.import_module(name)
        for nodeid, seconds, failed, functions in measured:
            if failed:
                pytest.exit(f"{nodeid} fails without any mutant: fix it first", 1)
            self.seconds[nodeid] = seconds
            for function in functions:
                self.reaching.setdefault(function, []).append(nodeid)
        if len(self.seconds) < len(self.items):
            pytest.exit("the tests did not finish without any mutant", 1)
        print(f"{sum(self.seconds.values()):5.0f} s  {len(self.seconds)} tests pass without any mutant", flush=True)
        for tests in self.reaching.values():
            tests.sort(key=self.seconds.__getitem__)

    def outcome(self, mutant: Mutant) -> str:
        """Return what noticed the mutant: a test, "time", or "" for nothing."""
        own = CORE[mutant.file]
        tests = [
            nodeid
            for nodeid in self.reaching.get(mutant.reached, [])
            if any(fnmatch.fnmatch(nodeid.partition("::")[0], pattern) for pattern in own)
        ]

        def run(write: Callable[[Any], None]) -> None:
            set_mutant_under_test(mutant.name)
            items = [self.items[nodeid] for nodeid in tests]
            for item, following in zip(items, [*items[1:], None], strict=True):
                if _fails(item, following):
                    write(item.nodeid)
                    return

        limit = SECONDS + TIMES * sum(self.seconds[nodeid] for nodeid in tests)
        code, lines = self._in_child(run, limit)
        if lines:
            killer = str(json.loads(lines[0]))
            order = self.reaching[mutant.reached]
            order.insert(0, order.pop(order.index(killer)))  # this test will probably notice the next mutant too
            return killer
        return {0: "", -signal.SIGALRM: "time"}.get(code, f"exit code {code}")

    def _in_child(self, work: Callable[[Callable[[Any], None]], None], seconds: float) -> tuple[int, list[str]]:
        """Call `work` in a fork; returns its exit code and the lines of JSON that it wrote."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.close(reader)
                for stream in (1, 2):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
                resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30,) * 2)
                signal.alarm(int(seconds) + 1)
                with os.fdopen(writer, "w", encoding="utf-8") as stream_out:
                    work(lambda value: print(json.dumps(value), file=stream_out, flush=True))
                code = 0
            finally:
                os._exit(code)
        os.close(writer)
        with os.fdopen(reader, encoding="utf-8") as stream_in:
            lines = stream_in.read().splitlines()
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), lines


def _fails(item: pytest.Item, following: pytest.Item | None) -> bool:
    return any(report.failed for report in runtestprotocol(item, log=False, nextitem=following))


class Kept:
    """Outcomes in `.mutants/`. Each is valid until its source file or its tests change."""

    def __init__(self) -> None:
        self.path = WORK / "outcomes.jsonl"
        self.outcomes: dict[str, str] = {}
        if self.path.exists():
            for line in self.path.read_text(encoding="utf-8").splitlines():
                key, outcome = json.loads(line)
                self.outcomes[key] = outcome

    def key(self, mutant: Mutant) -> str:
        return f"{mutant.name} {self._state(mutant.file)}"

    @functools.cache  # noqa: B019
    def _state(self, file: str) -> str:
        digest = hashlib.sha256()
        for path in (ROOT / file, *test_files(file), *sorted((ROOT / "tests").glob("*.py"))):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]

    def add(self, key: str, outcome: str) -> None:
        self.outcomes[key] = outcome
        with self.path.open("a", encoding="utf-8") as stream:
            print(json.dumps([key, outcome]), file=stream)


def test_files(file: str) -> list[Path]:
    """The test files for a file of the core."""
    return sorted({path for pattern in CORE[file] for path in ROOT.glob(pattern) if path.name.startswith("test_")})


def summary(mutants: Sequence[Mutant], outcomes: dict[str, str], reasons: dict[str, dict[str, str]]) -> dict[str, Any]:
    """Make the entry of one file in the record."""
    alive = [mutant for mutant in mutants if not outcomes[mutant.name]]
    file = mutants[0].file
    return {
        "file": file,
        "functions": list(PARTS[file]) if file in PARTS else "all",
        "tests": list(CORE[file]),
        "mutants": len(mutants),
        "killed": len(mutants) - len(alive),
        "of_them_by_time": sum(outcomes[mutant.name] == "time" for mutant in mutants),
        "survivors": [
            {
                "place": f"{file}:{mutant.line}",
                "change": mutant.key,
                "equivalent": reasons.get(file, {}).get(mutant.key),
            }
            for mutant in alive
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", default=list(CORE), help="files of the core; all by default")
    parser.add_argument("--all", action="store_true", help="also run mutants that are listed as equivalent")
    parser.add_argument("--record", type=Path)
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.files) - set(CORE))
    if unknown or (arguments.record and len(arguments.files) < len(CORE)):
        parser.error(f"files must be from {list(CORE)}, and all of them for --record, got {arguments.files}")

    os.chdir(ROOT)  # mutmut reads its settings here
    torch.set_num_threads(1)
    shutil.rmtree(WORK / "src", ignore_errors=True)
    shutil.copytree(ROOT / "src", WORK / "src", ignore=shutil.ignore_patterns("__pycache__"))
    found: dict[str, list[Mutant]] = {}
    for file in arguments.files:
        code, found[file] = mutated(file)
        (WORK / file).write_text(code, encoding="utf-8")
    sys.path.insert(0, str(WORK / "src"))
    kept = Kept()
    reasons = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8"))
    outcomes: dict[str, str] = {}
    start = time.perf_counter()

    def work(runner: Runner) -> None:
        for file, mutants in found.items():
            for i, mutant in enumerate(mutants):
                key = kept.key(mutant)
                named = mutant.key in reasons.get(file, {})
                if key not in kept.outcomes and (arguments.all or not named):
                    kept.add(key, runner.outcome(mutant))
                outcomes[mutant.name] = kept.outcomes.get(key, "")
                if named == bool(outcomes[mutant.name]):
                    verdict = "listed as equivalent, but noticed by" if named else "alive"
                    print(f"{file}:{mutant.line} {mutant.key}: {verdict} {outcomes[mutant.name]}", flush=True)
                if (i + 1) % 25 == 0:
                    print(f"{time.perf_counter() - start:5.0f} s  {file}: {i + 1} of {len(mutants)}", flush=True)

    files = sorted({str(path.relative_to(ROOT)) for file in found for path in test_files(file)})
    options = [
        "-q",
        "-s",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        f"--basetemp={WORK / 'tmp'}",
        *(f"--deselect={test}" for test in SLOW),
    ]
    status = pytest.main([*options, *files], plugins=[Runner(work)])
    if status != pytest.ExitCode.OK:
        raise SystemExit(int(status))

    rows = [summary(mutants, outcomes, reasons) for mutants in found.values()]
    for row in rows:
        named = sum(bool(mutant["equivalent"]) for mutant in row["survivors"])
        alive = len(row["survivors"])
        print(
            f"{row['file']}: {row['killed']} of {row['mutants']} killed, {named} of {alive} alive listed as equivalent"
        )
    if arguments.record:
        record = {
            "command": "make mutants",
            "versions": {name: version(name) for name in ("mutmut", "pytest", "torch")}
            | {"python": platform.python_version()},
            "left_out": LEFT_OUT,
            "seconds": round(time.perf_counter() - start),
            "files": rows,
        }
        arguments.record.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
