"""Which passages of a text are copied from a response.

Words are compared as `inference.folding` reads them. No text whose passages are cut holds eight words of a response in
a row, unless scenario or rubric have them too. Two more rules make ways around it costly: a passage whose words are run
together, or taken apart, is found by its letters, and in a text that is copied in short passages for the most part all
but the first one are found.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby

from inference.folding import Word, readings, words

LONGEST = 7
"""Words of a response in a row that evidence may hold."""
LETTERS, BESIDE = 40, 20
"""Letters in a row that are a copy where their words are not those of the response but for so many letters beside."""
SHORT_RUN, LONG_TEXT = 5, 20
"""Words of a run, and of a text, from which on the share of such runs in it is limited to one half."""

Run = tuple[str, ...]
Span = tuple[int, int]


@dataclass(frozen=True)
class Forbidden:
    """Passages of responses, and of no text that evidence may repeat."""

    long: frozenset[Run]
    """Runs of eight words."""
    short: frozenset[Run]
    """Runs of five."""
    letters: frozenset[str]
    """Runs of forty letters and digits."""
    plain: str = ""
    """All words, with blanks around them."""


def runs(text: str, length: int = LONGEST + 1) -> set[Run]:
    """All runs of `length` words of a text, folded."""
    return _runs(words(text), length)


def _runs(said: Sequence[Word], length: int) -> set[Run]:
    plain = [word.text for word in said]
    return {tuple(plain[start : start + length]) for start in range(len(plain) - length + 1)}


def forbidden_runs(raw: Iterable[str], allowed: Iterable[str]) -> Forbidden:
    """What the raw responses hold and none of the `allowed` texts (scenario, rubric) does."""
    own, free = [_passages(text) for text in raw], [_common(text) for text in allowed]
    return Forbidden(
        long=frozenset[Run]().union(*(part.long for part in own)).difference(*(part.long for part in free)),
        short=frozenset[Run]().union(*(part.short for part in own)).difference(*(part.short for part in free)),
        letters=frozenset[str]().union(*(part.letters for part in own)).difference(*(part.letters for part in free)),
        plain="\n".join(part.plain for part in own),
    )


def _passages(text: str) -> Forbidden:
    found = readings(text)
    letters = "".join(word.text for word in found[0])
    return Forbidden(
        long=frozenset[Run]().union(*(_runs(said, LONGEST + 1) for said in found)),
        short=frozenset[Run]().union(*(_runs(said, SHORT_RUN) for said in found)),
        letters=frozenset(letters[at : at + LETTERS] for at in range(len(letters) - LETTERS + 1)),
        plain="\n".join(f" {' '.join(word.text for word in said)} " for said in found),
    )


# The rubric is the same for every response, the scenario for many.
_common = lru_cache(maxsize=64)(_passages)


def copied_passages(text: str, forbidden: Forbidden, *, quotes_only: bool = False) -> list[Span]:
    """Characters to be cut, in order. What is left may hold more: ask again until there is nothing.

    With `quotes_only` the text may consist of short quotations.
    """
    found = readings(text)
    if not quotes_only and (spans := _patchwork(found[0], forbidden)):
        return spans
    return next(filter(None, (_copies(said, forbidden) for said in found)), []) or _glued(found[0], forbidden)


def _copies(said: Sequence[Word], forbidden: Forbidden) -> list[Span]:
    """Of each copied passage all after its seventh word; what is kept holds no run of eight words in one pass."""
    kept: list[str] = []
    passage: list[str] = []  # the latest words of the passage that is being cut
    spans: list[Span] = []
    for word in said:
        goes_on = (*passage[-LONGEST:], word.text) in forbidden.long
        if goes_on:
            passage.append(word.text)
            spans[-1] = (spans[-1][0], word.end)
        elif (*kept[-LONGEST:], word.text) in forbidden.long:
            passage = [*kept[-LONGEST:], word.text]
            spans.append((word.start, word.end))
        else:
            passage = []
            kept.append(word.text)
    return spans


def _patchwork(said: Sequence[Word], forbidden: Forbidden) -> list[Span]:
    """Where more than half of a long text is copied in runs of five words or more: all of them but the first."""
    copied = [False] * len(said)
    for start in range(len(said) - SHORT_RUN + 1 if len(said) >= LONG_TEXT else 0):
        if tuple(word.text for word in said[start : start + SHORT_RUN]) in forbidden.short:
            copied[start : start + SHORT_RUN] = [True] * SHORT_RUN
    if 2 * sum(copied) <= len(said):
        return []
    passages = [list(places) for is_copy, places in groupby(range(len(said)), copied.__getitem__) if is_copy]
    passages[0] = passages[0][LONGEST:]
    return [(said[places[0]].start, said[places[-1]].end) for places in passages if places]


def _glued(said: Sequence[Word], forbidden: Forbidden) -> list[Span]:
    """The words with forty copied letters in a row, except where they are words of the response in a row."""
    letters = "".join(word.text for word in said)
    owner = [number for number, word in enumerate(said) for _ in word.text]
    spans, at = [], 0
    while at + LETTERS <= len(letters):
        end = at + LETTERS
        while letters[end - LETTERS : end] in forbidden.letters and end <= len(letters):
            end += 1
        end -= 1
        if end < at + LETTERS:
            at += 1
            continue
        if not _quoted([said[n] for n in _inside(owner, at, end)], end - at, forbidden):
            spans.append((said[owner[at]].start, said[owner[end - 1]].end))
        at = end - LETTERS + 2
    return spans


def _inside(owner: Sequence[int], at: int, end: int) -> range:
    """The words of which all letters lie between `at` and `end`."""
    first = owner[at] + (at > 0 and owner[at - 1] == owner[at])
    return range(first, owner[end - 1] + (end == len(owner) or owner[end] != owner[end - 1]))


def _quoted(inside: Sequence[Word], length: int, forbidden: Forbidden) -> bool:
    """Whether words, `length` letters with parts of the words beside them, are an open quotation.

    The letters next to a quotation may happen to be those of the response, too.
    """
    for first in range(min(3, len(inside))):
        for last in range(len(inside), max(first, len(inside) - 3), -1):
            said = [word.text for word in inside[first:last]]
            if length - sum(map(len, said)) <= BESIDE and f" {' '.join(said)} " in forbidden.plain:
                return all(len(word) < LETTERS for word in said)
    return False
