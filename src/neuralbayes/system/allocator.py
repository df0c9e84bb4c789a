"""Memory that is free inside the process, given back to the system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


def return_free_memory() -> bool:
    """Give free blocks back to the system where the C library can (glibc); whether there were any.

    glibc keeps the large blocks that a thread has freed for that thread, so that threads which decode one large picture
    after the other hold far more than those that are being decoded.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl has none
