"""Named data sets: digits, MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 and STL-10, from their official files.

Files are looked for in the data folder and, if they are not there, downloaded into it from their official addresses.
Their contents are verified by SHA-256. No pickle is read: the "Python version" of CIFAR is one.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tarfile
import tomllib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from neuralbayes.system.files import atomic_write
from neuralbayes.training.progress import late_bar

VARIABLE = "NEURALBAYES_DATA"
TIMEOUT = 10.0  # seconds without a response

Arrays = dict[str, NDArray[Any]]  # the "images" of a file, uint8 (n, H, W, C), or its "labels", int64 (n,), or both


@dataclass(frozen=True, eq=False)
class Split:
    """A part of a data set: `images`, uint8 (n, H, W, C), and `labels`, int64 (n,), or None."""

    images: NDArray[np.uint8]
    labels: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        return f"Split({len(self)} images{'' if self.labels is None else ', labeled'})"


@dataclass(frozen=True, eq=False)
class Dataset:
    """A named data set: `train` and `test`, `unlabeled` for STL-10, and the name of each class.

    Examples
    --------
    >>> import neuralbayes as nb
    >>> data = nb.datasets.load("digits")
    >>> data.shape, data.train, data.test, data.class_names[:3]
    ((8, 8, 1), Split(1437 images, labeled), Split(360 images, labeled), ('0', '1', '2'))
    """

    name: str
    class_names: tuple[str, ...] = field(repr=False)
    train: Split
    test: Split
    unlabeled: Split | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """(H, W, C) of one image."""
        height, width, channels = self.train.images.shape[1:]
        return int(height), int(width), int(channels)


class File(NamedTuple):
    """An official file: its part of the data set, its number of images or labels, its format, its SHA-256 unpacked."""

    split: str
    n: int
    format: str
    sha256: str = ""


@dataclass(frozen=True)
class NamedSet:
    """What is known of a data set.

    Its `files`, or their archive, are looked for in `folders` below the data folder and downloaded into the first one.
    An address is that of the archive, or of the folder with the files, compressed by gzip. Where the SHA-256 of the
    files is not known, only the archive is read.
    """

    name: str
    shape: Sequence[int]  # (H, W, C)
    sizes: Mapping[str, int]  # images of each part
    class_names: Sequence[str]
    folders: Sequence[str] = ()
    addresses: Sequence[str] = ()
    archive: str = ""
    archive_sha256: str = ""
    files: Mapping[str, File] = field(default_factory=dict)


def load(name: str, *, root: str | Path | None = None, offline: bool = False, progress: bool = True) -> Dataset:
    """Load a data set by name, and download it if necessary.

    Parameters
    ----------
    name : {"digits", "mnist", "fashion-mnist", "cifar10", "cifar100", "stl10"}
        Images of stl10 are reduced to 32 x 32. The last 360 images of digits are the test part.
    root : path, optional
        Data folder; by default ``$NEURALBAYES_DATA``, or the cache folder of the system.
    offline : bool, default=False
        Look only in the data folder. A FileNotFoundError says which file to put where.
    progress : bool, default=True
        Show a progress bar if the download takes longer than two seconds.

    Returns
    -------
    Dataset
        With ``train.images`` of shape (n, H, W, C) in uint8 and ``train.labels`` of shape (n,) in int64.

    Examples
    --------
    >>> data = load("digits")
    >>> data.train.images.shape, data.test.labels[:5]
    ((1437, 8, 8, 1), array([2, 3, 4, 5, 6]))
    """
    return load_set(find_set(name), data_folder(root), offline=offline, progress=progress)


def load_set(known: NamedSet, folder: Path, *, offline: bool = False, progress: bool = True) -> Dataset:
    """:func:`load` for a data set that is described by `known`."""
    if not known.files:
        return _digits(known)
    places = _places(known, folder)
    failures = [] if places else [f"{folder}: it has no such files"]
    tried: list[Path | str] = [*places, *(() if offline else known.addresses)]
    for place in tried:
        try:
            return _read(known, place if isinstance(place, Path) else _download(known, place, folder, progress))
        except (OSError, ValueError, EOFError, zlib.error, tarfile.TarError) as error:
            failures.append(f"{place}: {error}")
    wanted = known.archive or f"{', '.join(known.files)}, compressed (.gz) or not,"
    raise FileNotFoundError(
        f"{known.name} could not be {'found (offline)' if offline else 'found or downloaded'}. Tried:\n"
        + "".join(f"  - {failure}\n" for failure in failures)
        + f"Put {wanted} from {known.addresses[0]} into {folder / known.folders[0]}, "
        f"or name another data folder than {folder} with root= or ${VARIABLE}."
    )


def is_present(known: NamedSet, folder: Path) -> bool:
    """Whether the files of a data set are in the data folder, or nowhere needed."""
    return not known.files or bool(_places(known, folder))


def data_folder(root: str | Path | None = None) -> Path:
    """The folder for data sets: `root`, or ``$NEURALBAYES_DATA``, or the cache folder of the system."""
    import pooch

    return Path(root or os.environ.get(VARIABLE) or pooch.os_cache("neuralbayes")).expanduser()


def names() -> tuple[str, ...]:
    """Names of the data sets, smallest first."""
    return tuple(SETS)


def find_set(name: str) -> NamedSet:
    """The data set called `name`; case, ``-`` and ``_`` are ignored."""
    if not is_name(name):
        raise ValueError(f"`name` must be one of {', '.join(SETS)}, got {name!r}")
    return next(known for known in SETS.values() if _plain(known.name) == _plain(name))


def is_name(name: str) -> bool:
    return _plain(name) in map(_plain, SETS)


def _plain(name: str) -> str:
    return re.sub("[-_ ]", "", name.lower())


def _places(known: NamedSet, folder: Path) -> list[Path]:
    """The archives, and the folders with all files, below the data folder."""
    folders = [folder / name for name in known.folders]
    archives = [place / known.archive for place in folders if known.archive and (place / known.archive).is_file()]
    readable = all(file.sha256 for file in known.files.values())
    return archives + [place for place in folders if readable and all(_path(place, name) for name in known.files)]


def _path(folder: Path, name: str) -> Path | None:
    """The official file `name` in a folder, compressed or not, in both usual spellings."""
    spellings = (name, f"{name}.gz", name.replace("-idx", ".idx"), f"{name.replace('-idx', '.idx')}.gz")
    return next((folder / one for one in spellings if (folder / one).is_file()), None)


def _download(known: NamedSet, address: str, folder: Path, progress: bool) -> Path:
    """Download the archive or the files; returns the archive or their folder."""
    import pooch

    place = folder / known.folders[0]
    for name in [known.archive] if known.archive else [f"{name}.gz" for name in known.files]:
        with atomic_write(place / name) as path, late_bar(name, None, unit="bytes", enabled=progress) as advance:
            bar = SimpleNamespace(update=advance, close=lambda: None)  # what pooch calls
            bar.reset = partial(setattr, bar, "update", lambda amount: None)  # before update(total), at the end
            download = pooch.HTTPDownloader(bar, chunk_size=2**18, timeout=TIMEOUT)
            download(address if known.archive else address + name, str(path), None)
    return place / known.archive


def _read(known: NamedSet, place: Path) -> Dataset:
    """Verify and decode the files in an archive or a folder."""
    parts: dict[str, Arrays] = {}
    for name, stream in _members(known, place):
        try:
            parts[name] = DECODERS[known.files[name].format](stream, known.files[name])
        except (ValueError, EOFError, zlib.error) as error:
            raise ValueError(f"{name}: {error}") from error
    if missing := known.files.keys() - parts.keys():
        raise ValueError(f"it lacks {', '.join(sorted(missing))}")
    splits = {}
    for split in known.sizes:
        arrays = [parts[name] for name, file in known.files.items() if file.split == split]
        images = np.concatenate([one["images"] for one in arrays if "images" in one])
        labels = [one["labels"] for one in arrays if "labels" in one]
        splits[split] = Split(images, np.concatenate(labels) if labels else None)
    return Dataset(known.name, tuple(known.class_names), **splits)


def _members(known: NamedSet, place: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """(name, stream) of the official files, without unpacking anything to disk."""
    if place.is_dir():
        for name in known.files:
            path = _path(place, name)
            if path is not None:
                with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
                    yield name, cast(IO[bytes], file)
        return
    import pooch

    found = pooch.file_hash(str(place))
    if found != known.archive_sha256:
        raise ValueError(f"its SHA-256 must be {known.archive_sha256}, got {found}: damaged, or another file")
    with tarfile.open(place, "r|gz") as archive:
        for member in archive:
            name = member.name.rpartition("/")[2]
            stream = archive.extractfile(member) if name in known.files and member.isfile() else None
            if stream is not None:
                yield name, stream


def _content(stream: IO[bytes], n_bytes: int, file: File, *, ends: bool = True) -> bytes:
    """The content of a file, or the next part of it, of known length and SHA-256."""
    content = stream.read(n_bytes)  # no more: a small file may unpack to any size
    if len(content) < n_bytes or (ends and stream.read(1)):
        problem = "cut short" if len(content) < n_bytes else "longer"
        raise ValueError(f"it must have {n_bytes} bytes, for {file.n} images or labels, and is {problem}")
    found = hashlib.sha256(content).hexdigest()
    if file.sha256 and found != file.sha256:
        raise ValueError(f"its SHA-256 must be {file.sha256}, got {found}: damaged, or other data")
    return content


def _idx_images(stream: IO[bytes], file: File) -> Arrays:
    """IDX of MNIST: a magic number and three sizes, then a byte for each pixel."""
    content = _content(stream, 16 + file.n * 28 * 28, file)
    return {"images": np.frombuffer(content, np.uint8, offset=16).reshape(-1, 28, 28, 1)}


def _labels(stream: IO[bytes], file: File, head: int = 0, first: int = 0) -> Arrays:
    """A byte for each label, counted from `first`, after `head` bytes."""
    labels = np.frombuffer(_content(stream, head + file.n, file), np.uint8, offset=head)
    return {"labels": labels.astype(np.int64) - first}


def _cifar(stream: IO[bytes], file: File, label_bytes: int = 1) -> Arrays:
    """The binary version of CIFAR: per image its label bytes, the last one counts, then red, green and blue planes."""
    content = _content(stream, file.n * (label_bytes + 3 * 32 * 32), file)
    records = np.frombuffer(content, np.uint8).reshape(file.n, -1)
    planes = records[:, label_bytes:].reshape(-1, 3, 32, 32)
    labels = records[:, label_bytes - 1].astype(np.int64)
    return {"images": np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), "labels": labels}


def _stl_images(stream: IO[bytes], file: File) -> Arrays:
    """STL-10 from 96 x 96 to 32 x 32: the means of blocks of 3 x 3 pixels, rounded to the nearest integer.

    MATLAB wrote the red, green and blue planes of each image, column by column. The unlabelled part has 2.8 GB, so
    only 500 images are in memory at full size.
    """
    images = np.empty((file.n, 32, 32, 3), np.uint8)
    for start in range(0, file.n, 500):
        n = min(500, file.n - start)
        planes = np.frombuffer(_content(stream, n * 3 * 96 * 96, file, ends=start + n == file.n), np.uint8)
        blocks = planes.reshape(n, 3, 32, 3, 32, 3).sum(axis=(3, 5), dtype=np.uint32)  # (n, C, W, H)
        images[start : start + n] = ((blocks + 4) // 9).transpose(0, 3, 2, 1)
    return {"images": images}


def _digits(known: NamedSet) -> Dataset:
    """The digits of scikit-learn, scaled to 0 to 255; in their order, as writers wrote several in a row."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = np.rint(bunch.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    labels, n = bunch.target.astype(np.int64), known.sizes["train"]
    return Dataset(known.name, tuple(known.class_names), Split(images[:n], labels[:n]), Split(images[n:], labels[n:]))


DECODERS: dict[str, Callable[[IO[bytes], File], Arrays]] = {
    "idx3": _idx_images,
    "idx1": partial(_labels, head=8),  # a magic number and the number of labels
    "cifar": _cifar,
    "cifar100": partial(_cifar, label_bytes=2),  # coarse, fine
    "stl_images": _stl_images,
    "stl_labels": partial(_labels, first=1),
}


def _known_sets() -> dict[str, NamedSet]:
    """The data sets of named.toml."""
    sets = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    for values in sets.values():
        values["files"] = {name: File(**file) for name, file in values.get("files", {}).items()}
    return {name: NamedSet(name, **values) for name, values in sets.items()}


SETS = _known_sets()
