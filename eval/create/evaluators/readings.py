"""What an evaluator said of one path, and the file of it in a run directory."""

from collections.abc import Hashable
from typing import Any

from eval.create.evaluators.kinds import KindName
from inference.config import StrictModel
from inference.record_file import RecordFile

READINGS = "readings.jsonl"


class Reading(StrictModel):
    """A line of ``readings.jsonl``."""

    evaluator: KindName
    job: str
    """Digest of the path, see `plan.Job`."""
    status: str
    """``ok``, ``unreadable``, ``count_mismatch``, ``empty``, or ``failed`` where no answer came."""
    reply: str | None = None
    """Text of a prompted or recorded evaluator."""
    values: tuple[float | None, ...] = ()
    """Expected score per triple of a learned one; None where it gave none."""
    asked_again: bool = False
    """Whether the first reply could not be used."""
    fault: str | None = None
    """Why no answer came; a restart asks again."""
    calls: tuple[str, ...] = ()
    """Store keys of the calls."""


class ReadingFile(RecordFile[Reading]):
    """``readings.jsonl``: evaluator by evaluator, in it path by path."""

    def parse(self, content: Any) -> Reading:
        return Reading.model_validate(content)

    def key(self, record: Reading) -> tuple[Hashable, ...]:
        return record.evaluator, record.job

    def fault(self, record: Reading) -> str | None:
        return record.fault
