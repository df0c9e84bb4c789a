"""Change small valid files of every format at random, and read them: they must be read, or refused with an error that a
caller expects. Files that end in another error, a crash of the process, or after 20 seconds are kept and named."""

from __future__ import annotations

import argparse
import faulthandler
import hashlib
import json
import os
import random
import resource
import shutil
import time
import traceback
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from PIL import Image

import neuralbayes as nb
from neuralbayes.data.tables import read_table, write_table

FRAME = pd.DataFrame({"a": [1.5, 2.0, None] * 4, "b": ["x", "né", "=1"] * 4, "c": range(12), "d": [True, False] * 6})
TABLES = ("csv", "tsv", "jsonl", "parquet", "arrow", "xlsx", "csv.gz", "csv.zst", "jsonl.gz")
PICTURES = ("png", "jpg", "tif", "gif", "webp", "bmp")
ODD: list[Any] = [None, True, -1, 10**400, 1e308, 2**63, "", "../x", "evil.py:f", "\ud800", "9" * 5000, [[]], {"": 1}]
SECONDS, BYTES, FILES = 20, 3 * 2**30, 500  # for a file, of memory, for each process


def write_valid(folder: Path) -> None:
    """Write a small valid file of every format into a folder of its own, and a model."""
    pixels = np.random.default_rng(0).integers(0, 255, (20, 30, 3), dtype=np.uint8)
    for suffix in (*TABLES, *PICTURES, "npy", "npz"):
        (folder / suffix).mkdir(parents=True)
    for suffix in TABLES:
        write_table(folder / suffix / f"t.{suffix}", FRAME)
    for suffix in PICTURES:
        Image.fromarray(pixels).save(folder / suffix / f"p.{suffix}")
    np.save(folder / "npy" / "t.npy", np.eye(5))
    np.savez(folder / "npz" / "t.npz", X=np.eye(5))
    nb.cluster(FRAME, 2).save(folder / "model")


def changed(content: bytes, rng: random.Random) -> bytes:
    """Some bytes replaced, removed, repeated, or made into extreme numbers."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at, n = rng.randrange(len(data) + 1), rng.choice((1, 2, 4, 8, 64))
        new = rng.choice((rng.randbytes(n), b"\xff" * n, b"\0" * n, data[at : at + n] * 2, b"", b'9"\\{['))
        data[at : at + rng.choice((0, n))] = new
    return bytes(data)


def change(folder: Path, rng: random.Random) -> None:
    """Change the file of a folder, a member of an archive, or a value or the weights of a model."""
    path = folder / "model.json" if folder.name == "model" else next(folder.iterdir())
    if path.suffix in (".xlsx", ".npz") and rng.random() < 0.7:  # the checksum of a member would hide a change
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        name = rng.choice(list(members))
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for other, content in members.items():
                archive.writestr(other, changed(content, rng) if other == name else content)
    elif path.suffix == ".json":
        node = whole = json.loads(path.read_text())
        while True:
            key = rng.choice(list(node) if isinstance(node, dict) else range(len(node)))
            if not isinstance(node[key], dict | list) or not node[key] or rng.random() < 0.2:
                break
            node = node[key]
        node[key] = rng.choice(ODD)
        if rng.random() < 0.2:  # with a forged checksum
            weights = next(folder.glob("weights-*"))
            weights.write_bytes(changed(weights.read_bytes(), rng))
            whole["sha256"] = hashlib.sha256(weights.read_bytes()).hexdigest()
        path.write_text(json.dumps(whole))
    else:
        path.write_bytes(changed(path.read_bytes(), rng))


def read(folder: Path) -> None:
    """Read the files of a folder as a user would."""
    if folder.name == "model":
        found = nb.load(folder)
        if isinstance(found, nb.Clustering):
            found.summary()
            found.on(FRAME).table()
    elif folder.name in PICTURES:
        nb.load_images(str(folder), progress=False)
    else:
        read_table(next(folder.iterdir()))


def read_changed(valid: Path, keep: Path, seed: int, end: float) -> None:
    """Read changed files in this process, and keep those that end in an unexpected error, or end it."""
    rng = random.Random(seed)
    resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
    warnings.simplefilter("ignore")
    for number in range(FILES if time.monotonic() < end else 0):
        kind = rng.choice([*TABLES, *PICTURES, "npy", "npz", *["model"] * 9])
        now = keep / f"{seed}-{number}" / kind
        shutil.copytree(valid / kind, now)
        change(now, rng)
        faulthandler.dump_traceback_later(SECONDS, exit=True)
        try:
            read(now)
        except (ValueError, OSError, MemoryError):
            pass
        except BaseException:
            traceback.print_exc()
            continue
        finally:
            faulthandler.cancel_dump_traceback_later()
        shutil.rmtree(now.parent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 10**9)
    parser.add_argument("--keep", type=Path, default=Path("fuzz"))
    given = parser.parse_args()
    end, seed = time.monotonic() + 60 * given.minutes, given.seed
    torch.set_num_threads(1)  # threads do not survive a fork
    write_valid(given.keep / "valid")
    while time.monotonic() < end:  # many processes, because a file may end one
        if not (child := os.fork()):
            read_changed(given.keep / "valid", given.keep, seed, end)
            os._exit(0)
        os.waitpid(child, 0)
        seed += 1
    shutil.rmtree(given.keep / "valid")
    found = sorted(map(str, given.keep.iterdir()))
    print(f"{FILES * (seed - given.seed):,} files read or refused, except {len(found)}", *found, sep="\n")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
