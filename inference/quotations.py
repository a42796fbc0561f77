"""Keeping raw responses out of evidence: quotations of more than seven words are cut.

A judge of evidence must not get to see the response by way of an analyst who copies it. Words are compared without case
and punctuation; a Chinese, Japanese or Korean character counts as a word.
"""

import re
from collections.abc import Iterable, Sequence

from inference.records import StepEvidence

LONGEST = 7
"""Words of a response in a row that evidence may hold."""
CUT = "[…]"
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")

Run = tuple[str, ...]


def runs(text: str, length: int = LONGEST + 1) -> set[Run]:
    """All runs of `length` words of a text, lower case."""
    words = [word.lower() for word in _WORD.findall(text)]
    return {tuple(words[start : start + length]) for start in range(len(words) - length + 1)}


def forbidden_runs(raw: Iterable[str], allowed: Iterable[str]) -> set[Run]:
    """Runs of eight words of the raw responses that are in none of the `allowed` texts (scenario, rubric)."""
    found: set[Run] = set()
    for text in raw:
        found |= runs(text)
    for text in allowed:
        found -= runs(text)
    return found


def cut_quotations(part: StepEvidence, forbidden: set[Run]) -> StepEvidence:
    """`part` with longer quotations cut to their first seven words, and counted in `cut`. Memories stay as they are."""
    cuts = 0

    def shortened(texts: dict[str, str]) -> dict[str, str]:
        nonlocal cuts
        result = {}
        for name, text in texts.items():
            result[name], count = _cut(text, forbidden)
            cuts += count
        return result

    texts, items = shortened(part.texts), tuple(shortened(item) for item in part.items)
    return part.model_copy(update={"texts": texts, "items": items, "cut": cuts})


def _cut(text: str, forbidden: set[Run]) -> tuple[str, int]:
    count = 0
    while (span := _first_copy(text, forbidden)) is not None:
        start, end = span
        text = f"{text[:start].rstrip()} {CUT} {text[end:].lstrip()}".strip()
        count += 1
    return text, count


def _first_copy(text: str, forbidden: set[Run]) -> tuple[int, int] | None:
    """Characters to be cut of the first copied passage: all of it after its seventh word."""
    words = list(_WORD.finditer(text))
    for start in range(len(words) - LONGEST):
        end = start
        while _is_copy(words[end : end + LONGEST + 1], forbidden):
            end += 1
        if end > start:
            return words[start + LONGEST].start(), words[end + LONGEST - 1].end()
    return None


def _is_copy(words: Sequence[re.Match[str]], forbidden: set[Run]) -> bool:
    return len(words) > LONGEST and tuple(word.group().lower() for word in words) in forbidden
