"""Feed every reader of files with mutated ones: no crash, no hang, no more memory than a limit, documented errors only.

Each reader runs in a process of its own under Atheris, which mutates whole files towards code that was not reached
before. `python fuzz/fuzz.py csv parquet --inputs 1000` tries two readers; `--record FILE` keeps the figures. An input
that breaks a reader is kept in fuzz/found/ and named.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

SECONDS, MEGABYTES, LONGEST = 5, 1024, 8192
DOCUMENTED = (ValueError, OSError)
HERE = Path(__file__).parent


def fuzz(name: str, n_inputs: int, folder: Path) -> None:
    """In a process of its own: hand mutated files to a reader, and count what it says."""
    import atheris

    with atheris.instrument_imports(include=["neuralbayes", "PIL", "zipfile", "tarfile", "gzip", "json", "numpy.lib"]):
        from readers import READERS

    warnings.simplefilter("ignore")
    reader = READERS[name]
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, seed in enumerate(reader.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
        reader.read(_written(folder, reader.suffix, seed)) if number == 0 else None  # a whole file is read
    counts = {"read": 0, "refused": 0}

    def one(data: bytes) -> None:
        path = _written(folder, reader.suffix, data)
        try:
            reader.read(path)
        except DOCUMENTED:
            counts["refused"] += 1
        else:
            counts["read"] += 1
        if sum(counts.values()) % 1000 == 0 or sum(counts.values()) >= n_inputs:
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            (folder / "counts.json").write_text(json.dumps(counts | {"peak_megabytes": peak}))
        if sum(counts.values()) >= n_inputs:
            os._exit(0)  # the alarm of the fuzzer would ring while torch is taken down

    options = [
        f"-timeout={SECONDS}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={LONGEST}",
        f"-artifact_prefix={folder}/bad-",
        "-seed=1",
        "-verbosity=0",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one)
    atheris.Fuzz()


def _written(folder: Path, suffix: str, data: bytes) -> Path:
    path = folder / f"input{suffix}"
    path.write_bytes(data)
    return path


def run(name: str, n_inputs: int) -> dict[str, Any]:
    """Fuzz a reader in a new process; what came of it."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        folder = Path(temporary)
        start = time.perf_counter()
        command = [sys.executable, __file__, name, "--inputs", str(n_inputs), "--one", temporary]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "ARROW_IO_THREADS": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, errors="replace")
        counts = json.loads((folder / "counts.json").read_text()) if (folder / "counts.json").exists() else {}
        found: dict[str, Any] = {"reader": name, **counts, "seconds": round(time.perf_counter() - start, 1)}
        if done.returncode:
            kept = HERE / "found"
            kept.mkdir(exist_ok=True)
            for bad in folder.glob("bad-*"):
                (kept / f"{name.replace(' ', '-')}-{bad.name}").write_bytes(bad.read_bytes())
            found["failure"] = "\n".join(line for line in done.stderr.splitlines() if line.strip())[-2000:]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("readers", nargs="*", help="names; all by default")
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one is not None:
        fuzz(arguments.readers[0], arguments.inputs, arguments.one)
        return
    from readers import READERS

    from neuralbayes.files import write_json

    unknown = set(arguments.readers) - set(READERS)
    if unknown:
        parser.error(f"no reader {', '.join(sorted(unknown))}; there are {', '.join(READERS)}")
    results = []
    for name in arguments.readers or READERS:
        found = run(name, arguments.inputs)
        results.append(found)
        counts = f"{found.get('read', 0):,} read, {found.get('refused', 0):,} refused"
        print(f"{name}: {counts}, {found.get('peak_megabytes', 0)} MB, {found['seconds']} s", flush=True)
        if "failure" in found:
            print(found["failure"], flush=True)
        elif arguments.record is not None:  # as they come
            there = json.loads(arguments.record.read_text()) if arguments.record.exists() else {"readers": []}
            kept = [row for row in there["readers"] if row["reader"] != name]
            write_json(arguments.record, {"command": "make fuzz", "readers": [*kept, found]})
    if any("failure" in found for found in results):
        sys.exit(1)


if __name__ == "__main__":
    main()
