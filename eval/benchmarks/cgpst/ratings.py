"""The official rating file: a list of ``[answer id, [rater ids], scenario id, scores of rater 1, scores of rater 2]``.

Everything in a file is kept, faults of content and keys nobody knows included, so that writing what was read gives the
same bytes, and `eval.benchmarks.cgpst.check` can say what is wrong. Only what has another structure is refused.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from eval.benchmarks.cgpst.layout import PUBLISHED, LineEnd, need, read_json, write_json
from eval.benchmarks.cgpst.names import CONTENT, INVALID, SUMMARY
from inference.errors import named, quoted
from inference.rubric import Step

Value: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True)
class Row:
    """One element of a step's list: an item, the whole step, or the step's summary."""

    cells: Mapping[str, Value]
    """Key → what the file has there, in the file's order."""
    is_summary: bool = False

    @property
    def content(self) -> str:
        """The respondent's text; empty where there is none."""
        found = self.cells.get(CONTENT)
        return found if isinstance(found, str) else ""

    @property
    def invalid(self) -> str | None:
        """Why the item does not count, with the explanation; None where it does."""
        found = self.cells.get(INVALID)
        return None if found is None else str(found)

    @property
    def ratings(self) -> dict[str, Value]:
        """All but the content."""
        return {key: value for key, value in self.cells.items() if key != CONTENT}


@dataclass(frozen=True)
class RaterScores:
    """What one rater gave."""

    parts: Mapping[str, tuple[Row, ...] | Value]
    """Step → its rows; ``Total Score`` → number; further keys as they are, in the file's order."""

    def rows(self, step: Step) -> tuple[Row, ...]:
        found = self.parts.get(step.label)
        return found if isinstance(found, tuple) else ()

    def items(self, step: Step) -> tuple[Row, ...]:
        """The rows with contents."""
        return tuple(row for row in self.rows(step) if not row.is_summary)

    def whole(self, step: Step) -> Mapping[str, Value]:
        """The cells with the scores of the whole step: the summary's, or the only row's of steps without items."""
        rows = [row for row in self.rows(step) if row.is_summary == (step.items is not None)]
        return rows[-1].cells if rows else {}


@dataclass(frozen=True)
class Entry:
    """One answer with its ratings."""

    id: str
    raters: tuple[str, ...]
    """Names of the raters, two in a sound file."""
    scenario_id: str
    scores: tuple[RaterScores | None, ...]
    """By position of the rater. None where the file has null."""

    def place(self, rater: int | None = None, part: str = "") -> str:
        """For messages: ``A05_FS10, rater 2 (H02), Step-3 item 4``; `rater` counts from 0."""
        words = [named(self.id)]
        if rater is not None:
            name = f" ({named(self.raters[rater])})" if rater < len(self.raters) else ""
            words.append(f"rater {rater + 1}{name}")
        return ", ".join([*words, *filter(None, [part])])


def item_place(step: Step, item: int) -> str:
    """For messages; `item` counts from 1."""
    return f"{step.label} item {item}"


def padded_items(items: Sequence[Row]) -> frozenset[int]:
    """Positions, from 0, of the empty items at the end that carry the ratings of the last real one.

    The released writer fills up short answers this way, by a slip of an index: nobody gave those ratings.
    """
    real = [position for position, row in enumerate(items) if row.content.strip()]
    if not real:
        return frozenset()
    rest = range(real[-1] + 1, len(items))
    return frozenset(position for position in rest if items[position].ratings == items[real[-1]].ratings)


def read_ratings(path: Path | str) -> list[Entry]:
    """All answers of a rating file, in its order. Raises UserError, with the place, for any other structure."""
    content = read_json(path)
    need(isinstance(content, list), str(path), "a rating file is a JSON list of answers")
    return [_entry(f"{path}: answer {number}", value) for number, value in enumerate(content, start=1)]


def write_ratings(path: Path | str, entries: Sequence[Entry], line_end: LineEnd = PUBLISHED) -> None:
    """Write the official layout."""
    write_json(path, [_entry_json(entry) for entry in entries], line_end)


def _entry(place: str, value: Any) -> Entry:
    shape = "needs [id, [rater, rater], scenario id, scores of rater 1, scores of rater 2]"
    need(isinstance(value, list) and len(value) >= 3, place, shape)
    name, raters, scenario, *scores = value
    need(isinstance(name, str), place, f"the id {quoted(str(name))} is no text")
    place = f"{place} ({named(name)})"
    need(isinstance(scenario, str), place, f"the scenario id {quoted(str(scenario))} is no text")
    sound = isinstance(raters, list) and all(isinstance(rater, str) for rater in raters)
    need(sound, place, "the second element has to be the list of the raters' names")
    read = [None if part is None else _scores(f"{place}, rater {i}", part) for i, part in enumerate(scores, start=1)]
    return Entry(name, tuple(raters), scenario, tuple(read))


def _scores(place: str, value: Any) -> RaterScores:
    need(isinstance(value, dict), place, "the scores have to be an object of steps")
    parts: dict[str, tuple[Row, ...] | Value] = {}
    for key, part in value.items():
        where = f"{place}, {named(key)}"
        if isinstance(part, list):
            parts[key] = tuple(_row(f"{where}, row {number}", row) for number, row in enumerate(part, start=1))
        else:
            need(not isinstance(part, dict), where, "needs a list of rows, found an object")
            parts[key] = part
    return RaterScores(parts)


def _row(place: str, value: Any) -> Row:
    need(isinstance(value, dict), place, "a row has to be an object")
    if SUMMARY in value:
        need(len(value) == 1, place, f"{SUMMARY} has to stand in a row of its own")
        need(isinstance(value[SUMMARY], dict), place, f"{SUMMARY} has to be an object")
        return Row(_cells(f"{place}, {SUMMARY}", value[SUMMARY]), is_summary=True)
    return Row(_cells(place, value))


def _cells(place: str, value: dict[str, Any]) -> dict[str, Value]:
    for key, cell in value.items():
        need(
            not isinstance(cell, list | dict), f"{place}, {named(key)}", "needs a text or a number, found more than one"
        )
    return value


def _entry_json(entry: Entry) -> list[Any]:
    scores = [
        None if part is None else {key: _part_json(value) for key, value in part.parts.items()} for part in entry.scores
    ]
    return [entry.id, list(entry.raters), entry.scenario_id, *scores]


def _part_json(part: tuple[Row, ...] | Value) -> Any:
    if not isinstance(part, tuple):
        return part
    return [{SUMMARY: dict(row.cells)} if row.is_summary else dict(row.cells) for row in part]
