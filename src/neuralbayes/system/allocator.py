"""Return free memory of the process to the operating system."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any


def return_free_memory() -> bool:
    """Return free blocks to the operating system if the C library can (glibc), and say whether there were any.

    glibc keeps large blocks that a thread has freed for later use by the same thread. Threads that decode many large
    pictures would therefore hold far more memory than the pictures being decoded.
    """
    trim = _trim()
    return trim is not None and bool(trim(0))


@cache
def _trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)  # musl does not have it
