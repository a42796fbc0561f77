"""Keeping raw responses out of evidence: quotations of more than seven words are cut.

A judge of evidence must not get to see the response by way of an analyst who copies it. Words are compared without case
and punctuation; a Chinese, Japanese or Korean character counts as a word.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

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
        found -= _runs_of_common(text)
    return found


@lru_cache(maxsize=64)
def _runs_of_common(text: str) -> frozenset[Run]:
    # The rubric is the same for every response, the scenario for many.
    return frozenset(runs(text))


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


def cut_across(
    parts: Sequence[StepEvidence], labels: Sequence[Sequence[str]], forbidden: set[Run]
) -> list[StepEvidence]:
    """`parts`, each already without longer quotations, so that none goes on through a label into the next text.

    `labels`: for each part what a judge reads before its texts, in their order. Cut and counted is a text's own word.
    """
    texts = [text for part in parts for row in (part.texts, *part.items) for text in row.values()]
    before = [label for of_part in labels for label in of_part]
    cuts = [0] * len(texts)
    while (place := _last_word_of_copy(before, texts, forbidden)) is not None:
        at, (start, end) = place
        texts[at] = _joined(texts[at][:start], texts[at][end:])
        cuts[at] += 1
    rest = iter(zip(texts, cuts, strict=True))
    return [_with_texts(part, rest) for part in parts]


def _last_word_of_copy(
    labels: Sequence[str], texts: Sequence[str], forbidden: set[Run]
) -> tuple[int, tuple[int, int]] | None:
    """Of the first copy: the text that holds the last word of it that is no label's, and the characters of the word."""
    words: list[tuple[str, tuple[int, tuple[int, int]] | None]] = []
    for at, (label, text) in enumerate(zip(labels, texts, strict=True)):
        words += [(word.group().lower(), None) for word in _WORD.finditer(label)]
        words += [(word.group().lower(), (at, word.span())) for word in _WORD.finditer(text)]
    for start in range(len(words) - LONGEST):
        window = words[start : start + LONGEST + 1]
        if tuple(word for word, _ in window) in forbidden:
            own = [place for _, place in window if place is not None]
            if own:
                return own[-1]
    return None


def _with_texts(part: StepEvidence, rest: Iterator[tuple[str, int]]) -> StepEvidence:
    cuts = part.cut

    def taken(row: dict[str, str]) -> dict[str, str]:
        nonlocal cuts
        result = {}
        for name in row:
            result[name], count = next(rest)
            cuts += count
        return result

    texts, items = taken(part.texts), tuple(taken(item) for item in part.items)
    return part.model_copy(update={"texts": texts, "items": items, "cut": cuts})


def _cut(text: str, forbidden: set[Run]) -> tuple[str, int]:
    count = 0
    while (span := _first_copy(text, forbidden)) is not None:
        start, end = span
        text = _joined(text[:start], text[end:])
        count += 1
    return text, count


def _joined(before: str, after: str) -> str:
    """The ends of a text whose middle is cut out; a cut beside an earlier one shows once."""
    return f"{before.rstrip().removesuffix(CUT).rstrip()} {CUT} {after.lstrip().removeprefix(CUT).lstrip()}".strip()


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
