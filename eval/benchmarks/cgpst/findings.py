"""What a check finds, and how it is gathered."""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Literal

from eval.benchmarks.cgpst.layout import sound
from eval.benchmarks.cgpst.names import TWICE, keys, named_twice, official
from eval.benchmarks.cgpst.ranges import fitting, other_ranges, plain_range
from inference.config import StrictModel
from inference.errors import named, quoted, shortened
from inference.rubric import HIGHEST, Dimension, Step

Kind = Literal["error", "note"]


VARIANTS = "scores that only one variant of the rubric allows"
NO_CATEGORY = "does not apply"
"""What evidence says of the category of an item that does not count."""


class Finding(StrictModel):
    """One remark on a file."""

    kind: Kind
    """An error makes scores wrong, missing or unreadable; a note is to be known, no more."""
    place: str
    """``A05_FS10, rater 2 (H02), Step-3 item 4``."""
    message: str
    topic: str = ""
    """What a note has in common with others of its kind."""

    def __str__(self) -> str:
        return f"{self.kind:<5}  {self.place}: {self.message}"


class Findings:
    """The findings on a file, in the order in which they are made."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._outside: dict[tuple[str, str], list[str]] = {}

    def error(self, place: str, message: str) -> None:
        self.found.append(Finding(kind="error", place=sound(place), message=sound(message)))

    def note(self, topic: str, place: str, message: str) -> None:
        self.found.append(Finding(kind="note", place=sound(place), message=sound(message), topic=topic))

    def item_number(self, place: str, step: Step, dimension: Dimension, value: Any) -> int | None:
        """`value` as a score of an item; None, with a finding, where it is no whole number."""
        whole = self._whole(place, dimension, value)
        low, high = dimension.range
        if whole is not None and not low <= whole <= high:
            self.error(place, f"{official(dimension)} {whole} is outside the range {low} to {high} of an item")
        return whole

    def step_number(self, place: str, step: Step, dimension: Dimension, value: Any) -> int | None:
        """`value` as a score of a whole step, checked against each range that sources give."""
        whole = self._whole(place, dimension, value)
        if whole is None:
            return None
        key = f"{step.name}.{dimension.name}"
        (low, high), name = plain_range(key), official(dimension)
        if not low <= whole <= high:
            fits = fitting(key, whole, (low, high))
            message = f"{name} {whole} is outside the range {low} to {high}"
            if fits:
                self.note(VARIANTS, place, f"{message}; it needs {fits}")
            else:
                self.error(place, message)
            return whole
        for variant, (least, most) in other_ranges(key).items():
            if not least <= whole <= most:
                self._outside.setdefault((variant, f"{name} {whole}"), []).append(place)
        return whole

    def _whole(self, place: str, dimension: Dimension, value: Any) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            self.error(place, f"{official(dimension)} is {quoted(str(value), 20)}, which is no whole number")
            return None
        if abs(value) > HIGHEST:
            self.error(place, f"{official(dimension)} {shortened(value)} is outside every range")
            return None
        if isinstance(value, float):
            self.note(
                "numbers with a point", place, f"{official(dimension)} is written {value}, whole numbers have no point"
            )
        return int(value)

    def unread_keys(
        self, place: str, given: Iterable[str], dimensions: Iterable[Dimension], others: Collection[str]
    ) -> None:
        """Note keys that are unknown, or known by another spelling than the official one; two of those are an error."""
        given, known = list(given), keys(dimensions)
        for key in named_twice(given, known):
            self.error(place, f"{named(key)}: {TWICE}")
        for key in given:
            if key in known and key != official(known[key]):
                message = f"{key} is spelled {official(known[key])} in the official files; both are read"
                self.note("keys in another spelling", place, message)
            elif key not in known and key not in others:
                message = f"the key {named(key)} is unknown and is not read{_meant(key, known)}"
                self.note("unknown keys", place, message)

    def category(self, place: str, dimension: Dimension, text: str) -> None:
        """Note a category that is none of the choices of `dimension`."""
        if text in dimension.choices:
            return
        meant = next((choice for choice in dimension.choices if _letters(choice) == _letters(text)), "")
        likely = f"; likely {quoted(meant)} is meant" if meant else ""
        message = f"the category {quoted(text)} is unknown; it is kept and counted like others{likely}"
        self.note("categories outside the list", place, message)

    def named_category(self, place: str, dimension: Dimension, text: str) -> None:
        """Note evidence on the category that names none of the choices of `dimension`, or one in another spelling."""
        if any(choice in text for choice in dimension.choices) or _letters(text) == _letters(NO_CATEGORY):
            return
        meant = [choice for choice in dimension.choices if f" {_letters(choice)} " in f" {_letters(text)} "]
        likely = f"; likely {quoted(max(meant, key=len))} is meant" if meant else ""
        message = f"the evidence on the category, {quoted(text)}, names none of the list{likely}"
        self.note("categories outside the list", place, message)

    def finish(self) -> list[Finding]:
        """All findings; last of all, once for each value, which variant of the rubric the file rules out."""
        for (variant, what), places in self._outside.items():
            message = f"{what} is outside the variant {variant} (in {len(places)} of the file's scores)"
            self.note(VARIANTS, places[0], message)
        return self.found


def _letters(text: str) -> str:
    """For comparisons: small letters, ``and`` for ``&``, no other signs."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold().replace("&", " and ")))


def shown(findings: Sequence[Finding], *, all_notes: bool) -> list[str]:
    """Lines for a person: errors first; notes of one topic as one line with their number, unless `all_notes`."""
    lines = [str(finding) for finding in findings if finding.kind == "error"]
    topics: dict[str, list[Finding]] = {}
    for note in (finding for finding in findings if finding.kind == "note"):
        topics.setdefault(note.topic, []).append(note)
    for topic, notes in topics.items():
        if all_notes or len(notes) == 1:
            lines += map(str, notes)
        else:
            lines.append(f"note   {len(notes)} × {topic}; the first: {notes[0].place}: {notes[0].message}")
    return lines


def _meant(key: str, known: Collection[str]) -> str:
    letters = key.lower().replace(" ", "")
    close = [name for name in known if name.lower().replace(" ", "")[:5] == letters[:5]]
    return f"; write {close[-1]} if that is meant" if close else ""
