"""The extractor at work: one call per trace; a reply that cannot be read is asked for once more."""

import logging
from collections.abc import Iterable, Sequence

from eval.create.reasoning.prompts import SCHEMA, trace_messages
from eval.create.reasoning.records import Trace, TraceReading, TraceReadingFile
from eval.create.reasoning.replies import read_extraction
from eval.create.reasoning.settings import ReasoningConfig
from inference.asking import Asker, shown_error
from inference.engines.base import EngineError
from inference.errors import UserError
from inference.methods.base import Ask, ask_readable
from inference.records import Call, Completion
from inference.work import Work

logger = logging.getLogger(__name__)


class TraceWork(Work[TraceReading]):
    """All traces, side by side."""

    kind, records = "extractor", "readings"

    def __init__(
        self, config: ReasoningConfig, traces: Sequence[Trace], sink: TraceReadingFile, pending: Iterable[int]
    ) -> None:
        super().__init__(config.extractor.model, [config.extractor], sink, range(len(traces)), pending)
        self._config, self._traces = config, traces

    @property
    def askable(self) -> int:
        return len(self._traces)

    async def make(self, index: int, askers: Sequence[Asker]) -> TraceReading:
        trace, asker, keys = self._traces[index], askers[0], list[str]()

        async def ask(call: Call) -> Completion:
            keys.append(asker.key(call))
            return await asker(call)

        try:
            reading = await read_trace(trace, trace_call(trace, self._config), ask)
        except UserError:
            raise
        except EngineError as error:
            reading = self._failed_reading(trace, "engine: ", error)
        except Exception as error:
            logger.exception("extractor %s, trace %s", self.name, trace.id)
            reading = self._failed_reading(trace, f"method: {type(error).__name__}: ", error)
        return reading.model_copy(update={"calls": tuple(keys)})

    def _failed_reading(self, trace: Trace, opening: str, error: Exception) -> TraceReading:
        fault = opening + shown_error(error, self._config.extractor.api_key_env)
        return TraceReading(trace=trace.id, generator=trace.generator, status="failed", cut=trace.cut, fault=fault)


def trace_call(trace: Trace, config: ReasoningConfig) -> Call:
    """The first call on a trace."""
    return Call(
        messages=trace_messages(trace.query, trace.text),
        json_schema=SCHEMA,
        max_tokens=config.reply_tokens,
        temperature=config.extractor.temperature,
    )


async def read_trace(trace: Trace, call: Call, ask: Ask) -> TraceReading:
    """The reply to `call`, or the second one where the first cannot be read. Raises EngineError where none comes."""

    def read(completion: Completion) -> tuple[TraceReading, str | None]:
        found, complaint = read_extraction(completion.text)
        lists = {"reply": completion.text} if found is None else found._asdict()
        reading = TraceReading(
            trace=trace.id,
            generator=trace.generator,
            status="unreadable" if found is None else "ok",
            cut=trace.cut,
            **lists,
        )
        return reading, complaint

    reading, _ = await ask_readable(ask, call, read, _readable)
    return reading


def _readable(first: TraceReading, second: TraceReading) -> TraceReading:
    """The second reply where it can be read, else the first."""
    return (second if second.status == "ok" else first).model_copy(update={"asked_again": True})
