"""Change one operator, constant or branch of the core at a time, and count the changes that the tests do not notice.

    python benchmarks/mutants.py                          what is not measured yet
    python benchmarks/mutants.py --only clusters --again  survivors once more, after tests were added

A seeded sample of each part is measured with the tests that mirror it, and saved in results/guarantees/mutants.json; an
interrupted run continues. A survivor that no test could notice is given a reason there, as "equivalent", by hand. The
system must have fork: torch is imported once, and each fork imports the library with a change.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.machinery
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import lightning_fabric  # noqa: F401
import pandas  # noqa: F401
import pytest
from records import Record, Results

ROOT, SOURCE = Path(__file__).parents[1], Path(__file__).parents[1] / "src" / "neuralbayes"
PARTS: dict[str, tuple[int, str, tuple[str, ...]]] = {  # size of the sample, source, tests that start no processes
    "bayes": (40, "bayes.py", ("tests/test_bayes*.py", "tests/objectives/test_[dem]*.py")),
    "objectives": (40, "objectives/*.py", ("tests/objectives/*.py", "tests/gradients/test_smoothness*.py")),
    "gradients": (
        40,
        "gradients/*.py",
        tuple(f"tests/gradients/test_{n}*.py" for n in ("backward_t", "[ems]", "gradient_e", "pas", "repl")),
    ),
    "certificate": (40, "manifolds/certificate.py", ("tests/manifolds/*.py", "tests/estimators/test_manifold_*.py")),
    "clusters": (90, "clusters/*.py", ("tests/clusters/*.py", "tests/estimators/test_update.py")),
}
CPU_SECONDS, SECONDS = 120, 240
SWAPPED: dict[type, list[type]] = {
    ast.Lt: [ast.LtE, ast.GtE], ast.LtE: [ast.Lt, ast.Gt], ast.Gt: [ast.GtE, ast.LtE], ast.GtE: [ast.Gt, ast.Lt],
    ast.Eq: [ast.NotEq], ast.NotEq: [ast.Eq], ast.Is: [ast.IsNot], ast.IsNot: [ast.Is], ast.In: [ast.NotIn],
    ast.NotIn: [ast.In], ast.Add: [ast.Sub], ast.Sub: [ast.Add], ast.Mult: [ast.Div], ast.Div: [ast.Mult],
    ast.FloorDiv: [ast.Mult], ast.Mod: [ast.FloorDiv], ast.Pow: [ast.Mult], ast.And: [ast.Or], ast.Or: [ast.And],
    ast.BitAnd: [ast.BitOr], ast.BitOr: [ast.BitAnd],
}  # fmt: skip
OTHER = {"min": "max", "any": "all", "argmin": "argmax", "minimum": "maximum", "zeros": "ones", "floor": "ceil"}
OTHER |= {b: a for a, b in OTHER.items()}


def others(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that may take the place of a node."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            for new in SWAPPED[type(operator)]:
                yield ast.Compare(node.left, [*node.ops[:i], new(), *node.ops[i + 1 :]], node.comparators)
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for new in SWAPPED.get(type(node.op), []):
            changed = copy.copy(node)
            changed.op = new()
            yield changed
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        yield ast.Constant(not node.value if isinstance(node.value, bool) else 0 if node.value == 1 else node.value + 1)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        yield node.operand
    elif isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    elif isinstance(node, ast.If):
        if isinstance(node.body[0], ast.Raise):
            yield ast.Pass()
        yield ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Name) and node.id in OTHER:
        yield ast.Name(OTHER[node.id], node.ctx)
    elif isinstance(node, ast.Attribute) and node.attr in OTHER:
        yield ast.Attribute(node.value, OTHER[node.attr], node.ctx)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield ast.Pass()


def changes(path: Path) -> Iterator[tuple[str, ast.Module]]:
    """Every change of a file, as text, and the module, which has this change only until the next one is asked for."""
    tree = ast.parse(path.read_text("utf-8"))

    def walk(parent: ast.AST, place: str, statement: ast.AST) -> Iterator[tuple[str, ast.Module]]:
        if isinstance(parent, ast.Raise | ast.ImportFrom):
            return
        if isinstance(parent, ast.If) and ast.unparse(parent.test) == "TYPE_CHECKING":
            return
        for name, field in ast.iter_fields(parent):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for i, node in enumerate(field if isinstance(field, list) else [field]):
                if not isinstance(node, ast.AST):
                    continue
                inner = f"{place} {node.name}" if isinstance(node, ast.FunctionDef | ast.ClassDef) else place
                line = node if isinstance(node, ast.stmt) else statement
                for other in others(node):
                    before = ast.unparse(line).splitlines()[0]
                    setattr(parent, name, [*field[:i], other, *field[i + 1 :]] if isinstance(field, list) else other)
                    after = ast.unparse(other if line is node else line).splitlines()[0]
                    yield f"{inner}: {before}  ->  {after}", tree
                    setattr(parent, name, field)
                yield from walk(node, inner, line)

    yield from walk(tree, path.relative_to(SOURCE).as_posix(), tree)


def fails(path: Path, code: CodeType, tests: list[str]) -> bool:
    """Whether some of the tests fail in a fork, with other code for a module."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) not in (0, pytest.ExitCode.NO_TESTS_COLLECTED)
    usual = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> Any:
        return code if self.path == str(path) else usual(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
    failed: int = 1
    try:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        signal.alarm(SECONDS)
        importlib.import_module(".".join(path.relative_to(SOURCE.parent).with_suffix("").parts))  # before pytest does
        failed = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--assert=plain", *tests])
    finally:
        os._exit(failed)


def wanted(part: str, results: Results, again: bool) -> Iterator[tuple[Path, str, CodeType]]:
    """The changes of a part that are in the sample and not measured yet, in random order, and the changed code."""
    size, source, _ = PARTS[part]
    paths = sorted(SOURCE.glob(source))
    every = list(dict.fromkeys((path, change) for path in paths for change, _ in changes(path)))
    sample = random.Random(part).sample(every, len(every))[:size]
    records = {r["change"]: r for r in results.records["mutants"] if r["part"] == part}
    survived = {change for change, r in records.items() if r["result"] == "survived" and "equivalent" not in r}
    for path, change in sample:
        if change not in records or (again and change in survived):
            module = next(module for found, module in changes(path) if found == change)
            yield path, change, compile(ast.fix_missing_locations(copy.deepcopy(module)), path, "exec")


def measure(part: str, results: Results, again: bool, end: float, jobs: int) -> None:
    """Measure changes until the time `end`, `jobs` at a time."""
    tests = [str(test) for pattern in PARTS[part][2] for test in sorted(ROOT.glob(pattern))]
    running: dict[int, str] = {}
    first = sorted(SOURCE.glob(PARTS[part][1]))[0]
    new = not any(record["part"] == part for record in results.records["mutants"])
    if new and fails(first, compile(first.read_text("utf-8"), first, "exec"), [str(first), *tests]):
        raise RuntimeError(f"the tests of {part} must pass before anything is changed")

    def wait() -> None:
        child, status = os.wait()
        key: Record = {"part": part, "seed": 0, "change": running.pop(child)}
        results.forget("mutants", [key])
        results.add("mutants", key | {"result": "killed" if status else "survived"})
        print(results.records["mutants"][-1], flush=True)

    for path, change, code in wanted(part, results, again):
        if time.monotonic() > end:
            break
        own = [str(path), *(test for test in tests if path.stem in test)]  # which fail first
        child = os.fork()
        if not child:
            os._exit(fails(path, code, own) or fails(path, code, [test for test in tests if test not in own]))
        running[child] = change
        if len(running) == jobs:
            wait()
    while running:
        wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--again", action="store_true", help="test survivors once more")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so many; run again to go on")
    parser.add_argument("--jobs", type=int, default=3)
    options = parser.parse_args()
    folder, end = ROOT / "results" / "guarantees", time.monotonic() + options.seconds
    results = Results(folder, ("neuralbayes", "pytest", "torch"), ["mutants"], "python benchmarks/mutants.py")
    sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
    sys.dont_write_bytecode, sys.pycache_prefix = False, tempfile.mkdtemp()  # that the forks share
    for part in [options.only] if options.only else PARTS:
        measure(part, results, options.again, end, options.jobs)
        records = [r for r in results.records["mutants"] if r["part"] == part]
        killed, equivalent = sum(r["result"] == "killed" for r in records), sum("equivalent" in r for r in records)
        print(f"{part}: {killed} of {len(records) - equivalent} killed, {equivalent} equivalent")


if __name__ == "__main__":
    main()
