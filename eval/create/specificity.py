"""Class sizes → specificity. A triple is as specific as the larger of its two classes is small; a path as its least
specific triple, without the final one, which the query gives and not the model."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import TypeVar

from eval.create.literal import Bare, Text
from eval.create.records import SizeReading
from eval.create.replies import Value, read_values

KEYS = ("judgment", "judgement", "judgments", "judgements")
BANDS = ((10, 5), (99, 4), (499, 3), (4999, 2))
"""(largest class, score); larger ones score 1."""
N = TypeVar("N", int, float)
LARGEST = 10**15
"""Larger numbers are slips, not class sizes."""
_SIZE = re.compile(
    r"[~≈]?\s*(\d{1,3}(?:,\d{3})+|\d+(?:_\d+)*)(\.\d+)?(e\+?\d{1,2})?\s*(k|m|thousand|million|billion)?", re.IGNORECASE
)
_UNITS = {"k": 1_000, "thousand": 1_000, "m": 1_000_000, "million": 1_000_000, "billion": 1_000_000_000}


def size_score(size: int) -> int:
    """1 (5,000 members or more) to 5 (10 or fewer)."""
    return next((score for largest, score in BANDS if size <= largest), 1)


def read_sizes(reply: str | None, n_triples: int, *, include_final: bool = False) -> SizeReading:
    """The class sizes of an evaluator's reply on one path of `n_triples` triples.

    Whole numbers are read, with thousands commas, underscores, an exponent, ``~``, and the words thousand, million,
    billion, k and m. 0 counts as 1 (flag ``zero``). Negative numbers, ranges and everything else are None. With
    `include_final` the final triple counts, too, which is the formula read literally.
    """
    values = read_values(reply or "", KEYS)
    read = [_size(value) for value in values]
    sizes = tuple(None if size is None else max(1, size) for size in read)
    scores = tuple(None if size is None else size_score(size) for size in sizes)
    status = _status(sizes, n_triples)
    matches = status in ("ok", "unreadable")
    return SizeReading(
        sizes=sizes,
        scores=scores,
        path_score=path_score(scores, include_final=include_final) if matches else None,
        status=status,
        flags=("zero",) if 0 in read else (),
    )


def path_score(scores: Sequence[N | None], *, include_final: bool = False) -> N | None:
    """Lowest of the scores that count; the final triple's only does where it is alone. None where one is missing."""
    counted = scores if include_final or len(scores) == 1 else scores[:-1]
    known = [score for score in counted if score is not None]
    return min(known) if known and len(known) == len(counted) else None


def _status(values: Sequence[int | None], n_triples: int) -> str:
    if not values:
        return "empty"
    if len(values) != n_triples:
        return "count_mismatch"
    return "unreadable" if None in values else "ok"


def _size(value: Value) -> int | None:
    match = _SIZE.fullmatch(value.text.strip()) if isinstance(value, (Text, Bare)) else None
    if match is None:
        return None
    whole, fraction, exponent, unit = match.groups(default="")
    try:
        size = Decimal(whole.replace(",", "").replace("_", "") + fraction + exponent) * _UNITS.get(unit.lower(), 1)
    except InvalidOperation:
        return None
    return int(size) if size <= LARGEST and size == size.to_integral_value() else None
