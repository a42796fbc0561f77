"""Evaluators' replies that exist already, found again by their paths."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from eval.create.evaluators.kinds import Kind
from eval.create.evaluators.plan import PlannedRow
from eval.create.evaluators.readings import Reading
from eval.create.judging import Rules, aligned, row_paths
from eval.create.normal import normalised_path
from eval.create.records import AnyPath, Path
from eval.create.rows import BadRow, RowError, make_row, read_objects
from inference.errors import UserError

Key = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class RecordedReplies:
    """Replies of one judgement. A path is found whatever the case, width and whitespace of its names."""

    kind: Kind
    of_answer: dict[tuple[str, str, Key], Any]
    """By query, model and path."""
    of_path: dict[Key, Any]
    """The first reply on each path, in whichever answer it stood."""

    def reading(self, row: PlannedRow, path: Path) -> Reading:
        """What was recorded on `path`, in the same answer before any other; empty where nothing was."""
        key = normalised_path(path)
        reply = self.of_answer.get((*_origin(row.content), key), self.of_path.get(key))
        text = reply if isinstance(reply, str) else None
        _, status = self.kind.read(text, len(path))
        return Reading(evaluator=self.kind.name, job="", status=status, reply=text)


def read_recorded(path: str, kind: Kind) -> RecordedReplies:
    """Replies of a JSONL file, of which each line is one ``path`` with its reply, or an answer with a list of replies.

    Raises UserError for lines that are no objects, lists with another number of entries than the answer has paths, and
    a file without any reply of this judgement.
    """
    found = RecordedReplies(kind, {}, {})
    for origin, recorded, reply in _replies(path, kind):
        key = normalised_path(recorded)
        found.of_answer.setdefault((*origin, key), reply)
        found.of_path.setdefault(key, reply)
    if not found.of_path:
        raise UserError(
            f"{path}: no line has `{kind.recorded_key}` beside a `path`, or `{kind.reply_key}` beside an answer, which "
            f"is where replies on {kind.name} are looked for"
        )
    return found


def _replies(path: str, kind: Kind) -> Iterator[tuple[tuple[str, str], AnyPath, Any]]:
    for line in read_objects(path):
        if isinstance(line, BadRow):
            raise UserError(f"{path}: {line.message}; mend or remove the line")
        content = line.content
        if isinstance(content.get("path"), list):
            if kind.recorded_key in content:
                yield _origin(content), content["path"], content[kind.recorded_key]
        elif kind.reply_key in content:
            for recorded, reply in _listed(path, line.name, content, kind):
                yield _origin(content), recorded, reply


def _listed(path: str, name: str, content: dict[str, Any], kind: Kind) -> Iterator[tuple[AnyPath, Any]]:
    row = make_row(content, name)
    if isinstance(row, BadRow):
        raise UserError(f"{path}: {row.message}")
    parsed, paths = row_paths(row, Rules())
    try:
        replies = aligned(kind.reply_key, getattr(row, kind.reply_key) or (), parsed, len(paths))
    except RowError as error:
        raise UserError(f"{path}: {name}: {error}") from None
    yield from zip(paths, replies, strict=True)


def _origin(content: dict[str, Any]) -> tuple[str, str]:
    """Query and model of an answer, as far as they are named."""
    return str(content.get("query_id", content.get("id"))), str(content.get("model", ""))
