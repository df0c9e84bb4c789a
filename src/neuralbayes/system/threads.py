"""Threads of the libraries that compute."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """A context in which BLAS and OpenMP compute on one thread.

    ``threadpool_limits(1)`` looks through all loaded libraries each time, which takes milliseconds; this does so once.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_thread():
    ...     {library["num_threads"] for library in threadpool_info()}
    {1}
    """
    context: AbstractContextManager[object] = _controller().limit(limits=1)
    return context


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()
