"""The jobs of a run that go to the same models: side by side, in any order, and into the file in the order of the jobs.

A `Work` turns each job into a record: a judge's into judgements, a generator's into answers. Interruptible at any
moment: finished records are in the file, finished calls in the store.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic

from inference.asking import Asker
from inference.budget import BudgetReached, Meter
from inference.engines.base import build_engine
from inference.engines.pool import BuildEngine, EnginePool
from inference.errors import UserError
from inference.judges import Budget, ModelConfig
from inference.progress import ProgressReport
from inference.record_file import R, RecordFile
from inference.store import Store

logger = logging.getLogger(__name__)

PER_SLOT = 4
"""Jobs under way per call in flight, where a job makes several calls in a row: else slots stand empty at the end."""


@dataclass(frozen=True)
class Done:
    """What one start of a run did in one work."""

    new: int
    """Records made."""
    failed: int
    sent: int
    """Calls sent to the engine, retries included."""
    seconds: float
    """Wall-clock time, the loading of the engine included."""


class Work(ABC, Generic[R]):
    """A part of a run: its jobs, those of them that are pending, and the records that wait for their turn."""

    kind = "judge"
    records = "judgements"
    """What the messages call it and its records."""

    def __init__(
        self, name: str, models: Sequence[ModelConfig], sink: RecordFile[R], positions: range, pending: Iterable[int]
    ) -> None:
        """`positions`: lines of `sink` that belong to it; `pending`: those that are to be made (`RecordFile.pending`
        of the whole run will do), in the order in which they are sent."""
        self.name, self.models, self.positions = name, tuple(models), positions
        self.pending = [position for position in pending if position in positions]
        self._sink = sink
        self._ready: dict[int, R] = {}
        self._failed = 0
        self._last_fault = ""

    @abstractmethod
    async def make(self, index: int, askers: Sequence[Asker]) -> R:
        """The record of the job `index` of this work, from 0, asking `askers`, one per model. A fault of the engine
        becomes a failed record; UserError where going on is of no use."""

    @property
    @abstractmethod
    def askable(self) -> int:
        """Number of jobs that need a model."""

    @property
    def single_call(self) -> bool:
        """Whether a job makes one call."""
        return False

    async def run(self, store: Store, pool: EnginePool, meter: Meter, *, quiet: bool) -> Done:
        """Make what is pending. Raises UserError where no engine answers, all failed, or the budget is spent."""
        started, sent = time.monotonic(), 0
        if self.pending:
            logger.info("%s %s: %d of %d to do", self.kind, self.name, len(self.pending), len(self.positions))
            askers = []
            for model in self.models:
                engine = pool.get(model)
                logger.info("%s %s: engine %s", self.kind, self.name, engine.identity)
                askers.append(Asker(f"{self.kind} {self.name}", model, engine, store, meter))
            await self._run_pending(askers, quiet=quiet)
            sent = sum(asker.sent for asker in askers)
            logger.info("%s %s: done, %d failed", self.kind, self.name, self._failed)
        return Done(new=len(self.pending), failed=self._failed, sent=sent, seconds=time.monotonic() - started)

    async def _run_pending(self, askers: Sequence[Asker], *, quiet: bool) -> None:
        total = len(self.positions)
        jobs = iter(self.pending)
        workers, drain = [], False
        try:
            with ProgressReport(self.name, total, total - len(self.pending), quiet) as report:
                share = 1 if self.single_call else PER_SLOT
                count = min(share * self.models[0].calls_in_flight, len(self.pending))
                workers = [asyncio.create_task(self._work(jobs, askers, report)) for _ in range(count)]
                await asyncio.gather(*workers)
            self._check_any_answer(askers)
            self._write()
            self._sink.settle()
            self._check_any_use()
        except BudgetReached as stop:
            drain, stop.waiting = True, tuple(self._ready.values())
            raise
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            for asker in askers:
                await asker.close(drain=drain)

    async def _work(self, jobs: Iterator[int], askers: Sequence[Asker], report: ProgressReport) -> None:
        for position in jobs:
            self._take(position, await self.make(position - self.positions.start, askers))
            for asker in askers:
                asker.check_health()
            # Faults are held back until the engine has answered once: a wrong set-up must leave no trace in the file.
            if _answered(askers) or not _failed(askers):
                self._write()
            report.advance()

    def _take(self, position: int, record: R) -> None:
        fault = self._sink.fault(record)
        if fault is not None:
            self._failed += 1
            self._last_fault = fault
        if position >= self._sink.length:
            self._ready[position] = record
        elif fault is None:
            self._sink.replace(position, record)

    def _write(self) -> None:
        """Append the records that are ready and next in order."""
        ready: list[R] = []
        while (position := self._sink.length + len(ready)) in self._ready:
            ready.append(self._ready.pop(position))
        if ready:
            self._sink.append(ready)

    def _useless(self) -> bool:
        """Whether every job that needs the engine has failed, in earlier starts too."""
        return 0 < self.askable <= self._failed

    def _check_any_answer(self, askers: Sequence[Asker]) -> None:
        if self._useless() and _failed(askers) and not _answered(askers):
            last = next((asker.last_error for asker in askers if asker.last_error), "")
            raise UserError(
                f"{self.kind} {self.name}: none of its {_failed(askers)} calls was answered ({last}); "
                "nothing was written for it: mend it and start the same command again"
            )

    def _check_any_use(self) -> None:
        if self._useless():
            raise UserError(
                f"{self.kind} {self.name}: all of its {self._failed} {self.records} failed ({self._last_fault}); the "
                "answers are kept, the log holds the faults: mend it and start the same command again"
            )


async def run_works(
    works: Sequence[Work[Any]],
    store: Store,
    *,
    quiet: bool = False,
    budget: Budget | None = None,
    build: BuildEngine = build_engine,
) -> list[Done]:
    """Run `works` one after the other. Those with the same model share its engine.

    `build`: how an engine is made; only called for a work with something left to do. Raises UserError where an engine
    cannot be built, and as `Work.run`; everything finished is kept.
    """
    meter = Meter(budget, [model for work in works for model in work.models], store)
    pool, done = EnginePool(build), []
    try:
        # All before the first call: engines that share a model start it with room for each other's adapters.
        for model in (model for work in works if work.pending for model in work.models):
            pool.get(model)
        for number, work in enumerate(works, 1):
            done.append(await work.run(store, pool, meter, quiet=quiet))
            await pool.keep(model for later in works[number:] if later.pending for model in later.models)
    finally:
        await pool.keep(())
    return done


def _answered(askers: Sequence[Asker]) -> int:
    return sum(asker.answered for asker in askers)


def _failed(askers: Sequence[Asker]) -> int:
    return sum(asker.failed for asker in askers)
