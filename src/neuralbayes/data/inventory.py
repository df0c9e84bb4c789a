"""List the data sets on this computer and verify them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from neuralbayes.data.cache import cached_bytes, cached_digests
from neuralbayes.data.catalog import CATALOG, Entry, find_entry
from neuralbayes.data.loading import decoded_folder, valid_manifest
from neuralbayes.data.places import data_folder
from neuralbayes.data.verify import expected_digests


@dataclass(frozen=True)
class Status:
    """A data set and the state of its cache.

    Attributes
    ----------
    entry : Entry
    folder : Path
        Folder of its decoded arrays.
    present : bool
    source : str
        Source of the data; empty if not present.
    n_bytes : int
        Size on disk.
    """

    entry: Entry
    folder: Path
    present: bool
    source: str
    n_bytes: int


@dataclass(frozen=True)
class ArrayCheck:
    """Result of the verification of one array.

    Attributes
    ----------
    array : str
    sha256 : str
        Hash of the array on disk.
    expected : str
    published : bool
        Whether `expected` is part of this library; otherwise it was computed when the data were downloaded.
    """

    array: str
    sha256: str
    expected: str
    published: bool

    @property
    def ok(self) -> bool:
        """Whether the array has the expected hash."""
        return self.sha256 == self.expected


def inventory(root: str | Path | None = None) -> list[Status]:
    """The state of every named data set in the data folder."""
    return [_status(entry, data_folder(root)) for entry in CATALOG.values()]


def _status(entry: Entry, folder: Path) -> Status:
    decoded = decoded_folder(entry, folder)
    manifest = valid_manifest(entry, decoded)
    if manifest is None:
        return Status(entry, decoded, False, "", 0)
    return Status(entry, decoded, True, manifest.source, cached_bytes(decoded))


def check(name: str, root: str | Path | None = None) -> list[ArrayCheck]:
    """Read a data set from disk and verify the SHA-256 of its arrays.

    Raises
    ------
    FileNotFoundError
        If the data set is not in the cache.
    ValueError
        If a damaged file cannot be read.
    """
    entry = find_entry(name)
    decoded = decoded_folder(entry, data_folder(root))
    manifest = valid_manifest(entry, decoded)
    if manifest is None:
        raise FileNotFoundError(f"{entry.name} is not in {decoded}; fetch it with nb.datasets.load({entry.name!r})")
    published = expected_digests(entry.parts)
    found = cached_digests(decoded, list(published))
    return [
        ArrayCheck(array, digest, published[array] or manifest.digests[array], published[array] is not None)
        for array, digest in found.items()
    ]
