"""The store of finished calls: one SQLite file per run. Cache and resume are the same thing."""

import asyncio
import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import ValidationError

from inference.config import StrictModel
from inference.errors import UserError
from inference.files import parse_json
from inference.records import Completion

APPLICATION_ID = 0x63726A31  # "crj1" in the header of the file tells our stores from other SQLite files
_TABLE = """CREATE TABLE IF NOT EXISTS calls (
    key TEXT PRIMARY KEY, completion TEXT NOT NULL, started REAL NOT NULL, finished REAL NOT NULL,
    model TEXT NOT NULL DEFAULT '') WITHOUT ROWID"""


class StoredCall(StrictModel):
    """A finished call with its times in seconds since 1970 (UTC), and the label of the model that answered."""

    key: str
    completion: Completion
    started: float
    finished: float
    model: str


class Store:
    """Completions by `Call.key`. A `put` that returned survives a kill of the process and a loss of power.

    Calls that finish together share one transaction, so the rate is not bounded by the disk's flushes. Use it from
    any event loop; one process at a time. Raises UserError for a file that is no store or cannot be written.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._pending: list[tuple[str, str, float, float, str]] = []
        self._queue = threading.Lock()
        self._writing = threading.Lock()
        try:
            self._writer = self._connect()
            self._prepare(self._writer)
            self._reader = self._connect()
        except sqlite3.Error as error:
            raise UserError(self._trouble(error)) from None

    def get(self, key: str) -> Completion | None:
        """The completion of a finished call, None where there is none."""
        try:
            row = self._reader.execute("SELECT completion FROM calls WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            raise UserError(self._trouble(error)) from None
        return None if row is None else self._read(key, row[0])

    async def put(self, key: str, completion: Completion, started: float, finished: float, model: str = "") -> None:
        """Keep a finished call; returns when it is on disk. A key that exists is left as it is."""
        # json instead of pydantic's own writer, which turns an infinite log-probability into null.
        text = json.dumps(completion.model_dump(mode="python"))
        with self._queue:
            self._pending.append((key, text, started, finished, model))
        await asyncio.to_thread(self._commit)

    def calls(self) -> Iterator[StoredCall]:
        """All finished calls, in no particular order; for token, time and cost accounting."""
        try:
            with closing(self._connect()) as connection:
                for key, text, started, finished, model in connection.execute(
                    "SELECT key, completion, started, finished, model FROM calls"
                ):
                    completion = self._read(key, text)
                    yield StoredCall(key=key, completion=completion, started=started, finished=finished, model=model)
        except sqlite3.Error as error:
            raise UserError(self._trouble(error)) from None
        except ValidationError:
            raise UserError(self._trouble(f"the times of call {key} are damaged")) from None

    def __len__(self) -> int:
        try:
            count: int = self._reader.execute("SELECT COUNT(*) FROM calls").fetchone()[0]
        except sqlite3.Error as error:
            raise UserError(self._trouble(error)) from None
        return count

    def close(self) -> None:
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _connect(self) -> sqlite3.Connection:
        # Transactions are opened by hand; the writer is used by one thread at a time, under the lock.
        return sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30.0)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        found = connection.execute("PRAGMA application_id").fetchone()[0]
        tables = connection.execute("SELECT COUNT(*) FROM sqlite_master").fetchone()[0]
        if tables and found != APPLICATION_ID:
            raise UserError(f"{self.path}: an SQLite file of another program, not a store of calls; move it away")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(_TABLE)
        if "model" not in [column[1] for column in connection.execute("PRAGMA table_info(calls)")]:
            connection.execute("ALTER TABLE calls ADD COLUMN model TEXT NOT NULL DEFAULT ''")  # a store of version 0.1

    def _commit(self) -> None:
        """Write everything that waits. When it returns, each call appended before it was entered is on disk."""
        with self._writing:
            with self._queue:
                rows, self._pending = self._pending, []
            if not rows:
                return  # an earlier thread took our call along
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                self._writer.executemany("INSERT OR IGNORE INTO calls VALUES (?, ?, ?, ?, ?)", rows)
                self._writer.execute("COMMIT")
            except sqlite3.Error as error:
                with self._queue:
                    self._pending[:0] = rows  # so that the threads which wait for these calls fail as well
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise UserError(self._trouble(error)) from None

    def _read(self, key: str, text: Any) -> Completion:
        try:
            return Completion.model_validate(parse_json(text))
        except (ValueError, TypeError):
            raise UserError(
                f"{self.path}: the answer of call {key} is damaged; move the file away to ask everything again"
            ) from None

    def _trouble(self, error: object) -> str:
        return (
            f"{self.path}: the store of finished calls cannot be used ({error}); free disk space or mend permissions, "
            "or move the file away to ask everything again"
        )


def holds_calls(path: Path | str) -> bool:
    """Whether a store holds finished calls; also true of a file that cannot be read as one."""
    if not Path(path).exists():
        return False
    try:
        with closing(sqlite3.connect(path, timeout=30.0)) as connection:
            return bool(connection.execute("SELECT COUNT(*) FROM calls").fetchone()[0])
    except sqlite3.Error:
        return True
