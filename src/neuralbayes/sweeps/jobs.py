"""Work for worker processes, each job to be done once: what a source of it is, and the one that is a list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """Something to do: a key that is the same on every machine, and what people call it."""

    key: str
    label: str


class Jobs(ABC):
    """Where jobs come from and where their results go.

    A result is what JSON can hold. Its "value" is the number that stands for it, None where it came to none.

    Attributes
    ----------
    interval : float or None
        Seconds after which to :meth:`look` what others did meanwhile; None where there are no others.
    total : int
    n_done : int
        Jobs that are finished or failed.
    failures : dict of str to str
        What went wrong, by the key of the job.
    results : dict of str to dict
        What came of jobs that others may have done, by the key of the job.
    """

    interval: float | None = None
    total: int
    n_done: int
    failures: dict[str, str]
    results: dict[str, dict[str, Any]]

    @property
    def over(self) -> bool:
        """Whether nothing is left to do or to wait for."""
        return self.n_done >= self.total

    @abstractmethod
    def look(self) -> None:
        """Take note of what others did."""

    @abstractmethod
    def tell(self, key: str, result: dict[str, Any]) -> None:
        """Count a job as finished that was done before."""

    @abstractmethod
    def take(self) -> Job | None:
        """A job that is from now on that of this process; None where none is waiting."""

    def report(self, job: Job, step: int, value: float) -> bool:
        """Whether to end a job that was taken, for what it has come to at a step."""
        return False

    @abstractmethod
    def finish(self, job: Job, result: dict[str, Any]) -> None:
        """Keep the result of a job that was taken."""

    @abstractmethod
    def fail(self, job: Job, error: str) -> None:
        """Keep what went wrong with a job that was taken; it is not tried again."""

    @abstractmethod
    def died(self, job: Job, how: str) -> None:
        """Decide what becomes of a job whose worker died: raise ChildProcessError, or return and go on."""

    def lost(self) -> Collection[Job]:
        """Jobs that were taken but belong to others now, named once: who does them is to stop at once."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Give back all jobs that were taken and not finished."""


class LocalJobs(Jobs):
    """Jobs that this process alone does, in their order.

    Parameters
    ----------
    labels : mapping of str to str
        What people call each job, by its key.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._waiting = {key: Job(key, label) for key, label in labels.items()}
        self.total = len(labels)
        self.n_done = 0
        self.failures = {}
        self.results = {}

    def look(self) -> None:
        """There are no others."""

    def tell(self, key: str, result: dict[str, Any]) -> None:
        del self._waiting[key]
        self.n_done += 1

    def take(self) -> Job | None:
        return self._waiting.pop(next(iter(self._waiting))) if self._waiting else None

    def finish(self, job: Job, result: dict[str, Any]) -> None:
        self.n_done += 1

    def fail(self, job: Job, error: str) -> None:
        self.failures[job.key] = error
        self.n_done += 1

    def died(self, job: Job, how: str) -> None:
        raise ChildProcessError(f"{how}; the same command goes on, with fewer --workers in less memory")

    def close(self) -> None:
        """There is nobody to give jobs back to."""
