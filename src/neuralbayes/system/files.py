"""Atomic file writing, tensors as safetensors, and JSON. No pickle."""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

T = TypeVar("T")

MAX_JSON_BYTES = 64 * 2**20
"""Of a JSON file, a metrics.jsonl or the header of a safetensors file. Python needs up to 24 times as much."""


@contextmanager
def atomic_write(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path that replaces `path` if the block ends without an error.

    Data are flushed to disk before the rename, so a crash or a full disk leaves either the old file or the new one.
    """
    path = Path(path)
    with named_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Keep the suffix: pandas and matplotlib choose the format by it.
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=f".tmp{path.suffix}")
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            temporary.chmod(0o666 & ~umask)  # mkstemp creates private files
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        try:
            descriptor = os.open(path.parent, os.O_RDONLY)
        except OSError:  # Windows does not open folders
            return
        try:
            os.fsync(descriptor)  # so that the rename survives a power failure
        finally:
            os.close(descriptor)


@contextmanager
def named_errors(path: Path) -> Iterator[None]:
    """Make errors name `path`. A full disk names no file, and other errors the temporary one."""
    try:
        yield
    except OSError as error:
        if re.fullmatch(r"\d+ requested and \d+ written", str(error)):  # NumPy's message for a full disk
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path)) from error
        unnamed = error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        if unnamed or re.fullmatch(rf"\.{re.escape(path.stem)}\..*\.tmp.*", Path(str(error.filename)).name):
            error.filename = str(path)
        raise


def inside(folder: str | Path, *names: str) -> Path:
    """The path of `names` below `folder`. `folder` may be a link, but none of `names`.

    The folder of a run or a model may come from a stranger: a symbolic link in it, even a dangling one, could redirect
    writing and deleting to another place. It raises an OSError that names it.
    """
    path = Path(folder)
    for name in names:
        path /= name
        if path.is_symlink():
            reason = "is a symbolic link, which could lead out of its folder: remove it, or choose another folder"
            raise OSError(errno.ELOOP, reason, str(path))
    return path


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Create `folder`, and wait until no other process is in this block with it, where the system can lock folders."""
    with named_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no locks
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def remove_temporaries(folder: str | Path) -> None:
    """Delete temporary files of killed writers in `folder`. No other process may be writing there."""
    for path in Path(folder).glob(".*.tmp*"):
        if path.is_file() and not path.is_symlink():
            path.unlink(missing_ok=True)


def write_json(path: str | Path, value: Any) -> None:
    """Write `value` as indented JSON, atomically. NaN, infinity and links are refused."""
    text = json.dumps(value, indent=2, allow_nan=False) + "\n"
    with atomic_write(inside(Path(path).parent, Path(path).name)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def read_json(path: str | Path) -> Any:
    """Read a JSON file. A damaged file, or one of more than 64 MB, raises a ValueError that names it."""
    path = Path(path)
    content = read_bounded(path)
    try:
        return json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a valid JSON file ({error}); it may be damaged or cut short") from error


def read_bounded(path: Path) -> bytes:
    """The bytes of a file. One of more than 64 MB raises a ValueError, a pipe or a device an OSError."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "is not a file", str(path))
    with open(path, "rb") as file:
        content = file.read(min(os.fstat(file.fileno()).st_size, MAX_JSON_BYTES) + 1)
    if len(content) > MAX_JSON_BYTES:
        raise ValueError(
            f"{path} must have at most {MAX_JSON_BYTES} bytes, got more: it was not written by this library"
        )
    return content


def write_arrays(path: str | Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write named arrays to a safetensors file, atomically. Links are refused."""
    from safetensors.numpy import save

    content = save({name: array.copy(order="C") for name, array in arrays.items()})
    with atomic_write(inside(Path(path).parent, Path(path).name)) as temporary:
        temporary.write_bytes(content)


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """Read a file of :func:`write_arrays`. A damaged file raises a ValueError that names it."""
    from safetensors.numpy import load

    return _read_safetensors(path, load)[0]


def write_tensors(path: str | Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write named tensors and text metadata to a safetensors file, atomically. Links are refused."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    stored: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        storage = tensor.untyped_storage().data_ptr()
        stored[name] = tensor.clone() if storage in storages else tensor  # the format does not support shared memory
        storages.add(storage)
    with atomic_write(inside(Path(path).parent, Path(path).name)) as temporary:
        try:
            save_file(stored, temporary, dict(metadata) or None)
        except SafetensorError as error:  # which contains the system's error number only in its text
            found = re.search(r"(?:os error|code:) (\d+)", str(error))
            number = int(found[1]) if found else errno.EIO
            raise OSError(number, os.strerror(number), str(temporary)) from error


def read_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Read a file of :func:`write_tensors`. A damaged file raises a ValueError that names it."""
    from safetensors.torch import load

    return _read_safetensors(path, load)


def _read_safetensors(path: str | Path, load: Callable[[bytes], dict[str, T]]) -> tuple[dict[str, T], dict[str, str]]:
    """Values and metadata. The size of the file must match its header, which is checked before the rest is read."""
    from safetensors import SafetensorError

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    try:
        with open(path, "rb") as file:
            n_header = int.from_bytes(file.read(8), "little")
            if n_header > MAX_JSON_BYTES:
                raise ValueError(f"its header must have at most {MAX_JSON_BYTES} bytes, got {n_header}")
            header = json.loads(file.read(n_header))
            metadata = header.pop("__metadata__", None) or {}
            n_bytes = 8 + n_header + max((tensor["data_offsets"][1] for tensor in header.values()), default=0)
            if n_bytes != os.fstat(file.fileno()).st_size:
                raise ValueError(f"it must have {n_bytes} bytes, got {os.fstat(file.fileno()).st_size}")
            file.seek(0)
            content = file.read()  # not with safe_open, which leaks two Python objects per tensor
        return load(content), dict(metadata)
    except (SafetensorError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        # LookupError: for example a data type that torch does not have
        raise ValueError(f"{path} is not a valid safetensors file ({error}); it may be damaged or cut short") from error
