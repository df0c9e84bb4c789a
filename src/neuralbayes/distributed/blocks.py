"""Finished blocks of a result, kept as files next to it, so that an interrupted command can continue.

The main process writes all blocks, even if workers compute them. So workers need no common folder, the folder has a
single writer, and a killed worker leaves no partial file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.system.files import atomic_write, inside, read_json, write_json

if TYPE_CHECKING:
    from neuralbayes.distributed.workers import Compute, Piece, Workers

JOB = "job.json"
OURS = re.compile(r"\.?(job|block-\d{5,})\b.*\.(json|npy)")
"""Files that may be in the folder, including partial ones. Nothing else is ever deleted."""

DIGEST = "blake2b:"


@dataclass(frozen=True)
class Blocks:
    """The blocks of one result. Iteration returns their arrays, in order.

    Attributes
    ----------
    folder : Path
        ``features.npy.parts`` for the result ``features.npy``.
    sizes : sequence of int
        Rows of each block.
    digest : str
        Digest of the inputs. It is part of the names of blocks, so that blocks of two jobs are never mixed.
    """

    folder: Path
    sizes: Sequence[int]
    digest: str

    @classmethod
    def begin(cls, out: Path, job: Mapping[str, Any], sizes: Sequence[int], *, force: bool) -> Blocks:
        """Start a job, or continue it.

        Parameters
        ----------
        out : Path
            The result.
        job : mapping
            Everything that determines the result, as JSON types.
        sizes : sequence of int
        force : bool
            Whether to start again if the folder contains another job.

        Raises
        ------
        ValueError
            If the folder contains another job, or other files.
        """
        folder = inside(out.parent, f"{out.name}.parts")
        if folder.exists() and not folder.is_dir():
            raise NotADirectoryError(f"{folder} must be a folder for blocks of the result, but is a file; rename it")
        for path in folder.iterdir() if folder.is_dir() else ():
            if not OURS.fullmatch(inside(folder, path.name).name):
                raise ValueError(f"{folder} must only contain blocks of the result, got {path.name}; move or rename it")
        libraries = {name: version(name) for name in ("neuralbayes", "torch")}  # other versions may round differently
        job = {**job, "rows": sum(sizes), "blocks": digest(map(str, sizes)), **libraries}
        blocks = cls(
            folder, sizes, hashlib.blake2b(json.dumps(job, sort_keys=True).encode(), digest_size=4).hexdigest()
        )
        earlier = _read_job(folder / JOB)
        if earlier != job:
            if earlier is not None and not force:
                raise ValueError(
                    f"{folder} holds blocks of another job ({_differences(earlier, job)}); --force starts again, and "
                    "another --out keeps them"
                )
            blocks._clear()
            write_json(folder / JOB, job)
        return blocks

    def missing(self) -> list[int]:
        """The missing or damaged blocks."""
        return [i for i in range(len(self.sizes)) if self._read(i) is None]

    def fill(self, workers: Workers, compute: Compute, model: Any, piece: Piece) -> Iterator[int]:
        """Compute the missing blocks, and store each one as soon as it is done.

        Parameters
        ----------
        workers : Workers
        compute, model, piece
            As in :meth:`neuralbayes.distributed.workers.Workers.map`.

        Yields
        ------
        int
            Number of rows of each finished block.
        """
        try:
            for i, array in workers.map(compute, model, piece, self.missing()):
                if array.ndim != 2 or len(array) != self.sizes[i]:
                    raise ValueError(f"block {i} must have {self.sizes[i]} rows, got shape {array.shape}")
                with atomic_write(self._path(i)) as temporary, open(temporary, "wb") as file:
                    np.save(file, array, allow_pickle=False)
                yield len(array)
        except KeyboardInterrupt:
            message = f"finished blocks are kept in {self.folder}; run the same command to continue"
            raise KeyboardInterrupt(message) from None

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for i in range(len(self.sizes)):
            array = self._read(i)
            if array is None:
                raise FileNotFoundError(
                    f"{self._path(i)} is missing, although this block was finished; run the same command again"
                )
            yield np.array(array)

    def remove(self) -> None:
        """Delete the folder after the result has been written."""
        self._clear()
        with suppress(OSError):  # someone has put another file there
            self.folder.rmdir()

    def _path(self, i: int) -> Path:
        return self.folder / f"block-{i:05d}-{self.digest}.npy"

    def _read(self, i: int) -> NDArray[Any] | None:
        """A memory-mapped block; None if it is missing or damaged."""
        try:
            array = np.load(self._path(i), mmap_mode="r", allow_pickle=False)
        except Exception:  # any error of NumPy on a damaged file
            return None
        return array if isinstance(array, np.ndarray) and array.shape[:1] == (self.sizes[i],) else None

    def _clear(self) -> None:
        for path in list(self.folder.iterdir()) if self.folder.is_dir() else ():
            if OURS.fullmatch(path.name):
                path.unlink(missing_ok=True)


def cut(n_rows: int, block_rows: int) -> list[slice]:
    """Sizes of blocks of `block_rows` rows; the last one may be smaller.

    Examples
    --------
    >>> cut(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + block_rows, n_rows)) for start in range(0, n_rows, block_rows)]


def digest(items: Iterable[str | bytes]) -> str:
    """A digest of a sequence of texts or bytes."""
    found = hashlib.blake2b(digest_size=16)
    for item in items:
        data = item.encode(errors="surrogateescape") if isinstance(item, str) else item
        found.update(f"{len(data)} ".encode() + data)
    return DIGEST + found.hexdigest()


def stamps(paths: Iterable[Path]) -> str:
    """A digest of the names, sizes and modification times of files."""
    found = ((path.absolute(), path.stat()) for path in paths)
    return digest(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in found)


def _read_job(path: Path) -> dict[str, Any] | None:
    """The job of a folder; None if there is no readable one."""
    with suppress(OSError, ValueError):
        job = read_json(path)
        return job if isinstance(job, dict) else None
    return None


def _differences(earlier: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    names = [name for name in {**earlier, **job} if earlier.get(name) != job.get(name)]
    return ", ".join(
        f"{name} has changed" if str(earlier.get(name)).startswith(DIGEST) else f"{name} was {earlier.get(name)!r}"
        for name in names
    )
