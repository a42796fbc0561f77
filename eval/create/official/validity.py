"""The released test of a path (Q17 to Q21)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from eval.create.official.errors import QuirkError


class Found(NamedTuple):
    """What the released test returns."""

    flag: int
    reason: str
    """``bad_length:N`` or ``null:N`` for triple N of an early end, else empty."""

    @property
    def stored(self) -> int | str:
        """What its caller keeps: the second of a pair whose order differs at an early end (Q20)."""
        return self.reason or self.flag


def check_path(path: Sequence[Any], entity_a: str, entity_b: str) -> Found:
    """Lenient in what links two triples, blind to the ends of a path of two or more.

    Raises QuirkError for an empty path (Q21) and for parts that cannot be compared (Q9).
    """
    if not path:
        raise QuirkError("Q21", "a path has no triples")
    for number, triple in enumerate(path):
        if triple is None:
            return Found(0, f"null:{number}")
        if not isinstance(triple, (list, tuple)):
            raise QuirkError("Q9", f"{str(triple)[:60]!r} stands in place of a triple")
        if len(triple) != 3:
            return Found(0, f"bad_length:{number}")
    triples = [[_text(part) for part in triple] for triple in path]
    if len(triples) == 1:
        return Found(int(_ends_fit(triples[0], entity_a.lower(), entity_b.lower())), "")
    return Found(int(all(_linked(before, after) for before, after in pairwise(triples))), "")


def stored_validity(path: Sequence[Any], entity_a: str, entity_b: str) -> int:
    """The flag that enters the score. Raises QuirkError where a text does (Q20), besides those of `check_path`."""
    stored = check_path(path, entity_a, entity_b).stored
    if isinstance(stored, str):
        raise QuirkError("Q20", f"the text {stored!r} is kept as validity, and no number can be made of it")
    return stored


def _text(part: Any) -> str:
    if isinstance(part, (list, dict)):
        raise QuirkError("Q9", f"{str(part)[:60]!r} stands in place of a name")
    return str(part)


def _ends_fit(triple: list[str], start: str, target: str) -> bool:
    printed = str(triple)  # words of the relation count, and parts of words (Q19)
    return start in printed and target in printed and triple[0] != triple[2]


def _linked(before: list[str], after: list[str]) -> bool:
    """A name of the second triple is a part of a name of the first (Q18)."""
    return any(name in other for name in (after[0], after[2]) for other in (before[0], before[2]))
