"""Near duplicates among texts: the share of word shingles that two texts have in common (Jaccard similarity)."""

import re
from collections import Counter
from collections.abc import Sequence

WORDS = 5
"""Words of a shingle."""
_WORD = re.compile(r"\w+")


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    """All runs of five words, lower case; a shorter text is one run."""
    words = _WORD.findall(text.lower())
    return frozenset(tuple(words[start : start + WORDS]) for start in range(max(1, len(words) - WORDS + 1)))


def near_duplicates(texts: Sequence[str], similarity: float) -> dict[int, int]:
    """Index of each text that is at least as similar to an earlier kept one → index of that one.

    Similarity is |A ∩ B| / |A ∪ B| of their shingles. Only texts that share a shingle are compared.
    """
    found: dict[int, int] = {}
    having: dict[tuple[str, ...], list[int]] = {}
    sizes: dict[int, int] = {}
    for index, text in enumerate(texts):
        own = shingles(text)
        shared = Counter(other for shingle in own for other in having.get(shingle, ()))
        for other, common in shared.most_common():
            if common >= similarity * (len(own) + sizes[other] - common):
                found[index] = other
                break
        else:
            sizes[index] = len(own)
            for shingle in own:
                having.setdefault(shingle, []).append(index)
    return found
