"""The common part of local engines: calls wait in one queue, a worker computes them in batches in a thread."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from inference.engines.base import EngineError
from inference.errors import UserError
from inference.prefixes import share_prefixes
from inference.records import Call, Completion


class BatchingEngine(ABC):
    """An engine whose model computes many calls together.

    The worker runs only while calls wait, so nothing is left behind when an event loop ends, and the next loop starts
    a worker of its own.
    """

    def __init__(self, batch_size: int) -> None:
        self.batch_size = batch_size
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: asyncio.Task[None] | None = None
        self._waiting: list[tuple[Call, asyncio.Future[Completion]]] = []
        self._closed = False

    @property
    @abstractmethod
    def identity(self) -> dict[str, str]:
        """See `Engine`."""

    @abstractmethod
    def compute(self, calls: Sequence[Call]) -> list[Completion | EngineError]:
        """One result per call, in order; an EngineError fails its call alone. Runs in a thread, one batch at a time."""

    @abstractmethod
    def release(self) -> None:
        """Free the model. Runs in a thread, after the last batch."""

    async def complete(self, call: Call) -> Completion:
        """Answer one call together with others that wait. Raises EngineError."""
        if self._closed:
            raise EngineError("the engine is closed")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # What still waits belongs to a loop that has ended; nobody can receive it.
            self._loop, self._worker, self._waiting = loop, None, []
        future: asyncio.Future[Completion] = loop.create_future()
        self._waiting.append((call, future))
        if self._worker is None or self._worker.done():
            self._worker = loop.create_task(self._work())
        return await future

    async def close(self) -> None:
        """Fail what still waits, let the running batch end and release the model."""
        self._closed = True
        if self._loop is asyncio.get_running_loop():
            for _, future in self._waiting:
                if not future.done():
                    future.set_exception(EngineError("the engine was closed before the call was computed"))
            self._waiting = []
            if self._worker is not None and not self._worker.done():
                await asyncio.wait([self._worker])
        await asyncio.to_thread(self.release)

    async def _work(self) -> None:
        await asyncio.sleep(0)  # lets calls that were started together join the first batch
        while batch := self._next_batch():
            started = time.monotonic()
            try:
                results = await asyncio.to_thread(self._guarded, [call for call, _ in batch])
            except BaseException:
                # Cancelled or interrupted: no caller may wait for ever.
                for _, future in batch + self._waiting:
                    future.cancel()
                raise
            seconds = (time.monotonic() - started) / len(batch)
            for (_, future), result in zip(batch, results, strict=True):
                if future.done():
                    continue
                if isinstance(result, EngineError):
                    future.set_exception(result)
                else:
                    future.set_result(result.model_copy(update={"seconds": seconds}))

    def _next_batch(self) -> list[tuple[Call, asyncio.Future[Completion]]]:
        """The oldest waiting call and its neighbours in `_by_length`, up to `batch_size`."""
        self._waiting = [entry for entry in self._waiting if not entry[1].done()]
        if not self._waiting:
            return []
        oldest = self._waiting[0]
        ordered = [self._waiting[index] for index in _by_length([call for call, _ in self._waiting])]
        place = next(index for index, entry in enumerate(ordered) if entry is oldest)
        start = min(place, max(0, len(ordered) - self.batch_size))
        batch = ordered[start : start + self.batch_size]
        taken = {id(future) for _, future in batch}
        self._waiting = [entry for entry in self._waiting if id(entry[1]) not in taken]
        return batch

    def _guarded(self, calls: Sequence[Call]) -> Sequence[Completion | EngineError]:
        """`compute`; where a whole batch fails, its calls are computed one by one and fail alone."""
        try:
            results = self.compute(calls)
            if len(results) != len(calls):
                raise RuntimeError(f"{len(results)} results for {len(calls)} calls")
        except UserError as error:
            return [EngineError(str(error)) for _ in calls]
        except Exception as error:
            if len(calls) > 1:  # one call too long for the memory must not fail its neighbours
                return [self._guarded([call])[0] for call in calls]
            return [EngineError(f"the local model failed ({type(error).__name__}: {error})")]
        return results


def _by_length(calls: Sequence[Call]) -> list[int]:
    """Indices by the characters of the prompt, as equal lengths need no padding; what begins another prompt before it.

    Characters order calls like their tokens do.
    """
    texts = [call.prompt or "".join(message.content for message in call.messages or ()) for call in calls]
    kept, places = share_prefixes(texts)
    longest = [kept[position] for position, _ in places]
    return sorted(range(len(calls)), key=lambda index: (len(texts[longest[index]]), longest[index], len(texts[index])))
