"""Answers → the paths that evaluators are to see, each once however often it was given."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from eval.create.judging import Rules, row_paths
from eval.create.normal import normalised_path
from eval.create.official.errors import QuirkError
from eval.create.official.validity import check_path as official_check
from eval.create.records import AnyPath, Path
from eval.create.rows import ANSWERS, BadRow, NamedObject, Row, make_row, read_objects
from eval.create.triples import connection
from eval.create.validity import check_path
from inference.errors import UserError, quoted
from inference.prompts.text import sound

SAMPLES = "samples"
"""Key under which generated answers hold their texts; scored as ``path_prediction``."""


@dataclass(frozen=True)
class Job:
    """One path to be judged. Equal but for case, width and whitespace are the same job."""

    path: Path
    connection: str
    """What it connects, for learned evaluators; empty for prompted ones, which see the path alone."""

    @property
    def id(self) -> str:
        """16 hex digits."""
        content = json.dumps([self.connection, normalised_path(self.path)])
        return hashlib.sha256(content.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class PlannedRow:
    """One line of the input."""

    content: dict[str, Any]
    """Its keys and values, the answer under a key that the scoring reads."""
    row: Row | BadRow
    paths: tuple[Path | None, ...]
    """One entry per path of the answer, None where evaluators are not to see it."""

    def job(self, path: Path, *, connected: bool) -> Job:
        """`connected`: with what it connects. Raises UserError where that is wanted, and the row does not say."""
        if not connected:
            return Job(path, "")
        assert isinstance(self.row, Row)
        if not self.row.entity_a or not self.row.entity_b:
            raise UserError(
                f"row {quoted(str(self.row.id))} has no entity_a or entity_b, which a learned evaluator is shown; add "
                "them, or use a prompted or recorded one"
            )
        return Job(path, connection(self.row.entity_a, self.row.entity_b))


def read_plan(source: str, evaluated: Literal["valid", "all"]) -> list[PlannedRow]:
    """All rows of a JSONL file in order; a faulty one has no paths. Raises UserError for a file without lines."""
    return [_planned(found, evaluated) for found in read_objects(source)]


def distinct_jobs(rows: Iterable[PlannedRow], *, connected: bool) -> list[Job]:
    """The paths of all rows in order, each once."""
    found: dict[str, Job] = {}
    for row in rows:
        for path in filter(None, row.paths):
            job = row.job(path, connected=connected)
            found.setdefault(job.id, job)
    return list(found.values())


def _planned(found: NamedObject | BadRow, evaluated: Literal["valid", "all"]) -> PlannedRow:
    if isinstance(found, BadRow):
        return PlannedRow({"id": found.id, "error": found.message}, found, ())
    content = dict(found.content)
    if SAMPLES in content and not any(key in content for key in ANSWERS):
        content["path_prediction"] = content.pop(SAMPLES)
    row = make_row(content, found.name)
    if isinstance(row, BadRow):
        return PlannedRow(content, row, ())
    _, paths = row_paths(row, Rules())
    return PlannedRow(content, row, tuple(_seen(path, row, evaluated) for path in paths))


def _seen(path: AnyPath, row: Row, evaluated: Literal["valid", "all"]) -> Path | None:
    """The path as evaluators see it; None where its triples are none, or no rule accepts it."""
    ends = (row.entity_a or "", row.entity_b or "")
    validity = check_path(path, *ends)
    if "bad_triple" in validity.reasons:
        return None
    # Where the ends are not given, nobody can say that a path misses them.
    if evaluated == "valid" and all(ends) and not validity.shared and not _released_rule(path, *ends):
        return None
    triples = [tuple(sound(str(part)) for part in triple) for triple in path]
    return tuple((head, relation, tail) for head, relation, tail in triples)


def _released_rule(path: AnyPath, entity_a: str, entity_b: str) -> bool:
    try:
        return official_check(path, entity_a, entity_b).flag == 1
    except QuirkError:
        return False
