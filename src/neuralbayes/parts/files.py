"""The parts of a result as files in a folder, and how a process computes its share of them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.arrays import open_npy
from neuralbayes.distributed.launch import Share
from neuralbayes.system.bounds import MAX_LISTING_BYTES
from neuralbayes.system.files import atomic_write, read_json

JOB, LISTING = "job.json", "listing.json"
OURS = re.compile(r"\.?(job|listing|part-\d{5,})\b.*\.(json|npy)")
"""What may lie in the folder, files that are being written among them: nothing else is ever deleted."""

POLL = 0.1
"""Seconds between two looks at a folder."""
PATIENCE = 60.0
"""Seconds without a new part, or several times as long as one takes, after which process 0 computes one itself."""

Compute = Callable[[slice], NDArray[Any]]
"""The result for some rows: a slice of n rows -> an array (n, n_columns)."""


@dataclass(frozen=True)
class Parts:
    """The parts of one job, in one folder; iterating gives the rows and the array of each, in order.

    Attributes
    ----------
    folder : Path
    share : Share
        Which process this is.
    n_rows, part_rows, n_columns : int
        Rows of the whole result and of a part, and its columns.
    dtype : str
    digest : str
        Of what the parts are computed from; a part has it in its name, so that parts of two jobs are never mixed.
    """

    folder: Path
    share: Share
    n_rows: int
    part_rows: int
    n_columns: int
    dtype: str
    digest: str

    def __len__(self) -> int:
        return math.ceil(self.n_rows / self.part_rows)

    def __iter__(self) -> Iterator[tuple[slice, NDArray[Any]]]:
        for part in range(len(self)):
            yield self._rows(part), np.array(open_npy(self._path(part)))

    def n_finished(self) -> int:
        """How many parts are there."""
        return len(self._finished(range(len(self))))

    def fill(self, compute: Compute) -> Iterator[int]:
        """Compute the missing parts of this process; as process 0 wait for those of the others.

        Parameters
        ----------
        compute : callable

        Yields
        ------
        int
            The rows of each part that has come.
        """
        rank, world = self.share.rank, self.share.world
        missing = set(range(len(self)) if rank == 0 else range(rank, len(self), world))
        missing -= self._finished(missing)
        own = sorted((part for part in missing if part % world == rank), reverse=True)
        slowest, heard = 0.0, time.monotonic()
        while missing:
            computed = None
            if own or time.monotonic() - heard > max(PATIENCE, 5 * slowest):
                start = time.monotonic()
                computed = own.pop() if own else max(missing)
                self._store(computed, compute)
                slowest = max(slowest, time.monotonic() - start)
            come = self._finished(missing)
            for part in sorted(come):
                yield self._shape(part)[0]
            missing -= come
            if come - {computed}:
                heard = time.monotonic()
            if not come:
                if rank and not self._open():
                    return  # process 0 had no patience and is done
                time.sleep(POLL)

    def listing(self) -> Any:
        """What process 0 gave to :func:`begin` for the others, or None."""
        return read_json(self.folder / LISTING, limit=MAX_LISTING_BYTES)

    def remove(self) -> None:
        """Delete the folder, as process 0, when its parts have been put together."""
        clear(self.folder)
        with suppress(OSError):  # somebody has put another file there
            self.folder.rmdir()

    def _rows(self, part: int) -> slice:
        return slice(part * self.part_rows, min((part + 1) * self.part_rows, self.n_rows))

    def _path(self, part: int) -> Path:
        return self.folder / f"part-{part:05d}-{self.digest}.npy"

    def _shape(self, part: int) -> tuple[int, int]:
        rows = self._rows(part)
        return rows.stop - rows.start, self.n_columns

    def _open(self) -> bool:
        return (self.folder / JOB).is_file()

    def _finished(self, parts: Iterable[int]) -> set[int]:
        """Those of `parts` that are there whole."""
        names = {path.name for path in self.folder.iterdir()} if self.folder.is_dir() else set()
        return {part for part in parts if self._path(part).name in names and self._is_whole(part)}

    def _is_whole(self, part: int) -> bool:
        try:
            array = open_npy(self._path(part))
        except (OSError, ValueError):
            return False
        return array.shape == self._shape(part) and array.dtype == self.dtype

    def _store(self, part: int, compute: Compute) -> None:
        array = compute(self._rows(part))
        if array.shape != self._shape(part):
            raise ValueError(
                f"part {part} must have the shape {self._shape(part)}, got {array.shape}: the data have changed since "
                f"{self.folder} was begun"
            )
        if not self._open():  # else it would be made again
            if self.share.rank == 0:
                raise FileNotFoundError(f"{self.folder} is gone, where the finished parts were kept")
            return
        with atomic_write(self._path(part)) as temporary, open(temporary, "wb") as file:
            np.save(file, array.astype(self.dtype, copy=False), allow_pickle=False)


def clear(folder: Path) -> None:
    """Delete what lies in `folder`, the job first: without it the others write nothing."""
    (folder / JOB).unlink(missing_ok=True)
    for path in list(folder.iterdir()) if folder.is_dir() else []:
        if OURS.fullmatch(path.name):
            path.unlink(missing_ok=True)
