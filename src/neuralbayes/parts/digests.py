"""Digests by which a job knows again what it was begun with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

PREFIX = "blake2b:"


def contents(*paths: Path) -> str:
    """A digest of what is in some files; one that does not exist counts as empty."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        data = path.read_bytes() if path.is_file() else b""
        digest.update(f"{len(data)} ".encode() + data)
    return PREFIX + digest.hexdigest()


def stamps(paths: Iterable[Path]) -> str:
    """A digest of the names, sizes and times of some files, which changes when one of them does."""
    digest = hashlib.blake2b(digest_size=16)
    for path in paths:
        status = path.stat()
        digest.update(f"{path.absolute()} {status.st_size} {status.st_mtime_ns}\n".encode(errors="surrogateescape"))
    return PREFIX + digest.hexdigest()


def file_stamp(path: Path) -> str | None:
    """:func:`stamps` of one file; None of what is no file."""
    return stamps([path]) if path.is_file() else None


def is_digest(value: Any) -> bool:
    """Whether `value` is one of these digests, which says nothing to people."""
    return isinstance(value, str) and value.startswith(PREFIX)
