"""Every reader of untrusted files: how to call it, and seeds for mutations.

A reader takes a path. It may only raise documented errors: ValueError for a file that is damaged, foreign or dangerous,
OSError for a file that cannot be read, and CycloptsError for a config file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import seeds
from folders import (
    CLUSTERS,
    ENCODER,
    LABELER,
    LABELER_WEIGHTS,
    ROWS,
    RUN,
    TENSORS,
    compact,
    header_of,
    with_header,
)
from mutations import png_sealed

import neuralbayes as nb
from neuralbayes.cli import app
from neuralbayes.cli.config_file import options_from
from neuralbayes.cli.runs import DataChoice
from neuralbayes.data.archives import named_damage, open_file, tar_members
from neuralbayes.data.arrays import npz_keys, open_npy, open_npz
from neuralbayes.data.cache import read_cache, read_manifest
from neuralbayes.data.cifar import read_cifar, read_sheet, read_sheet_labels
from neuralbayes.data.idx import read_idx
from neuralbayes.data.images import load_images
from neuralbayes.data.pictures import read_picture
from neuralbayes.data.stl import read_stl_images, read_stl_labels
from neuralbayes.data.table_sources import read_source
from neuralbayes.data.table_writing import write_table
from neuralbayes.data.tables import read_table
from neuralbayes.distributed import blocks
from neuralbayes.features.encoder import ImageEncoder
from neuralbayes.report.explorer import runs as explored
from neuralbayes.report.explorer.commands import pretrain_command
from neuralbayes.report.explorer.probed import probe_grid
from neuralbayes.system.files import read_json, read_tensors
from neuralbayes.training import read_metrics


@dataclass(frozen=True)
class Reader:
    """A way to read a file.

    Attributes
    ----------
    suffix : str
    read : callable
        Takes the path of a file with that suffix.
    seeds : list of bytes
        Inputs to start from.
    sealed : callable
        Maps an input to the bytes of the file, and corrects lengths and checksums so that more than the first check is
        tested.
    json : bool
        Whether inputs are JSON. Then values are mutated, not only bytes.
    longest : int
        Maximum number of bytes of an input.
    """

    suffix: str
    read: Callable[[Path], Any]
    seeds: list[bytes]
    sealed: Callable[[bytes], bytes] = bytes
    json: bool = False
    longest: int = 4096


def _written_back(path: Path) -> None:
    """Read a table, and write its cells next to new ones."""
    source = read_source(path)
    write_table(path.with_name(f"out-{path.name}"), {"label": np.zeros(len(source.frame), int)}, beside=source)


def _stream(read: Callable[[Any], Any]) -> Callable[[Path], Any]:
    """A reader of streams, as for named data sets."""

    def call(path: Path) -> Any:
        with named_damage(path.name), open_file(path, 2**20) as stream:
            return read(stream)

    return call


def _tar(stream: Any) -> list[bytes]:
    return [member.read() for _, member in tar_members(stream, "set/", {"a.bin": 64})]


def _in_folder(name: str, others: dict[str, bytes], load: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """A reader of a folder in which one file is the input."""

    def read(path: Path) -> Any:
        folder = path.parent / "folder"
        if not folder.is_dir():
            folder.mkdir()
            for other, content in others.items():
                (folder / other).write_bytes(content)
        path.replace(folder / name)
        return load(folder)

    return read


def _model_with(weights: bytes, folder: Path) -> Any:
    """Load the labeler in `folder` with given weights and the matching checksum."""
    description = json.loads(LABELER["model.json"])
    (folder / description["weights"]).write_bytes(weights)
    description["sha256"] = hashlib.sha256(weights).hexdigest()
    (folder / "model.json").write_text(json.dumps(description))
    return nb.load(folder)


PRETRAIN = app["pretrain"].assemble_argument_collection(parse_docstring=False)


def _config(path: Path) -> None:
    for argument in PRETRAIN:
        argument.tokens.clear()
    options_from(path)(app, ("pretrain",), PRETRAIN)


blocks.version = cache(blocks.version)  # it searches all installed packages


def _begin(path: Path) -> Any:
    """Start a job when `path` describes an earlier one."""
    job = path.parent / "out.npy.parts" / blocks.JOB
    job.parent.mkdir(exist_ok=True)
    path.replace(job)
    return blocks.Blocks.begin(path.parent / "out.npy", {"run": "a"}, [3, 3, 3], force=False)


def _job() -> list[bytes]:
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "none").touch()
        return compact(read_json(_begin(Path(name) / "none").folder / blocks.JOB))


def _report(folder: Path) -> Any:
    """The text of a report on a run, without its pictures."""
    record = explored.RunRecord.read(folder)
    DataChoice.of(folder)
    samples: Any = SimpleNamespace(data="digits, train")
    return (
        explored._facts(record, samples),
        explored._command_note(record),
        explored._notes(folder, record, samples, own_data=True),
        pretrain_command(record.config, record.data, "run"),
        probe_grid(folder),
    )


def _run(path: Path) -> Any:
    """Report on a run whose files are in the input by name; if it is not JSON, the input replaces one of the files."""
    folder = path.parent / "run"
    folder.mkdir(exist_ok=True)
    data = path.read_bytes()
    try:
        files = {name: json.dumps(json.loads(data)[name]).encode() for name in RUN}
    except (ValueError, KeyError, TypeError, IndexError, RecursionError):
        files = {[*RUN][len(data) % len(RUN)]: data}
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return _report(folder)


READERS = {
    "csv": Reader(
        ".csv",
        _written_back,
        [b"a,b,c\n1,2,x\n3,4.5,y\n", b"1;2\n3;4\n", b'"a,""b",c\n-1e5,nan\n2,3\n', b"zip;x\n02750;0,5\n00501;1,25\n"],
    ),
    "packed-csv": Reader(
        ".csv.gz", _written_back, [b"a,b\n1,x\n2,y\n", "a;ö\r\n1,5;x\r\n".encode("utf-16")], gzip.compress
    ),
    "json-lines": Reader(".jsonl", _written_back, [b'{"a": 1, "b": "x"}\n{"a": 2.5, "b": null}\n']),
    "arrow": Reader(".arrow", _written_back, seeds.arrow()),
    "xlsx": Reader(".xlsx", _written_back, seeds.workbooks(), longest=16_384),
    "parquet": Reader(".parquet", read_table, seeds.parquet()),
    "npy": Reader(".npy", read_table, seeds.arrays()),
    "npz": Reader(".npz", read_table, seeds.archives()),
    "npy images": Reader(".npy", open_npy, [seeds.npy(seeds.images())]),
    "npz images": Reader(".npz", lambda path: [open_npz(path, key) for key in npz_keys(path)], seeds.archives()),
    "images": Reader(
        ".npz", lambda path: load_images(str(path), progress=False).source.read(np.arange(2)), seeds.archives()[2:]
    ),
    "pictures": Reader(".png", lambda path: read_picture(path, (24, 24), 3), seeds.pictures(), png_sealed),
    "idx": Reader(".idx", _stream(read_idx), seeds.idx()),
    "gzip": Reader(".gz", _stream(read_idx), [gzip.compress(seed) for seed in seeds.idx()]),
    "cifar": Reader(
        ".bin",
        _stream(partial(read_cifar, label_bytes=1, n_classes=10)),
        [bytes([3]) + bytes(3072), bytes([9]) + bytes(range(256)) * 12],
    ),
    "cifar sheets": Reader(".png", _stream(read_sheet), seeds.sheet(), png_sealed, longest=8192),
    "cifar labels": Reader(".json", _stream(read_sheet_labels), compact([1, 2, 3], {"labels": [1]}), json=True),
    "stl": Reader(".bin", _stream(read_stl_images), [bytes(27648)], longest=27648),
    "stl labels": Reader(".bin", _stream(read_stl_labels), [bytes([1, 2, 10])]),
    "tar": Reader(".tar", _stream(_tar), seeds.tar()),
    "cache manifest": Reader(
        ".json",
        _in_folder("manifest.json", {}, read_manifest),
        compact({"format": 1, "source": "x", "sha256": {"train_images": "0" * 64}}),
        json=True,
    ),
    "cache array": Reader(
        ".npy", _in_folder("train_images.npy", {}, lambda folder: read_cache(folder, ["train_images"])), seeds.arrays()
    ),
    "json": Reader(".json", read_json, compact({"a": [1, 2.5, None, "x"]}, [[[[]]]], "x"), json=True),
    "toml config": Reader(
        ".toml", _config, [b'data = "digits"\nalpha = 3\nlearning-rate = 1e-3\nrecompute = false\nscales = "1,2"\n']
    ),
    "yaml config": Reader(
        ".yaml", _config, [b"data: digits\nalpha: 3\nlearning_rate: 1e-3\nrecompute: no\n", b"a: &x {b: 1}\nc: [*x]\n"]
    ),
    "metrics": Reader(
        ".jsonl", read_metrics, [b'{"step": 1, "epoch": 0, "loss": 2.0}\n{"step": 2, "loss": null}\n'], json=True
    ),
    "tensors": Reader(".safetensors", read_tensors, [TENSORS]),
    "tensor header": Reader(
        ".safetensors", read_tensors, [header_of(TENSORS)], partial(with_header, TENSORS), json=True
    ),
    "labeler": Reader(
        ".json", _in_folder("model.json", LABELER, nb.load), compact(json.loads(LABELER["model.json"])), json=True
    ),
    "labeler of clusters": Reader(
        ".json", _in_folder("model.json", CLUSTERS, nb.load), compact(json.loads(CLUSTERS["model.json"])), json=True
    ),
    "labeler weights": Reader(
        ".safetensors",
        lambda path: _in_folder("input", LABELER, partial(_model_with, path.read_bytes()))(path),
        [header_of(LABELER_WEIGHTS)],
        partial(with_header, LABELER_WEIGHTS),
        json=True,
    ),
    "row encoder": Reader(
        ".json", _in_folder("model.json", ROWS, nb.load), compact(json.loads(ROWS["model.json"])), json=True
    ),
    "encoder": Reader(
        ".json",
        _in_folder("encoder.json", ENCODER, ImageEncoder.load),
        compact(json.loads(ENCODER["encoder.json"])),
        json=True,
    ),
    "encoder weights": Reader(
        ".safetensors",
        _in_folder("encoder.safetensors", ENCODER, ImageEncoder.load),
        [header_of(ENCODER["encoder.safetensors"])],
        partial(with_header, ENCODER["encoder.safetensors"]),
        json=True,
    ),
    "parts": Reader(".json", _begin, _job(), json=True),
    "run": Reader(".json", _run, compact(RUN), json=True),
}
