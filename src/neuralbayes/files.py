"""Files that are there whole or not at all: atomic writing, tensors as safetensors, JSON. No pickle."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that takes its place when the block ends without an error.

    The data are on the disk before the name changes, so that a crash or a full disk leaves the old file or the
    new one, never a part of either.

    Examples
    --------
    >>> folder = Path(tempfile.mkdtemp())
    >>> with atomic_write(folder / "answer.txt") as temporary:
    ...     _ = temporary.write_text("42")
    >>> (folder / "answer.txt").read_text()
    '42'
    """
    path = Path(path)
    with named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # The suffix is kept last: pandas and matplotlib choose the format by it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=f".tmp{path.suffix}")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)  # mkstemp makes private files
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Let errors of writing `path` name it: a full disk names no file, other errors the temporary one."""
    try:
        yield
    except OSError as error:
        if re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # NumPy's words for a full disk
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        unnamed = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if unnamed or re.fullmatch(rf"\.{re.escape(path.stem)}\..*\.tmp.*", Path(str(error.filename)).name):
            error.filename = str(path)
        raise


def remove_temporaries(folder: str | Path) -> None:
    """Delete what writers left in `folder` that were killed: nobody else must be writing there."""
    for path in Path(folder).glob(".*.tmp*"):
        path.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically. NaN and infinity are refused: they are not JSON."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read a JSON file; a damaged one gets a ValueError that names it."""
    path = Path(path)
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a valid JSON file ({error}); it may be damaged or cut short") from error


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors and text metadata as one safetensors file, atomically."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    stored: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        stored[name] = tensor.clone() if storage in storages else tensor  # the format knows no shared memory
        storages.add(storage)
    with atomic_write(path) as temporary:
        try:
            save_file(stored, temporary, dict(metadata) or None)
        except SafetensorError as error:  # which has the number of the system's error in its text alone
            found = re.search(r"(?:os error|code:) (\d+)", str(error))
            number = int(found[1]) if found else errno.EIO
            raise OSError(number, os.strerror(number), str(temporary)) from error


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read what :func:`write_tensors` wrote; a damaged file gets a ValueError that names it."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    content = path.read_bytes()  # not by safe_open, each of whose tensors leaves two Python objects behind
    try:
        tensors = load(content)
    except (SafetensorError, KeyError) as error:  # KeyError: a kind of number that torch does not have
        raise ValueError(f"{path} is not a valid safetensors file ({error}); it may be damaged or cut short") from error
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return tensors, header.get("__metadata__") or {}


def _sync_folder(folder: Path) -> None:
    """Make a rename in `folder` survive a power cut, where the system allows it (Windows does not)."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
