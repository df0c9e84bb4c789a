"""Which named data sets are on this computer, and are they still what they were?"""

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
        Where its decoded arrays lie, or would lie.
    present : bool
    source : str
        Where it came from; empty when it is not present.
    n_bytes : int
        Its size on the disk.
    """

    entry: Entry
    folder: Path
    present: bool
    source: str
    n_bytes: int


@dataclass(frozen=True)
class ArrayCheck:
    """The outcome for one array.

    Attributes
    ----------
    array : str
    sha256 : str
        Of the array on the disk.
    expected : str
    published : bool
        Whether `expected` is part of this library; otherwise it is what was found when the data were fetched.
    """

    array: str
    sha256: str
    expected: str
    published: bool

    @property
    def ok(self) -> bool:
        """Whether the array is what it should be."""
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
    """Read a data set from the disk again and compute the SHA-256 of its arrays.

    Raises
    ------
    FileNotFoundError
        When it is not in the cache.
    ValueError
        When a file of it is damaged so that it cannot be read.
    """
    entry = find_entry(name)
    decoded = decoded_folder(entry, data_folder(root))
    manifest = valid_manifest(entry, decoded)
    if manifest is None:
        raise FileNotFoundError(f"{entry.name} is not in {decoded}; fetch it by `neuralbayes data get {entry.name}`")
    published = expected_digests(entry.parts)
    found = cached_digests(decoded, list(published))
    return [
        ArrayCheck(array, digest, published[array] or manifest.digests[array], published[array] is not None)
        for array, digest in found.items()
    ]
