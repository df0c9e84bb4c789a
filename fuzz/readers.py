"""Every reader of files that may come from strangers: how to call it, and whole files to start mutating from.

A reader takes a path. What it may raise is in its documentation: ValueError for a file that is damaged, foreign or
dangerous, OSError for one that cannot be read.
"""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import neuralbayes as nb
from neuralbayes.data.archives import open_file, tar_members
from neuralbayes.data.arrays import npz_keys, open_npy, open_npz
from neuralbayes.data.cifar import read_cifar, read_sheet, read_sheet_labels
from neuralbayes.data.idx import read_idx
from neuralbayes.data.images import load_images
from neuralbayes.data.pictures import read_picture
from neuralbayes.data.stl import read_stl_images, read_stl_labels
from neuralbayes.data.tables import read_table
from neuralbayes.encoder import ImageEncoder
from neuralbayes.files import read_json, read_tensors
from neuralbayes.training import read_metrics
from neuralbayes.training.checkpoint import read_checkpoint, save_checkpoint


@dataclass(frozen=True)
class Reader:
    """A way to read a file.

    Attributes
    ----------
    suffix : str
    read : callable
        Of the path of a file with that suffix.
    seeds : callable
        Whole files, as bytes.
    """

    suffix: str
    read: Callable[[Path], Any]
    seeds: Callable[[], list[bytes]]


def _bytes(write: Callable[[Path], Any], suffix: str) -> bytes:
    """What a writer of files writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"seed{suffix}"
        write(path)
        return path.read_bytes()


def _npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _npz(compressed: bool, **arrays: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def _arrays() -> list[bytes]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 3))
    return [_npy(a) for a in (X, X.astype(np.float32), np.arange(6).reshape(3, 2), np.asfortranarray(X), X[:0])]


def _images() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)


def _archives() -> list[bytes]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 3)), np.arange(4)
    return [_npz(c, X=X) for c in (False, True)] + [_npz(c, images=_images(), labels=y[:3]) for c in (False, True)]


def _parquet() -> list[bytes]:
    import pandas as pd

    frames = [
        pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "t": pd.to_datetime(["2020-01-01", "2021-01-01"])}),
    ]
    return [_bytes(frame.to_parquet, ".parquet") for frame in frames]


def _pictures() -> list[bytes]:
    def encoded(kind: str, mode: str) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(_images()[0]).convert(mode).save(buffer, kind)
        return buffer.getvalue()

    kinds = [("PNG", "RGB"), ("PNG", "P"), ("JPEG", "RGB"), ("JPEG", "L"), ("BMP", "RGB"), ("GIF", "P")]
    return [encoded(*kind) for kind in [*kinds, ("TIFF", "RGB"), ("WEBP", "RGB"), ("PPM", "RGB")]]


def _idx() -> list[bytes]:
    image = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (2, 3, 3)) + bytes(range(18))
    label = bytes([0, 0, 8, 1]) + (4).to_bytes(4, "big") + bytes(range(4))
    return [image, label, gzip.compress(image), gzip.compress(label)]


def _tar() -> list[bytes]:
    def packed(mode: str) -> bytes:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
            for name in ("set/a.bin", "set/readme.txt"):
                member = tarfile.TarInfo(name)
                member.size = 20
                archive.addfile(member, io.BytesIO(bytes(range(20))))
        return buffer.getvalue()

    return [packed("w"), packed("w:gz")]


def _read_tar(path: Path) -> list[bytes]:
    with open_file(path, 2**20) as stream:
        return [member.read() for _, member in tar_members(stream, "set", {"a.bin": 64})]


def _read_stream(read: Callable[[Any], Any]) -> Callable[[Path], Any]:
    def call(path: Path) -> Any:
        with open_file(path, 2**20) as stream:
            return read(stream)

    return call


def _sheet() -> list[bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 1024, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return [buffer.getvalue()]


def _tensors() -> list[bytes]:
    from neuralbayes.files import write_tensors

    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1, 2])}
    return [_bytes(lambda path: write_tensors(path, tensors, {"format": "1"}), ".safetensors")]


def _checkpoints() -> list[bytes]:
    with tempfile.TemporaryDirectory() as folder:
        state = {
            "step": 3,
            "network": {"w": torch.ones(2, 2)},
            "rng": [(1, torch.arange(3), None)],
            "loss": float("nan"),
        }
        return [save_checkpoint(folder, 3, state).read_bytes()]


def _in_folder(name: str, others: dict[str, bytes], load: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """A reader of a folder, one file of which is the input."""

    def read(path: Path) -> Any:
        folder = path.parent / f"folder-{name}"
        folder.mkdir(exist_ok=True)
        for other, content in others.items():
            if not (folder / other).exists():
                (folder / other).write_bytes(content)
        (folder / name).write_bytes(path.read_bytes())
        return load(folder)

    return read


def _files(save: Callable[[Path], Any]) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as folder:
        save(Path(folder) / "saved")
        return {path.name: path.read_bytes() for path in (Path(folder) / "saved").iterdir()}


def _model() -> dict[str, bytes]:
    X = np.random.default_rng(0).normal(size=(30, 2)) + 5 * (np.arange(30) % 2)[:, None]
    return _files(nb.ManifoldLabeler(2, random_state=0).fit(X).save)


def _encoder() -> dict[str, bytes]:
    from neuralbayes.data.normalize import Normalization

    images = np.random.default_rng(0).integers(0, 256, (3, 22, 22, 1), dtype=np.uint8)
    return _files(ImageEncoder("tiny", (22, 22, 1), Normalization.fit(images, progress=False)).save)


MODEL, ENCODER = _model(), _encoder()

READERS = {
    "csv": Reader(
        ".csv", read_table, lambda: [b"a,b,c\n1,2,x\n3,4.5,y\n", b"1;2\n3;4\n", b'"a,""b",c\n-1e5,nan\n2,3\n']
    ),
    "tsv": Reader(".tsv", read_table, lambda: [b"a\tb\n1\t2\n3\t4\n"]),
    "parquet": Reader(".parquet", read_table, _parquet),
    "npy": Reader(".npy", read_table, _arrays),
    "npz": Reader(".npz", read_table, _archives),
    "npy images": Reader(".npy", open_npy, lambda: [_npy(_images())]),
    "npz images": Reader(".npz", lambda path: [open_npz(path, key) for key in npz_keys(path)], _archives),
    "images": Reader(
        ".npz", lambda path: load_images(str(path), progress=False).source.read(np.arange(2)), lambda: _archives()[2:]
    ),
    "pictures": Reader(".png", lambda path: read_picture(path, (24, 24), 3), _pictures),
    "idx": Reader(".gz", _read_stream(read_idx), _idx),
    "cifar": Reader(
        ".bin",
        _read_stream(lambda stream: read_cifar(stream, label_bytes=1, n_classes=10)),
        lambda: [bytes([3]) + bytes(3072), bytes([9]) + bytes(range(256)) * 12],
    ),
    "cifar sheets": Reader(".png", _read_stream(read_sheet), _sheet),
    "cifar labels": Reader(".json", _read_stream(read_sheet_labels), lambda: [b"[1, 2, 3]", b'{"labels": [1]}']),
    "stl": Reader(".bin", _read_stream(read_stl_images), lambda: [bytes(27648)]),
    "stl labels": Reader(".bin", _read_stream(read_stl_labels), lambda: [bytes([1, 2, 10])]),
    "tar": Reader(".tar.gz", _read_tar, _tar),
    "json": Reader(".json", read_json, lambda: [b'{"a": [1, 2.5, null, "x"]}', b"[[[[]]]]", json.dumps("x").encode()]),
    "metrics": Reader(".jsonl", read_metrics, lambda: [b'{"step": 1, "loss": 2.0}\n{"step": 2, "loss": null}\n']),
    "tensors": Reader(".safetensors", read_tensors, _tensors),
    "checkpoint": Reader(".safetensors", read_checkpoint, _checkpoints),
    "model.json": Reader(".json", _in_folder("model.json", MODEL, nb.load), lambda: [MODEL["model.json"]]),
    "encoder.json": Reader(
        ".json", _in_folder("encoder.json", ENCODER, ImageEncoder.load), lambda: [ENCODER["encoder.json"]]
    ),
}
