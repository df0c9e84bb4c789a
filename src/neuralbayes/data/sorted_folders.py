"""Sort pictures into one folder per cluster, as links or copies, atomically."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from neuralbayes.system.files import named_errors


def check_sorted(target: Path, root: Path) -> None:
    """Raise unless pictures of the folder `root` can be sorted into `target`, which must be new and outside `root`."""
    if target.exists() or target.is_symlink():
        raise FileExistsError(f"{target} exists already, and nothing in it is replaced; choose a new folder")
    if Path(os.path.abspath(target)).is_relative_to(root.resolve()) or target.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{target} lies in {root}, whose pictures are sorted; choose a folder outside of it")


def sort_files(
    paths: Sequence[Path], labels: NDArray[np.integer], root: Path, target: Path, *, copy: bool = False
) -> list[Path]:
    """Put each file into the folder of its cluster below `target`, with its path below `root`.

    Parameters
    ----------
    paths : sequence of Path
        Files below `root`.
    labels : ndarray of int and shape (n,)
        Clusters; files with the label -1 go to the folder "outliers".
    root : Path
    target : Path
        A new folder, which appears when it is complete.
    copy : bool, default=False
        Copy the files instead of creating absolute symbolic links.

    Returns
    -------
    list of Path
        The folders of the clusters that have files, in order.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "photos" / "summer").mkdir(parents=True)
    >>> pictures = [folder / "photos" / "a.jpg", folder / "photos" / "summer" / "a.jpg"]
    >>> for picture in pictures:
    ...     _ = picture.write_bytes(b"a picture")
    >>> sorted_into = sort_files(pictures, np.array([1, 1]), folder / "photos", folder / "sorted")
    >>> [str(one.relative_to(folder)) for one in sorted_into]
    ['sorted/cluster-1']
    >>> (folder / "sorted" / "cluster-1" / "summer" / "a.jpg").is_symlink()
    True
    """
    check_sorted(target, root)
    digits = len(str(int(labels.max(initial=0))))
    names = {int(k): "outliers" if k < 0 else f"cluster-{int(k):0{digits}d}" for k in np.unique(labels)}
    with named_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".tmp"))
        try:
            for path, label in zip(paths, labels.tolist(), strict=True):
                place = temporary / names[label] / path.relative_to(root)
                place.parent.mkdir(parents=True, exist_ok=True)
                if copy:
                    shutil.copy2(path, place)
                else:
                    place.symlink_to(path.resolve())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o777 & ~umask)  # mkdtemp creates private folders
            check_sorted(target, root)  # it may have appeared while files were copied
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return [target / name for name in names.values()]
