"""Ctrl-C and SIGTERM during training: finish the step and save it, then leave."""

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
    """The signal that asked for an end, 0 while none has."""

    signum: int = 0


@contextmanager
def deferred_signals() -> Iterator[Interrupt]:
    """Note a SIGINT or SIGTERM instead of dying of it, and act on it when the block ends.

    SIGINT becomes KeyboardInterrupt, SIGTERM becomes SystemExit(143), as a shell reports it. The first signal
    puts the earlier handlers back, so that a second one does not wait for anything. Outside the main thread, where
    Python allows no handlers, and for signals that the process was started to ignore, nothing is changed.
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
            if handler not in (signal.SIG_IGN, None):  # None: not set by Python, so Python cannot put it back
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
