"""Read the files of a data set from a folder, an archive or a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from neuralbayes.data.archives import named_damage, open_file, tar_members
from neuralbayes.system.bounds import MAX_OTHER_BYTES

#: "train_images", "train_labels", "test_images", ... -> array
Arrays: TypeAlias = dict[str, NDArray[np.generic]]


@dataclass(frozen=True)
class Layout:
    """The files of a data set, and how to read them.

    Parameters
    ----------
    files : mapping of str to int
        File names and their maximum unpacked sizes in bytes.
    read : callable (name, stream) -> anything
        Reads one file; raises a ValueError if it is invalid.
    assemble : callable (mapping of file name to what `read` gave) -> Arrays
    """

    files: Mapping[str, int]
    read: Callable[[str, BinaryIO], Any]
    assemble: Callable[[dict[str, Any]], Arrays]

    @property
    def archive_limit(self) -> int:
        """Maximum unpacked size of an archive of these files."""
        return sum(self.files.values()) + MAX_OTHER_BYTES

    def from_members(self, members: Iterable[tuple[str, BinaryIO]], where: str) -> Arrays:
        """Read (name, stream) pairs, in any order; a ValueError names `where` and the file."""
        parts: dict[str, Any] = {}
        with named_damage(where):
            for name, stream in members:
                with named_damage(name):
                    parts[name] = self.read(name, stream)
            missing = [name for name in self.files if name not in parts]
            if missing:
                raise ValueError(f"it must contain {', '.join(self.files)}, but lacks {', '.join(missing)}")
            return self.assemble(parts)

    def from_files(self, paths: Mapping[str, Path], count: Callable[[int], None]) -> Arrays:
        """Read the files at `paths`, compressed with gzip or not; `count` is called with the bytes read."""

        def members() -> Iterator[tuple[str, BinaryIO]]:
            for name, path in paths.items():
                with open_file(path, self.files[name], count) as stream:
                    yield name, stream

        return self.from_members(members(), str(next(iter(paths.values())).parent))

    def from_tar(self, path: Path, prefix: str, count: Callable[[int], None]) -> Arrays:
        """Read the files below `prefix` in a ``.tar``, ``.tar.gz`` or ``.tgz``."""
        with open_file(path, self.archive_limit, count) as stream:
            return self.from_members(tar_members(stream, prefix, self.files), str(path))
