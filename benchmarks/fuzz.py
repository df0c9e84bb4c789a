"""Change small valid files of every format at random, and read them: they must be read, or refused with an error that a
caller expects. Files that end in another error, a crash of the process, or after 20 seconds are kept and named."""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import random
import resource
import shutil
import subprocess
import sys
import time
import traceback
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

import neuralbayes as nb
from neuralbayes.data.tables import read_table, write_table

REFUSED = (ValueError, OSError, MemoryError)
FRAME = pd.DataFrame({"a": [1.5, 2.0, None] * 4, "b": ["x", "né", "=1"] * 4, "c": range(12), "d": [True, False] * 6})
TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow", "xlsx", "csv.gz", "csv.zst", "jsonl.gz")
PICTURES = ("png", "jpg", "tif", "gif", "webp", "bmp")
ODD: list[Any] = [None, True, -1, 10**400, 1e308, 2**63, "", "../x", "evil.py:f", "\ud800", "9" * 5000, [[]], {"": 1}]
SECONDS, BYTES = 20, 3 * 2**30


def valid(folder: Path) -> list[Path]:
    """A small valid file of every format, and a model."""
    folder.mkdir(parents=True)
    for suffix in TABLES:
        write_table(folder / f"t.{suffix}", FRAME)
    np.save(folder / "t.npy", np.eye(5))
    np.savez(folder / "t.npz", X=np.eye(5))
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    for suffix in PICTURES:
        (folder / suffix).mkdir()
        Image.fromarray(pixels).save(folder / suffix / f"p.{suffix}")
    nb.cluster(FRAME, 2).save(folder / "model")
    return [*folder.glob("t.*"), *(folder / suffix / f"p.{suffix}" for suffix in PICTURES), folder / "model/model.json"]


def changed(content: bytes, rng: random.Random) -> bytes:
    """Some bytes replaced, removed, repeated, or made into extreme numbers."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64))
        new = rng.choice((rng.randbytes(n), b"\xff" * n, b"\0" * n, data[at : at + n] * 2, b"", b'9"\\{['))
        data[at : at + rng.choice((0, n))] = new
    return bytes(data)


def changed_zip(path: Path, rng: random.Random) -> None:
    """Change a member of an archive, whose checksum would hide it."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = rng.choice(list(members))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for other, content in members.items():
            archive.writestr(other, changed(content, rng) if other == name else content)


def changed_model(path: Path, rng: random.Random) -> None:
    """Replace a value of a description, or bytes of the weights with a forged checksum."""
    whole = json.loads(path.read_text())
    node: Any = whole
    while True:
        key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.2:
            break
        node = node[key]
    node[key] = rng.choice(ODD)
    if rng.random() < 0.2 and (found := list(path.parent.glob("weights-*"))):
        found[0].write_bytes(changed(found[0].read_bytes(), rng))
        whole["sha256"] = hashlib.sha256(found[0].read_bytes()).hexdigest()
    path.write_text(json.dumps(whole))


def read(path: Path) -> None:
    """Read a file as a user would."""
    if path.name == "model.json":
        found = nb.load(path.parent)
        if isinstance(found, nb.Clustering):
            found.summary()
            found.on(FRAME).table()
    elif path.name.startswith("p."):
        nb.load_images(str(path.parent), progress=False)
    else:
        read_table(path)


def work(folder: Path, seed: int, seconds: float) -> None:
    """Read changed files for some seconds."""
    rng = random.Random(seed)
    files = valid(folder / "valid")
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    warnings.simplefilter("ignore")
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        path, now = rng.choice(files) if rng.random() < 0.7 else files[-1], folder / "now"
        shutil.rmtree(now, ignore_errors=True)
        shutil.copytree(path.parent, now) if path.name == "model.json" else now.mkdir()
        path = Path(shutil.copy(path, now))
        if path.name == "model.json":
            changed_model(path, rng)
        elif path.suffix in (".xlsx", ".npz") and rng.random() < 0.7:
            changed_zip(path, rng)
        else:
            path.write_bytes(changed(path.read_bytes(), rng))
        n += 1
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            read(path)
        except REFUSED:
            pass
        except BaseException:
            traceback.print_exc()
            shutil.copytree(now, folder / f"found-{seed}-{n}")
        faulthandler.cancel_dump_traceback_later()
    print(f"{n:,} files read or refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    parser.add_argument("--keep", type=Path, default=Path("fuzz/found"))
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.work:
        return work(given.keep, given.seed, 60 * given.minutes)
    end, seed, failed = time.monotonic() + 60 * given.minutes, given.seed, 0
    while (left := end - time.monotonic()) > 0:  # a process a minute, because a file may end it
        words = ["--work", "--minutes", min(1.0, left / 60), "--seed", seed, "--keep", given.keep / str(seed)]
        failed += subprocess.run([sys.executable, __file__, *map(str, words)]).returncode != 0
        seed += 1
    found = [*map(str, given.keep.glob("*/found-*"))]
    print(f"seeds {given.seed} to {seed - 1}: {failed} processes ended, {len(found)} files with other errors", *found)
    sys.exit(failed + len(found) > 0)


if __name__ == "__main__":
    main()
