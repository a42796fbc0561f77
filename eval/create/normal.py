"""When two names are the same (after NFKC, without case, every run of whitespace one space), and what is a number."""

import sys
import unicodedata
from typing import Any

from eval.create.records import AnyPath


def normalised(text: str) -> str:
    """`text` as it is compared with others; never as it is shown."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def normalised_path(path: AnyPath) -> tuple[tuple[str, ...], ...]:
    """Every part of every triple `normalised`; parts that are no text by their printed form."""
    return tuple(
        tuple(normalised(str(part)) for part in triple)
        if isinstance(triple, (list, tuple))
        else (normalised(str(triple)),)
        for triple in path
    )


def is_number(value: Any) -> bool:
    """Whether a recorded value is a number, no truth value, that a float can hold; NaN is none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
