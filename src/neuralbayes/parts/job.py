"""A job over several processes: process 0 begins it, the others join it."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from neuralbayes.distributed.launch import Share
from neuralbayes.parts.digests import is_digest
from neuralbayes.parts.files import JOB, LISTING, OURS, POLL, Parts, clear
from neuralbayes.system.files import inside, read_json, write_json

FORMAT = 1
TRY = 600.0
"""Seconds that a process waits for a folder: process 0 makes it at its start, and deletes it at its end."""


def parts_folder(out: Path) -> Path:
    """The folder of the parts of `out`, beside it.

    Examples
    --------
    >>> parts_folder(Path("features.npy")).name
    'features.npy.parts'
    """
    return out.with_name(f"{out.name}.parts")


@contextmanager
def announced(folder: Path, share: Share) -> Iterator[None]:
    """Let the others know that process 0 is about to begin a job in `folder`, or that it has failed to."""
    inside(folder.parent, folder.name)
    if share.world > 1:
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        if share.world > 1:
            with suppress(OSError):  # a job was begun there earlier
                folder.rmdir()
        raise


def begin(
    folder: Path,
    asked: Mapping[str, Any],
    *,
    data: str | None = None,
    n_rows: int,
    part_rows: int,
    like: NDArray[Any],
    listing: Any = None,
    share: Share,
    force: bool,
) -> Parts:
    """Begin a job as process 0, or go on with it.

    Parameters
    ----------
    folder : Path
    asked : mapping
        What determines the result and is known before the data are opened, as JSON can hold it: the others tell their
        job by it.
    data : str, optional
        What else changes with the data and is known only then.
    n_rows, part_rows : int
        Rows in all and of a part.
    like : ndarray of shape (n, n_columns)
        A result for some rows.
    listing : optional
        Further data for the others, as JSON can hold them.
    share : Share
    force : bool
        Whether to begin again where the folder holds another job.

    Raises
    ------
    ValueError
        When `folder` holds another job, or other files.
    """
    inside(folder.parent, folder.name)
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"{folder} is a file, where the parts of the result would go; remove or rename it")
    if folder.is_dir():
        foreign = [path.name for path in folder.iterdir() if not OURS.fullmatch(path.name)]
        if foreign:
            raise ValueError(f"{folder}, where the parts of the result would go, holds other files: {foreign[0]}")
        for path in folder.iterdir():
            inside(folder, path.name)
    job = {
        "format": FORMAT,
        "asked": _asked(asked),
        "found": {
            "data": data,
            "rows": n_rows,
            "rows of a part": part_rows,
            "columns": like.shape[1],
            "dtype": like.dtype.name,
        },
    }
    earlier = _read_job(folder)
    if earlier != job:
        if earlier is not None and not force:
            raise ValueError(
                f"{folder} holds parts of another job ({_differences(earlier, job)}); --force begins anew, and another "
                "--out leaves them"
            )
        clear(folder)
        write_json(folder / LISTING, listing)
        write_json(folder / JOB, job)  # last: the others begin when it is there
    return _parts(folder, share, job)


def join(folder: Path, asked: Mapping[str, Any], out: Path, share: Share) -> Parts | None:
    """Wait, as another process than process 0, until that has begun the job.

    Parameters
    ----------
    folder : Path
    asked : mapping
        As in :func:`begin`.
    out : Path
        What process 0 writes in the end.
    share : Share

    Returns
    -------
    Parts, or None when there is nothing to do: process 0 has ended.
    """
    before, wanted = _stamp(out), _asked(asked)
    limit = time.monotonic() + TRY
    while _stamp(out) == before and (folder.is_dir() or time.monotonic() < limit):
        job = _read_job(folder)
        if job is not None and job["asked"] == wanted:
            return _parts(folder, share, job)
        time.sleep(POLL)
    return None


def _parts(folder: Path, share: Share, job: Mapping[str, Any]) -> Parts:
    found = job["found"]
    digest = hashlib.blake2b(json.dumps(job, sort_keys=True).encode(), digest_size=4).hexdigest()
    rows, part_rows, columns = found["rows"], found["rows of a part"], found["columns"]
    return Parts(folder, share, rows, part_rows, columns, found["dtype"], digest)


def _asked(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, and of which versions: others may round otherwise."""
    return {**asked, **{library: version(library) for library in ("neuralbayes", "torch")}}


def _read_job(folder: Path) -> Any:
    """The job in `folder`, None where there is none that this version understands."""
    try:
        job = read_json(folder / JOB)
    except (OSError, ValueError):
        return None
    if not isinstance(job, dict) or job.get("format") != FORMAT:
        return None
    asked, found = job.get("asked"), job.get("found")
    if not isinstance(asked, dict) or not isinstance(found, dict) or not isinstance(found.get("dtype"), str):
        return None
    counts = [found.get(name) for name in ("rows", "rows of a part", "columns")]
    return job if all(type(count) is int and count > 0 for count in counts) else None


def _differences(earlier: Mapping[str, Any], job: Mapping[str, Any]) -> str:
    old, new = ({**one["asked"], **one["found"]} for one in (earlier, job))
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(
        f"{name} has changed" if is_digest(old.get(name)) else f"{name} was {old.get(name)!r}" for name in names
    )


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
