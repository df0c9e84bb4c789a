"""Ctrl-C and SIGTERM during training: finish and save the step, then exit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

CAUGHT = (signal.SIGINT, signal.SIGTERM)


@dataclass
class Interrupt:
    """The received signal; 0 if there is none."""

    signum: int = 0


@contextmanager
def deferred_signals() -> Iterator[Interrupt]:
    """Record SIGINT and SIGTERM, and act on them at the end of the block.

    SIGINT becomes KeyboardInterrupt, and SIGTERM becomes SystemExit(143), as a shell reports it. The first signal
    restores the earlier handlers, so a second one acts at once. Nothing changes outside the main thread, where Python
    allows no handlers, and for signals that the process ignores.
    """
    interrupt = Interrupt()
    earlier: dict[signal.Signals, Any] = {}

    def restore() -> None:
        for signum, handler in earlier.items():
            signal.signal(signum, handler)

    def note(signum: int, frame: FrameType | None) -> None:
        interrupt.signum = signum
        restore()

    if threading.current_thread() is threading.main_thread():
        for signum in CAUGHT:
            handler = signal.getsignal(signum)
            if handler not in (signal.SIG_IGN, None):  # None: not set by Python, so Python cannot restore it
                earlier[signum] = handler
                signal.signal(signum, note)
    try:
        yield interrupt
    finally:
        restore()
    if interrupt.signum == signal.SIGINT:
        raise KeyboardInterrupt
    if interrupt.signum:
        raise SystemExit(128 + interrupt.signum)
