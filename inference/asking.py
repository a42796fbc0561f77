"""One model behind the store, a limit of calls in flight, a budget and bounded retries."""

import asyncio
import logging
import os
import time

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt
from tenacity.wait import wait_random_exponential

from inference.budget import Meter
from inference.engines.base import Engine, EngineError
from inference.errors import UserError
from inference.judges import ModelConfig
from inference.records import Call, Completion
from inference.store import Store

logger = logging.getLogger(__name__)

FIRST_WAIT = 1.0
"""Seconds: the upper end of the random wait before the first retry; doubled for each further one."""
LONGEST_WAIT = 30.0
"""Seconds: bound of a wait that we choose."""
LONGEST_ASKED_WAIT = 300.0
"""Seconds: bound of a wait that the server asks for."""
OUTAGE = 8
"""Calls in a row that failed for a passing reason, each with all its retries, after which the server counts as gone."""
HOPELESS = 50
"""Failed calls without a single answer after which the set-up counts as wrong (key, model name, request form)."""


class Outage(UserError):
    """The engine doesn't answer; going on would only turn the remaining samples into unscored ones."""


class Asker:
    """Answers calls to one model: from the store, from an equal call in flight, or from the engine.

    `__call__` raises EngineError where a call failed for good. It is not stored, so a restart sends it again.
    """

    def __init__(self, name: str, model: ModelConfig, engine: Engine, store: Store, meter: Meter) -> None:
        """`name`: who asks, for messages."""
        self.sent = 0
        """Tries that went to the engine, retries included."""
        self.answered = 0
        """Calls that the engine answered."""
        self.failed = 0
        self.last_error = ""
        self._name, self._model, self._engine, self._store, self._meter = name, model, engine, store, meter
        self._identity = engine.identity
        self._slots = asyncio.Semaphore(model.calls_in_flight)
        self._in_flight: dict[str, asyncio.Future[Completion]] = {}
        self._storing: set[asyncio.Future[None]] = set()
        self._failed_in_a_row = 0

    @property
    def silent(self) -> bool:
        """Whether the last call went unanswered for a passing reason, or none was ever answered."""
        return self._failed_in_a_row > 0 or (self.failed > 0 and self.answered == 0)

    def key(self, call: Call) -> str:
        return call.key(self._identity)

    async def __call__(self, call: Call) -> Completion:
        key = self.key(call)
        stored = self._store.get(key)
        if stored is not None:
            return stored
        if key not in self._in_flight:
            # A task of its own: equal calls of other samples share it, and one sample's fault doesn't cancel it.
            task = asyncio.ensure_future(self._ask_and_store(key, call))
            self._in_flight[key] = task
            task.add_done_callback(lambda done: self._forget(key, done))
        return await asyncio.shield(self._in_flight[key])

    def _forget(self, key: str, done: asyncio.Future[Completion]) -> None:
        self._in_flight.pop(key, None)
        if not done.cancelled():
            done.exception()  # those who asked may have been stopped, and asyncio would report it as lost

    def check_health(self) -> None:
        """Raises Outage where further calls are hopeless."""
        unanswered = self.answered == 0 and self.failed >= HOPELESS
        if self._failed_in_a_row >= OUTAGE or unanswered:
            raise Outage(
                f"{self._name}: {self.failed} calls failed, the last {self._failed_in_a_row or self.failed} "
                f"in a row ({self.last_error}); everything finished is kept: mend it and start the same command again"
            )

    async def close(self, *, drain: bool = False) -> None:
        """Stop what is in flight, or with `drain` let it finish. What was answered is stored in either case."""
        tasks = list(self._in_flight.values())
        for task in tasks if not drain else ():
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._storing, return_exceptions=True)

    async def _ask_and_store(self, key: str, call: Call) -> Completion:
        async with self._slots:
            self._meter.check()
            try:
                started, completion = await self._with_retries(call)
            except EngineError as error:
                self._count_failure(error)
                raise
            self.answered += 1
            self._failed_in_a_row = 0
            self._meter.add(self._model.label, completion.usage)
            await self._keep(key, completion, started)
            self._meter.check_counted()
        return completion

    async def _keep(self, key: str, completion: Completion, started: float) -> None:
        """Store an answer. Whatever cancels the caller, it is stored: `close` waits for it."""
        storing = asyncio.ensure_future(self._store.put(key, completion, started, time.time(), self._model.label))
        self._storing.add(storing)
        storing.add_done_callback(self._storing.discard)
        await asyncio.shield(storing)

    async def _with_retries(self, call: Call) -> tuple[float, Completion]:
        attempts = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, EngineError) and error.retryable),
            stop=stop_after_attempt(1 + self._model.max_retries),
            wait=seconds_to_wait,
            reraise=True,
        )
        async for attempt in attempts:
            with attempt:
                self.sent += 1
                started = time.time()
                completion = await self._complete(call)
        return started, completion

    async def _complete(self, call: Call) -> Completion:
        try:
            return await self._engine.complete(call)
        except (EngineError, UserError):
            raise
        except Exception as error:
            logger.exception("%s: fault in the engine", self._name)
            raise EngineError(f"{type(error).__name__}: {error}") from error

    def _count_failure(self, error: EngineError) -> None:
        self.failed += 1
        if error.retryable:
            self._failed_in_a_row += 1
        self.last_error = shown_error(error, self._model.api_key_env)


def seconds_to_wait(state: RetryCallState) -> float:
    """Exponential backoff with full jitter, or what the server asked for where that is longer; both bounded."""
    wait = wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT)(state)
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, EngineError) else None
    return max(wait, min(asked or 0.0, LONGEST_ASKED_WAIT))


def shown_error(error: Exception, api_key_env: str) -> str:
    """An error as one line of at most 300 characters, without the API key."""
    text = " ".join(str(error).split()) or type(error).__name__
    secret = os.environ.get(api_key_env)
    return (text.replace(secret, "***") if secret else text)[:300]
