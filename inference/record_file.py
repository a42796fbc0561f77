"""An append-only file of records, in the order of a run's jobs, without times: same completions, same bytes."""

import json
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypeVar

from pydantic import BaseModel

from inference.errors import UserError
from inference.files import os_errors, parse_json, write_bytes

R = TypeVar("R", bound=BaseModel)
FAILED = ("engine: ", "method: ")
"""Openings of a reason that stands for a fault of the machinery, not for a bad answer: asked again later."""
SECONDS_BETWEEN_SYNCS = 1.0


def to_line(record: BaseModel) -> bytes:
    """One JSON line, without defaults."""
    # Half a surrogate pair in a reason becomes its JSON escape.
    text = json.dumps(record.model_dump(mode="python", exclude_defaults=True), ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace") + b"\n"


class RecordFile(ABC, Generic[R]):
    """Line i belongs to job i. Always a prefix of the jobs, so a restart needs no other state.

    A failed record is a line like any other. When a restart brings a better one, the file is replaced in one step by
    `settle` or `close`; until then the old file stands, and the finished calls are in the store anyway.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        with self._os_errors():
            self._cut_torn_line()
            self._file: BinaryIO = self.path.open("ab")
        self._replaced: dict[int, bytes] = {}
        self._synced = time.monotonic()
        try:
            self.length = sum(1 for _ in self.read())
        except UserError:
            self._file.close()
            raise
        """Lines in the file, which is the position of the next job to be appended."""

    @abstractmethod
    def parse(self, content: Any) -> R:
        """A record from the plain data of its line. Raises ValueError."""

    @abstractmethod
    def key(self, record: R) -> tuple[Hashable, ...]:
        """Which job a record belongs to."""

    @abstractmethod
    def fault(self, record: R) -> str | None:
        """Why a record failed by a fault of the machinery, so that a restart asks again; None for all others."""

    def read(self) -> Iterator[R]:
        """All records in the file. Raises UserError for a damaged line."""
        with self._os_errors():
            file = self.path.open("rb")
        with file:
            for number, line in enumerate(file, start=1):
                try:
                    yield self.parse(parse_json(line))
                except ValueError:
                    raise UserError(
                        f"{self.path}: line {number} is damaged; delete this file and start again: "
                        "it is written anew from the finished calls in the store"
                    ) from None

    def pending(self, jobs: Sequence[tuple[Hashable, ...]]) -> list[int]:
        """Positions of the jobs that have no record, or a failed one. Raises UserError where line i is not job i."""
        missing = []
        for position, record in enumerate(self.read()):
            if position >= len(jobs) or self.key(record) != jobs[position]:
                shown = ", ".join(str(part) for part in self.key(record)[:2])
                raise UserError(
                    f"{self.path}: line {position + 1} ({shown}) is not what this run puts there; choose another run "
                    "directory"
                )
            if self.fault(record) is not None:
                missing.append(position)
        return [*missing, *range(self.length, len(jobs))]

    def append(self, records: Sequence[R]) -> None:
        """Add the next jobs' records. They survive a kill at once, and a loss of power a second later."""
        with self._os_errors():
            self._file.write(b"".join(to_line(record) for record in records))
            self._file.flush()
        self.length += len(records)
        # What a loss of power takes is written anew from the store, so a flush to disk per line would buy nothing.
        if time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS:
            self._sync()

    def replace(self, position: int, record: R) -> None:
        """Have the (failed) line at `position` replaced by the next `settle`."""
        self._replaced[position] = to_line(record)

    def cut(self, length: int) -> None:
        """Keep the first `length` lines only."""
        if length >= self.length:
            return
        self._sync()
        with self.path.open("rb") as file:
            end = sum(len(line) for _, line in zip(range(length), file, strict=False))
        os.truncate(self.path, end)  # the file is open for appending, so the next line goes to the new end
        self.length = length

    def settle(self) -> None:
        """Flush to disk, and put the replacements into the file, in one step."""
        self._sync()
        if self._replaced:
            self._file.close()
            self._rewrite()
            self._file = self.path.open("ab")

    def close(self) -> None:
        self.settle()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _sync(self) -> None:
        with self._os_errors():
            os.fsync(self._file.fileno())
        self._synced = time.monotonic()

    def _rewrite(self) -> None:
        with self._os_errors(), self.path.open("rb") as old:
            lines = [self._replaced.get(position, line) for position, line in enumerate(old)]
        write_bytes(self.path, b"".join(lines))
        self._replaced = {}

    def _os_errors(self) -> AbstractContextManager[None]:
        return os_errors(self.path, "cannot be used; mend its permissions, free disk space, or move it away")

    def _cut_torn_line(self) -> None:
        """Remove what follows the last line end: the process died while writing it."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        kept = content.rfind(b"\n") + 1
        if kept < len(content):
            os.truncate(self.path, kept)
