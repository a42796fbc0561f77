"""Keeping raw responses out of evidence: quotations of more than seven words are cut.

A judge of evidence must not get to see the response by way of an analyst who copies it. What counts as a copy:
`inference.copies`.
"""

import re
from collections.abc import Iterator, Sequence

from inference.copies import LONGEST, Forbidden, Span, copied_passages
from inference.folding import Word, words
from inference.records import StepEvidence

CUT = "[…]"
_CUTS = re.compile(r"\[…\](?:\s*\[…\])+")


def cut_quotations(part: StepEvidence, forbidden: Forbidden) -> StepEvidence:
    """`part` with longer quotations cut to their first seven words, and counted in `cut`. Memories stay as they are."""
    texts = [_cut(text, forbidden) for row in (part.texts, *part.items) for text in row.values()]
    return _with_texts(part, iter(texts))


def cut_memory(part: StepEvidence, forbidden: Forbidden) -> StepEvidence:
    """`part` with a memory without longer quotations; of short ones it may consist."""
    memory, count = _cut(part.memory, forbidden, quotes_only=True)
    return part.model_copy(update={"memory": memory, "cut": part.cut + count})


def cut_across(
    parts: Sequence[StepEvidence], labels: Sequence[Sequence[str]], forbidden: Forbidden
) -> list[StepEvidence]:
    """`parts`, each already without longer quotations, so that none goes on through a label into the next text.

    `labels`: for each part what a judge reads before its texts, in their order. Cut and counted is a text's own word.
    """
    texts = [text for part in parts for row in (part.texts, *part.items) for text in row.values()]
    before = [label for of_part in labels for label in of_part]
    counts = [0] * len(texts)
    for joined in (False, True):
        dropped = _dropped_across(before, [words(text, joined=joined) for text in texts], forbidden)
        for at, found in enumerate(dropped):
            texts[at] = _without(texts[at], found)
            counts[at] += len(found)
    rest = iter(list(zip(texts, counts, strict=True)))
    return [_with_texts(part, rest) for part in parts]


def _dropped_across(labels: Sequence[str], texts: Sequence[Sequence[Word]], forbidden: Forbidden) -> list[list[Span]]:
    """Of each text the words to be cut: of each copy the last one that is no label's."""
    sequence: list[tuple[str, tuple[int, Span] | None]] = []
    for at, (label, said) in enumerate(zip(labels, texts, strict=True)):
        sequence += [(word.text, None) for word in words(label)]
        sequence += [(word.text, (at, (word.start, word.end))) for word in said]
    dropped: list[list[Span]] = [[] for _ in texts]
    waiting, kept = sequence[::-1], sequence[:0]
    while waiting:
        kept.append(waiting.pop())
        window = kept[-LONGEST - 1 :]
        if tuple(word for word, _ in window) not in forbidden.long:
            continue
        back, place = next(((n, place) for n, (_, place) in enumerate(reversed(window), 1) if place), (0, None))
        if place is not None:
            dropped[place[0]].append(place[1])
            # What followed the word now follows what stood before it.
            waiting += kept[:-back:-1]
            del kept[-back:]
    return [sorted(found) for found in dropped]


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


def _cut(text: str, forbidden: Forbidden, *, quotes_only: bool = False) -> tuple[str, int]:
    count = 0
    while spans := copied_passages(text, forbidden, quotes_only=quotes_only):
        text = _without(text, spans)
        count += len(spans)
    return text, count


def _without(text: str, spans: Sequence[Span]) -> str:
    """`text` without `spans`, in order; a cut beside another one shows once."""
    pieces, last = [], 0
    for start, end in spans:
        pieces.append(text[last : max(start, last)].strip())
        last = max(last, end)
    return _CUTS.sub(CUT, f" {CUT} ".join([*pieces, text[last:].strip()]).strip()) if spans else text
