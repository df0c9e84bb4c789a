"""An Optuna storage that several machines share, by a path or an address, opened so that nothing is done twice."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

TRIES = 5
PATIENCE = 60  # seconds that SQLite waits for another process to be done


def open_storage(storage: str) -> BaseStorage:
    """Open a journal by its path, or a database by its address; either is made where it is not there yet.

    Parameters
    ----------
    storage : str
        ``journal.log``, a file that may be on NFS; ``sqlite:///runs.db``, for processes of one machine; or
        ``postgresql://...`` or ``mysql://...``.
    """
    return _open_database(storage) if "://" in storage else _open_journal(Path(storage))


def close_storage(storage: BaseStorage) -> None:
    """Let go of the connections that a storage holds."""
    if isinstance(storage, RDBStorage):
        storage.remove_session()
        storage.engine.dispose()


class MendingLock(JournalFileSymlinkLock):
    """A lock on a journal that takes half a line from its end: what a process that was killed left of its last words.

    The next line would follow on it, and nobody could read the journal any more.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path

    def acquire(self) -> bool:
        acquired = super().acquire()
        with open(self._path, "rb+") as journal:
            size = journal.seek(0, os.SEEK_END)
            if size:
                journal.seek(size - 1)
                if journal.read() != b"\n":
                    journal.seek(0)
                    journal.truncate(journal.read().rfind(b"\n") + 1)
        return acquired


def _open_journal(path: Path) -> BaseStorage:
    if path.is_dir():
        raise IsADirectoryError(f"a journal must be a file, got the folder {path}; name a file in it")
    path.parent.mkdir(parents=True, exist_ok=True)
    place = str(path.absolute())
    try:
        storage = JournalStorage(JournalFileBackend(place, lock_obj=MendingLock(place)))
        with path.open("rb") as journal:
            first = journal.readline()
        if first.endswith(b"\n"):
            json.loads(first)["op_code"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} is not a journal, or it is damaged ({error}); take another file: runs that are finished in their "
            "folders are not repeated"
        ) from error
    return storage


def _open_database(url: str) -> BaseStorage:
    from sqlalchemy import exc, make_url

    try:
        address = make_url(url)
    except exc.ArgumentError as error:
        raise ValueError(f"a storage must be the path of a file or the address of a database, got {url!r}") from error
    shown = address.render_as_string(hide_password=True)
    sqlite = address.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"connect_args": {"timeout": PATIENCE}} if sqlite else {"pool_pre_ping": True}
    for left in reversed(range(TRIES)):
        try:
            storage = RDBStorage(url, engine_kwargs=options)
            break
        except exc.NoSuchModuleError as error:
            raise ValueError(f"a storage must be a database that SQLAlchemy knows, got {shown!r}") from error
        except exc.DBAPIError as error:  # of two that make the tables at once, one finds them half made
            if not left:
                raise ConnectionError(f"the storage {shown} cannot be opened: {error.orig}") from error
            time.sleep(random.random())
    if sqlite:
        _lock_before_reading(storage.engine)
    return storage


def _lock_before_reading(engine: Engine) -> None:
    """Make what SQLite reads hold until what follows from it is written.

    It knows no SELECT FOR UPDATE, by which Optuna has other databases hand a trial to one process only.
    """
    from sqlalchemy import event

    def no_transactions_of_its_own(connection: Any, record: object) -> None:
        connection.isolation_level = None

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "connect", no_transactions_of_its_own)
    event.listen(engine, "begin", begin)
    engine.dispose()  # connections from before
