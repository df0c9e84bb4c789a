"""Small valid files in formats that other programs write, as seeds for mutations."""

from __future__ import annotations

import io
import tarfile
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def written(write: Callable[[Path], Any], suffix: str) -> bytes:
    """The bytes that a function writes to a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"seed{suffix}"
        write(path)
        return path.read_bytes()


def npy(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def _npz(compressed: bool, **arrays: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    (np.savez_compressed if compressed else np.savez)(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def arrays() -> list[bytes]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4, 3))
    return [npy(a) for a in (X, X.astype(np.float32), np.arange(6).reshape(3, 2), np.asfortranarray(X), X[:0])]


def images() -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)


def archives() -> list[bytes]:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(4, 3)), np.arange(4)
    return [_npz(c, X=X) for c in (False, True)] + [_npz(c, images=images(), labels=y[:3]) for c in (False, True)]


def arrow() -> list[bytes]:
    import pandas as pd

    frame = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": pd.Categorical(["u", "v"])})
    return [written(partial(frame.to_feather, compression=kind), ".arrow") for kind in ("zstd", "uncompressed")]


def workbooks() -> list[bytes]:
    import pandas as pd

    return [written(partial(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}).to_excel, index=False), ".xlsx")]


def parquet() -> list[bytes]:
    import pandas as pd

    frames = [
        pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}),
        pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "t": pd.to_datetime(["2020-01-01", "2021-01-01"])}),
    ]
    plain = {"use_dictionary": False, "store_schema": False}
    delta = plain | {"column_encoding": {"a": "PLAIN", "b": "DELTA_BYTE_ARRAY"}}
    kinds: list[dict[str, Any]] = [{}, {"data_page_version": "2.0"}, plain, delta]
    files = [written(partial(frames[0].to_parquet, **kind), ".parquet") for kind in kinds]
    return [*files, written(frames[1].to_parquet, ".parquet")]


def pictures() -> list[bytes]:
    def encoded(kind: str, mode: str) -> bytes:
        buffer = io.BytesIO()
        Image.fromarray(images()[0]).convert(mode).save(buffer, kind)
        return buffer.getvalue()

    kinds = [("PNG", "RGB"), ("PNG", "P"), ("JPEG", "RGB"), ("JPEG", "L"), ("BMP", "RGB"), ("GIF", "P")]
    return [encoded(*kind) for kind in [*kinds, ("TIFF", "RGB"), ("WEBP", "RGB"), ("PPM", "RGB")]]


def idx() -> list[bytes]:
    image = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (2, 3, 3)) + bytes(range(18))
    label = bytes([0, 0, 8, 1]) + (4).to_bytes(4, "big") + bytes(range(4))
    return [image, label]


def tar() -> list[bytes]:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in ("set/a.bin", "set/readme.txt"):
            member = tarfile.TarInfo(name)
            member.size = 20
            archive.addfile(member, io.BytesIO(bytes(range(20))))
    return [buffer.getvalue()[:3072]]  # without most of the zeros at the end


def sheet() -> list[bytes]:
    pixels = np.random.default_rng(0).integers(0, 256, (2, 1024, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return [buffer.getvalue()]
