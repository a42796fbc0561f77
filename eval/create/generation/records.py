"""What a model answered to one query, and the file of it in a run directory."""

from collections.abc import Hashable
from typing import Any

from eval.create.generation.prompts import Strategy
from inference.config import StrictModel
from inference.record_file import RecordFile

ANSWERS = "answers.jsonl"


class Tokens(StrictModel):
    """Sums over the calls behind an answer."""

    prompt: int
    completion: int
    reasoning: int
    """Hidden thinking, part of `completion`, where the server counts it."""
    known: bool
    """False where the server didn't report all tokens."""


class Answer(StrictModel):
    """A line of ``answers.jsonl``. Without `samples`, and with the reason in `failed`, where no answer came."""

    id: str
    """``<generator>/<query>``."""
    query_id: str
    query: str
    entity_a: str
    rel_b: str
    entity_b: str
    description: str = ""
    generator: str
    model: str
    strategy: Strategy
    encourage_guessing: bool
    samples: tuple[str, ...] = ()
    """Raw texts, in order; a blank answer stays blank."""
    reasoning: tuple[str, ...] = ()
    """The thinking before each of `samples`; absent where there was none."""
    finish: tuple[str, ...] = ()
    """Why each ended: ``stop``, ``length`` (cut off), ``refusal`` or ``other``."""
    tokens: Tokens | None = None
    failed: str | None = None
    calls: tuple[str, ...] = ()
    """Store keys of the calls, in the order in which they were asked."""


class AnswerFile(RecordFile[Answer]):
    """``answers.jsonl``: generator by generator, in it query by query."""

    def parse(self, content: Any) -> Answer:
        return Answer.model_validate(content)

    def key(self, record: Answer) -> tuple[Hashable, ...]:
        return record.generator, record.query_id

    def fault(self, record: Answer) -> str | None:
        return record.failed
