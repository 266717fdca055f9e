"""One SQLite file in WAL mode, shared by threads and by processes."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentops.sandbox.schema import DDL

_BUSY_SECONDS = 15.0


class Store:
    """Short transactions on the file ``sandbox.sqlite3`` in a data directory (created, readable by the owner only)."""

    def __init__(self, *, data: Path) -> None:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = data / "sandbox.sqlite3"
        self._local = threading.local()
        # SQLite's own waiting is a poll without fairness; inside one process a lock is quicker and fair enough.
        self._writing = threading.Lock()
        self._db().executescript(DDL)

    def _db(self) -> sqlite3.Connection:
        db: sqlite3.Connection | None = getattr(self._local, "db", None)
        if db is None:
            db = sqlite3.connect(self.path, isolation_level=None, timeout=_BUSY_SECONDS)
            db.row_factory = sqlite3.Row
            db.execute("PRAGMA journal_mode=WAL")
            # With WAL this survives the death of the process at any point, which is the fault tests inject.
            db.execute("PRAGMA synchronous=NORMAL")
            self._local.db = db
        return db

    @contextmanager
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that holds the write lock from its start; rolled back on any exception, else committed."""
        with self._writing:
            db = self._db()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    @contextmanager
    def read(self) -> Iterator[sqlite3.Connection]:
        """A read transaction: one consistent snapshot, never blocked by a writer."""
        db = self._db()
        db.execute("BEGIN")
        try:
            yield db
        finally:
            db.execute("ROLLBACK")
