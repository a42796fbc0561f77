"""What a check finds, and how it is gathered."""

from collections.abc import Collection, Iterable
from typing import Any, Literal

from eval.benchmarks.cgpst.names import keys, official
from eval.benchmarks.cgpst.ranges import fitting, other_ranges, plain_range
from inference.config import StrictModel
from inference.errors import named, quoted
from inference.rubric import Dimension, Step

Kind = Literal["error", "note"]


class Finding(StrictModel):
    """One remark on a file."""

    kind: Kind
    """An error makes scores wrong, missing or unreadable; a note is to be known, no more."""
    place: str
    """``A05_FS10, rater 2 (H02), Step-3 item 4``."""
    message: str

    def __str__(self) -> str:
        return f"{self.kind:<5}  {self.place}: {self.message}"


class Findings:
    """The findings on a file, in the order in which they are made."""

    def __init__(self) -> None:
        self.found: list[Finding] = []
        self._outside: dict[tuple[str, str], list[str]] = {}

    def error(self, place: str, message: str) -> None:
        self.found.append(Finding(kind="error", place=place, message=message))

    def note(self, place: str, message: str) -> None:
        self.found.append(Finding(kind="note", place=place, message=message))

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
                self.note(place, f"{message}; it needs {fits}")
            else:
                self.error(place, message)
            return whole
        for variant, (least, most) in other_ranges(key).items():
            if not least <= whole <= most:
                self._outside.setdefault((variant, f"{name} {whole}"), []).append(place)
        return whole

    def _whole(self, place: str, dimension: Dimension, value: Any) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
            self.error(place, f"{official(dimension)} is {quoted(str(value), 40)}, which is no whole number")
            return None
        if isinstance(value, float):
            self.note(place, f"{official(dimension)} is written {value}, whole numbers have no point")
        return int(value)

    def unread_keys(
        self, place: str, given: Iterable[str], dimensions: Iterable[Dimension], others: Collection[str]
    ) -> None:
        """Note keys that are unknown, or known by another spelling than the official one."""
        known = keys(dimensions)
        for key in given:
            if key in known and key != official(known[key]):
                self.note(place, f"{key} is spelled {official(known[key])} in the official files; both are read")
            elif key not in known and key not in others:
                self.note(place, f"the key {named(key)} is unknown and is not read{_meant(key, known)}")

    def finish(self) -> list[Finding]:
        """All findings; last of all, once for each value, which variant of the rubric the file rules out."""
        for (variant, what), places in self._outside.items():
            self.note(places[0], f"{what} is outside the variant {variant} (in {len(places)} of the file's scores)")
        return self.found


def _meant(key: str, known: Collection[str]) -> str:
    letters = key.lower().replace(" ", "")
    close = [name for name in known if name.lower().replace(" ", "")[:5] == letters[:5]]
    return f"; write {close[-1]} if that is meant" if close else ""
