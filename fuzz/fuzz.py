"""Feed mutated files to every reader: no crash, no hang, limited memory, and only documented errors.

Each reader runs in its own process under Atheris, which mutates files towards code that was not reached before. `python
fuzz/fuzz.py csv parquet --inputs 1000` tries two readers, and `--record FILE` saves the figures. An input that breaks a
reader is saved in fuzz/found/. After the reader is fixed, move the input to fuzz/corpus/, which is tried first.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import resource
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

SECONDS, MEGABYTES = 5, 1024
HERE = Path(__file__).parent
CORPUS, FOUND = HERE / "corpus", HERE / "found"
PARSERS = ["neuralbayes", "PIL", "zipfile", "tarfile", "gzip", "json", "tomllib", "yaml", "numpy.lib"]
"""Packages written in Python whose code the fuzzer should reach."""


def fuzz(name: str, n_inputs: int, folder: Path) -> None:
    """Feed mutated files to a reader, and count the outcomes; runs in its own process."""
    import atheris
    from cyclopts import CycloptsError
    from mutations import mutate_json
    from readers import READERS

    reader = READERS[name]
    warnings.simplefilter("ignore")
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate([*reader.seeds, *(path.read_bytes() for path in _earlier(name))]):
        (corpus / f"seed-{number}").write_bytes(seed)
    counts = {"inputs": 0, "read": 0}
    slowest = 0.0
    path = folder / f"input{reader.suffix}"

    def one(data: bytes) -> None:
        nonlocal slowest
        path.write_bytes(reader.sealed(data))
        start = time.perf_counter()
        try:
            reader.read(path)
            counts["read"] += 1
        except (ValueError, OSError, CycloptsError):
            pass
        except Exception:
            (folder / f"bad-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
            raise
        slowest = max(slowest, time.perf_counter() - start)
        counts["inputs"] += 1
        if counts["inputs"] == n_inputs:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            figures = {"slowest_ms": round(1000 * slowest), "peak_megabytes": peak}
            (folder / "counts.json").write_text(json.dumps(counts | figures))
            os._exit(0)  # the timeout of the fuzzer would fire while torch shuts down

    options = [
        f"-timeout={SECONDS}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={reader.longest}",
        "-len_control=0",
        f"-artifact_prefix={folder}/bad-",
        "-seed=1",
    ]
    mutator = {"custom_mutator": partial(mutate_json, reader.seeds)} if reader.json else {}
    atheris.Setup([sys.argv[0], *options, str(corpus)], one, **mutator)
    atheris.Fuzz()


def start(name: str, n_inputs: int, folder: Path) -> int:
    """Start to fuzz a reader in a fork of this process; returns its id."""
    process = os.fork()
    if process:
        return process
    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        fuzz(name, n_inputs, folder)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def outcome(name: str, folder: Path, seconds: float) -> dict[str, Any]:
    """The outcome of fuzzing a reader; a bad input is saved."""
    log = (folder / "log").read_text(errors="replace")
    counts = json.loads((folder / "counts.json").read_text()) if (folder / "counts.json").exists() else {}
    code = [int(number) for number in re.findall(r"^#\d+\s+(?:INITED|NEW|REDUCE|pulse)\s+cov: (\d+)", log, re.M)]
    grown = sum(not path.name.startswith("seed-") for path in (folder / "corpus").glob("*"))
    found: dict[str, Any] = {"reader": name, **counts}
    if code:
        found |= {"branches_of_seeds": code[0], "branches": max(code), "inputs_that_reached_new_code": grown}
    found["seconds"] = round(seconds, 1)
    if not counts:
        FOUND.mkdir(exist_ok=True)
        for bad in folder.glob("bad-*"):
            (FOUND / f"{name.replace(' ', '-')}.{bad.name[4:]}").write_bytes(bad.read_bytes())
        found["failure"] = "\n".join(line for line in log.splitlines() if not line.startswith("#"))[-2000:]
    return found


def run(names: list[str], n_inputs: int, workers: int) -> Iterator[dict[str, Any]]:
    """Fuzz readers, `workers` at a time; yields the outcome of each when it ends."""
    memory = Path("/dev/shm")
    waiting, running = list(names), {}
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        while waiting or running:
            if waiting and len(running) < workers:
                name = waiting.pop(0)
                folder = Path(temporary) / name.replace(" ", "-")
                folder.mkdir()
                running[start(name, n_inputs, folder)] = name, folder, time.perf_counter()
                continue
            process, _ = os.wait()
            name, folder, began = running.pop(process)
            yield outcome(name, folder, time.perf_counter() - began)


def _earlier(name: str) -> list[Path]:
    """Inputs that broke a reader before."""
    return sorted(path for folder in (CORPUS, FOUND) for path in folder.glob(f"{name.replace(' ', '-')}.*"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", help="names of readers; all by default")
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=1, help="number of readers at a time")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--resume", action="store_true", help="skip readers that are in the record with as many inputs")
    arguments = parser.parse_args()
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_IO_THREADS"):
        os.environ[variable] = "1"  # a fork has none of the threads
    import atheris

    # Atheris names every module that it instruments.
    with contextlib.redirect_stderr(io.StringIO()), atheris.instrument_imports(include=PARSERS):
        import yaml  # noqa: F401
        from readers import READERS

        from neuralbayes.system.files import write_json

    unknown = set(arguments.readers) - set(READERS)
    if unknown:
        parser.error(f"unknown readers: {', '.join(sorted(unknown))}; choose from {', '.join(READERS)}")
    rows: list[dict[str, Any]] = []
    if arguments.record is not None and arguments.record.exists():
        rows = json.loads(arguments.record.read_text())["readers"]
    done = {row["reader"] for row in rows if row["inputs"] >= arguments.inputs} if arguments.resume else set()
    failed = False
    for found in run([n for n in arguments.readers or READERS if n not in done], arguments.inputs, arguments.workers):
        name = found["reader"]
        if "failure" in found:
            failed = True
            print(f"{name}: {found['failure']}", flush=True)
            continue
        share = found["read"] / found["inputs"]
        print(
            f"{name}: {found['inputs']:,} inputs, {share:.1%} read, {found['branches']} branches, slowest "
            f"{found['slowest_ms']} ms, {found['peak_megabytes']} MB, {found['seconds']} s",
            flush=True,
        )
        if arguments.record is not None:  # after each reader
            rows = [row for row in rows if row["reader"] != name] + [found]
            rows.sort(key=lambda row: [*READERS].index(row["reader"]))
            limits = {"seconds": SECONDS, "megabytes": MEGABYTES}
            write_json(arguments.record, {"command": "make fuzz", "limits": limits, "readers": rows})
    sys.exit(failed)


if __name__ == "__main__":
    main()
