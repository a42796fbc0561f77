"""Traces of a generation, what was read in each, and the file of that in a run directory."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from eval.create.generation.records import Answer
from eval.create.queries.records import Query
from eval.create.reasoning.prompts import Strategy
from eval.create.rows import BadRow, read_objects
from inference.config import StrictModel
from inference.errors import UserError
from inference.record_file import RecordFile

READINGS = "readings.jsonl"


@dataclass(frozen=True)
class Trace:
    """The thinking before one text of an answer."""

    id: str
    """``<answer>/<number of the text, from 1>``."""
    generator: str
    query: Query
    text: str
    """Its first characters, up to the limit."""
    cut: bool
    """Whether it was longer."""


class TraceReading(StrictModel):
    """A line of ``readings.jsonl``. Without lists where the trace could not be read."""

    trace: str
    generator: str
    status: Literal["ok", "unreadable", "failed"]
    """``failed`` where no reply came, with the reason in `fault`."""
    relations: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """Both in the order of the trace, with repeats; lower case without punctuation."""
    strategies: tuple[Strategy, ...] = ()
    cut: bool = False
    reply: str | None = None
    """The text that could not be read."""
    asked_again: bool = False
    """Whether the first reply could not be read."""
    fault: str | None = None
    calls: tuple[str, ...] = ()
    """Store keys of the calls."""


class TraceReadingFile(RecordFile[TraceReading]):
    """``readings.jsonl``: trace by trace, in the order of the answers."""

    def parse(self, content: Any) -> TraceReading:
        return TraceReading.model_validate(content)

    def key(self, record: TraceReading) -> tuple[Hashable, ...]:
        return record.generator, record.trace

    def fault(self, record: TraceReading) -> str | None:
        return record.fault


def read_answers(path: Path | str) -> list[Answer]:
    """All lines of an ``answers.jsonl``. Raises UserError for a faulty line, and where no answer has thinking."""
    answers = []
    for found in read_objects(path):
        if isinstance(found, BadRow):
            raise UserError(f"{path}: {found.message}; give the answers.jsonl of `eval create generate`")
        try:
            answers.append(Answer.model_validate(found.content))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            raise UserError(
                f"{path}: {found.name} is no generated answer ({place}: {first['msg']}); give the answers.jsonl of "
                "`eval create generate`"
            ) from None
    if not any(map(thoughts, answers)):
        raise UserError(
            f"{path}: none of its {len(answers)} answers has thinking (`reasoning`); generate with a model that thinks "
            "before it answers, and whose server hands that out"
        )
    return answers


def thoughts(answer: Answer) -> list[tuple[int, str]]:
    """(number of the text from 1, thinking before it), blank ones left out."""
    return [(number, text) for number, text in enumerate(answer.reasoning, 1) if text.strip()]


def traces(answers: Iterable[Answer], longest: int) -> Sequence[Trace]:
    """Every trace of `answers` in order, of at most `longest` characters."""
    return [
        Trace(
            id=f"{answer.id}/{number}",
            generator=answer.generator,
            query=Query(
                id=answer.query_id,
                **answer.model_dump(include={"query", "entity_a", "rel_b", "entity_b"}),
            ),
            text=text[:longest],
            cut=len(text) > longest,
        )
        for answer in answers
        for number, text in thoughts(answer)
    ]
