"""The input of the scoring command: one JSON object per line, with an answer and what evaluators said of its paths.

The answer is ``raw`` (a model's text), ``path_prediction`` (a list of texts, whose paths are united) or ``paths``.
Specificity is ``class_size_responses`` (an evaluator's text per path) or ``strengths`` (a number per path); factuality
``factuality_responses`` or ``factuality`` (0 or 1 per triple of each path). Validity follows from ``entity_a``,
``entity_b`` and ``rel_b``, or is given as ``validity`` (0 or 1 per path).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from inference.errors import UserError, named_list
from inference.files import open_text, parse_json

ANSWERS = ("raw", "path_prediction", "paths")
MOST_NESTED = 50
"""Levels of JSON in a row; paths need four."""


class RowError(Exception):
    """A row that cannot be scored; the others can."""


class Row(BaseModel):
    """One answer; keys of no meaning here are passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore", coerce_numbers_to_str=True)

    id: Any = None
    raw: str | None = None
    path_prediction: str | list[str | None] | None = None
    paths: list[Any] | None = None
    entity_a: str | None = None
    entity_b: str | None = None
    rel_b: str | None = None
    class_size_responses: list[str | None] | None = None
    factuality_responses: list[str | None] | None = None
    strengths: list[Any] | None = None
    validity: list[Any] | None = None
    factuality: list[Any] | None = None
    factuality_threshold: float = Field(default=1.0, ge=0, le=1)
    """Share of factual triples that a path needs."""

    @property
    def answer_key(self) -> str:
        """Which of `ANSWERS` the row has."""
        return next(key for key in ANSWERS if key in self.model_fields_set)


@dataclass(frozen=True)
class BadRow:
    """A line that is no row."""

    id: Any
    message: str


def read_rows(path: Path | str) -> Iterator[Row | BadRow]:
    """The rows of a JSONL file in order; a faulty line becomes a `BadRow` that names its number.

    A row without an id is called after its line. Raises UserError for a file that cannot be read, or has no lines.
    """
    for found in read_objects(path):
        yield found if isinstance(found, BadRow) else make_row(found.content, found.name)


class NamedObject(NamedTuple):
    """A line of a JSONL file."""

    name: str
    """``line 7``, for messages."""
    content: dict[str, Any]


def read_objects(path: Path | str) -> Iterator[NamedObject | BadRow]:
    """The lines themselves, as `read_rows` reads them, with every key and an ``id``."""
    empty = True
    with open_text(path) as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                empty = False
                yield _object(line, f"line {number}")
    if empty:
        raise UserError(f"{path}: the file is empty; it needs one JSON object per line")


def _object(line: str, name: str) -> NamedObject | BadRow:
    try:
        content = parse_json(line)
    except ValueError as error:
        return BadRow(name, f"{name} is not JSON ({error})")
    if not isinstance(content, dict):
        return BadRow(name, f"{name} is not a JSON object")
    if _deeper(content, MOST_NESTED):
        return BadRow(name, f"{name} is nested more than {MOST_NESTED} levels deep")
    found = content.get("id")
    content["id"] = name if found is None else found
    return NamedObject(name, content)


def _deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return bool(inner) and (levels == 0 or any(_deeper(item, levels - 1) for item in inner))


def make_row(content: dict[str, Any], name: str) -> Row | BadRow:
    """A row from its keys and values; `name` stands in the message of a faulty one."""
    answers = [key for key in ANSWERS if key in content]
    if len(answers) != 1:
        given = named_list(answers) if answers else "none of them"
        return BadRow(content.get("id"), f"{name} needs one of {', '.join(ANSWERS)}, and has {given}")
    try:
        return Row.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return BadRow(content.get("id"), f"{name}: {place}: {first['msg']}")
