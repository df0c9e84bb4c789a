"""Process blocks of rows on Dask workers: on this machine, or on a running scheduler.

The model is sent to the workers once, and a piece of the data with each task, so they need no common file system.
Results return to the main process. Only a few tasks are submitted at a time, which bounds the memory. Dask reassigns
the tasks of a worker that dies. Without workers, everything runs in this process, and Dask is not imported.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import islice
from typing import TYPE_CHECKING, Any

from neuralbayes.distributed.launch import THREAD_VARIABLES, launched_share, n_cores, n_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Compute = Callable[[Any, Any], NDArray[Any]]
    """Maps the model and a piece of the data to an array (n_rows, n_columns)."""

    Piece = Callable[[int], Any]
    """Maps the number of a block to its piece of the data, which is sent to a worker."""

ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://.+:\d+")

TIMEOUT = 10
"""Timeout of a scheduler in seconds."""

DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""Start-up code of a local worker: it ignores Ctrl-C, which the main process handles."""

AHEAD = 2
"""Submitted tasks per thread of the workers: one runs, another waits."""


@dataclass(frozen=True)
class Workers:
    """Workers that compute blocks.

    Attributes
    ----------
    n : int, default=1
        Number of processes on this machine, which share the cores; 1 is this process alone.
    scheduler : str, optional
        Address of a Dask scheduler, such as ``tcp://node0:8786``.

    Examples
    --------
    >>> import numpy as np
    >>> list(Workers().map(np.multiply, 3, lambda i: np.full((1, 2), i), [0, 1]))
    [(0, array([[0, 0]])), (1, array([[3, 3]]))]
    """

    n: int = 1
    scheduler: str | None = None

    def __post_init__(self) -> None:
        world = launched_share().world
        if world > 1:
            raise ValueError(
                f"this is one of {world} processes that a launcher has started, but a single process distributes the "
                "rows: start it once, with --workers N or with --scheduler ADDRESS"
            )
        if self.n != 1 and self.scheduler is not None:
            raise ValueError(
                "--workers starts new workers, but --scheduler uses existing ones; give only one of the two"
            )
        if self.scheduler is not None and not ADDRESS.fullmatch(self.scheduler):
            raise ValueError(f"--scheduler must be an address such as tcp://node0:8786, got {self.scheduler!r}")
        if not 1 <= self.n <= n_cores():
            raise ValueError(f"--workers must be from 1 to the number of cores, {n_cores()}, got {self.n}")
        if self.is_remote and not all(map(find_spec, ("dask", "distributed", "cryptography"))):
            raise ImportError("--workers and --scheduler need Dask: pip install 'neuralbayes[cluster]'")

    @property
    def is_remote(self) -> bool:
        """Whether other processes compute."""
        return self.n > 1 or self.scheduler is not None

    def map(
        self, compute: Compute, model: Any, piece: Piece, blocks: Sequence[int]
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Compute each block once.

        Parameters
        ----------
        compute : callable
        model : object
            First argument of `compute`, which Dask pickles.
        piece : callable
            Creates the second argument of `compute`, in this process, shortly before it is needed.
        blocks : sequence of int

        Yields
        ------
        block : int
        array : ndarray
            In order of completion.

        Raises
        ------
        ConnectionError
            If the scheduler does not answer, or is lost.
        ChildProcessError
            If a block kills every worker that tries it.
        """
        if not self.is_remote:
            for i in blocks:
                yield i, compute(model, piece(i))
        elif blocks:
            with self._client() as client:
                yield from _computed(client, compute, model, piece, blocks)

    @contextmanager
    def _client(self) -> Iterator[Any]:
        import dask
        from distributed import Client, LocalCluster

        settings = {"distributed.admin.large-graph-warning-threshold": "1 TB"}  # tasks contain the data on purpose
        settings |= {f"distributed.nanny.pre-spawn-environ.{name}": str(n_threads(self.n)) for name in THREAD_VARIABLES}
        with dask.config.set(settings):
            if self.scheduler is None:
                with (
                    LocalCluster(
                        n_workers=self.n,
                        threads_per_worker=1,
                        memory_limit=None,  # otherwise Dask kills workers that exceed their share of memory
                        dashboard_address="127.0.0.1:0",  # not the default port, which another cluster may use
                        security=True,  # its own certificates, since other users of this machine can reach the ports
                        silence_logs=logging.CRITICAL,
                        preload=[DEAF],
                    ) as cluster,
                    Client(cluster) as client,
                ):
                    yield client
                return
            try:
                client = Client(self.scheduler, timeout=TIMEOUT)
            except OSError as error:
                raise ConnectionError(f"no Dask scheduler answers at {self.scheduler} ({error})") from error
            with client:
                yield client


def _computed(
    client: Any, compute: Compute, model: Any, piece: Piece, blocks: Sequence[int]
) -> Iterator[tuple[int, NDArray[Any]]]:
    from distributed import KilledWorker, wait

    # A task result, not scattered data: Dask recomputes it if the workers that hold it are lost. Dask 2024.8 would call
    # an argument that is a tuple with a module in front, as if it were a task, so the model is bound instead.
    held = client.submit(partial(_same, model), pure=False)
    todo, running = iter(blocks), dict[Any, int]()
    while True:
        room = max(AHEAD, AHEAD * sum(client.nthreads().values())) - len(running)
        for i in islice(todo, max(0, room)):
            running[client.submit(compute, held, piece(i), pure=False)] = i
        if not running:
            return
        for future in wait(list(running), return_when="FIRST_COMPLETED").done:
            i = running.pop(future)
            try:
                array: NDArray[Any] = future.result()
            except KilledWorker as error:
                raise ChildProcessError(
                    f"block {i} has crashed every worker that tried it, perhaps because memory ran out; finished "
                    "blocks are kept; run the same command to continue"
                ) from error
            except CancelledError as error:
                raise ConnectionError(f"the Dask scheduler is gone ({error}); finished blocks are kept") from error
            yield i, array


def _same(model: Any) -> Any:
    return model
