"""Measure memory and time of `neuralbayes label` on a folder of many photographs of 12 megapixels.

    python benchmarks/photographs.py FOLDER WORK --n 10000

FOLDER contains some photographs, for example from the Debian packages mate-backgrounds, ukui-wallpapers and
plasma-workspace-wallpapers. Up to 30 of them are scaled to 4000 x 3000 pixels. They are copied into WORK until it has n
files, and each copy has a different comment, so all files differ. Labelling uses one thread and clusters pixels, or the
features of a pretrained network with ``--features``. Results go to results/real/photographs.json.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import resource
import struct
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from PIL import Image
from records import Results

ROOT = Path(__file__).parents[1]
SIZE = (4000, 3000)
N_DIFFERENT = 30
N_CLUSTERS = 10


def make(given: Path, work: Path, n: int) -> None:
    """Write `n` different JPEG files, unless they exist."""
    work.mkdir(parents=True, exist_ok=True)
    if (work / f"{n - 1:05}.jpg").exists():
        return
    pictures = []
    for path in sorted(given.rglob("*.jpg"))[:N_DIFFERENT]:
        with Image.open(path) as picture, io.BytesIO() as file:
            picture.convert("RGB").resize(SIZE, Image.Resampling.BICUBIC).save(file, "JPEG", quality=72)
            pictures.append(file.getvalue())
    for i in range(n):
        content, note = pictures[i % len(pictures)], f"photograph {i}".encode()
        comment = b"\xff\xfe" + struct.pack(">H", len(note) + 2) + note
        (work / f"{i:05}.jpg").write_bytes(content[:2] + comment + content[2:])


def measure(work: Path, n: int, features: str | None) -> dict[str, object]:
    """Measure `neuralbayes label` on the first `n` pictures, in a new process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "neuralbayes", "label", str(work), "--clusters", str(N_CLUSTERS)]
        command += ["--limit", str(n), "--out", f"{folder}/labels.csv", "--quiet"]
        command += [] if features is None else ["--features", features]
        start = time.perf_counter()
        subprocess.run(command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
        wall = time.perf_counter() - start
        n_labels = len(Path(folder, "labels.csv").read_text("utf-8").splitlines()) - 1
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seed": 0,
        "pictures": n_labels,
        "megapixels": SIZE[0] * SIZE[1] / 1e6,
        "features": features is not None,
        "bytes": sum(path.stat().st_size for path in sorted(work.iterdir())[:n]),
        "peak_megabytes": used.ru_maxrss / 1024,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "wall_seconds": wall,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--features", help="pretrained network, as for `neuralbayes label`")
    arguments = parser.parse_args()
    make(arguments.folder, arguments.work, arguments.n)
    versions = {"python": platform.python_version()}
    versions |= {name: version(name) for name in ("neuralbayes", "torch", "numpy", "pillow")}
    command = "python benchmarks/photographs.py FOLDER WORK"
    results = Results(ROOT / "results" / "real", versions, ["photographs"], command)
    record = measure(arguments.work, arguments.n, arguments.features)
    results.add("photographs", record)
    print(record)


if __name__ == "__main__":
    main()
