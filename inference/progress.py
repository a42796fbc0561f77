"""Progress on stderr: a bar on a terminal, otherwise a line for every tenth of the work."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn


class ProgressReport:
    """Shows how far one judge has come.

    ``with ProgressReport("gpt", total=100, done=20) as report: report.advance()``
    """

    def __init__(self, title: str, total: int, done: int = 0, quiet: bool = False) -> None:
        self._title, self._total, self._done, self._quiet = title, total, done, quiet
        self._started_at, self._before = time.monotonic(), done
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> "ProgressReport":
        if not self._quiet and sys.stderr.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task(self._title, total=self._total, completed=self._done)
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def advance(self) -> None:
        """One more judgement is finished."""
        before, self._done = self._done, self._done + 1
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
        elif not self._quiet and 10 * self._done // self._total > 10 * before // self._total:
            rate = (self._done - self._before) / max(time.monotonic() - self._started_at, 1e-9)
            print(f"{self._title}: {self._done} of {self._total} ({rate:.1f}/s)", file=sys.stderr, flush=True)
