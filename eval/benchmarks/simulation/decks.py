"""Seeded chance that gives the same draws on every machine."""

import random
import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Generic, TypeVar

T = TypeVar("T")
CHOICE = 12
"""Cards among which the best one is looked for."""


class Deck(Generic[T]):
    """Deals its cards in a random order, each once before any comes again."""

    def __init__(self, rng: random.Random, cards: Sequence[T]) -> None:
        self._rng, self._cards = rng, list(cards)
        self._waiting: list[T] = []

    def draw(self, *wishes: Callable[[T], bool], merit: Callable[[T], float] | None = None) -> T:
        """The next card that fits the first of `wishes`, or else the next one, and so on; without wishes the next card.

        With `merit` it is the best of the next few that fit. New cards are only put in when none that waits fits the
        last wish. Raises ValueError where no card does.
        """
        for _ in range(2):
            for fits in wishes or (lambda _: True,):
                fitting = [position for position, card in enumerate(self._waiting) if fits(card)][
                    : CHOICE if merit else 1
                ]
                if fitting:
                    best = max(fitting, key=lambda position: merit(self._waiting[position])) if merit else fitting[0]
                    return self._waiting.pop(best)
            fresh = self._cards.copy()
            self._rng.shuffle(fresh)
            self._waiting += fresh
        raise ValueError("no card of the deck fits")

    def take(self, card: T) -> None:
        """Remove `card` where it waits, as if it had been dealt."""
        if card in self._waiting:
            self._waiting.remove(card)


def generator(*names: object) -> random.Random:
    """A generator of its own for each sequence of names; seeded by SHA-512 of their text, as `random` does."""
    return random.Random("/".join(str(name) for name in names))


def normal(rng: random.Random) -> float:
    """A standard normal number to a good approximation: twelve uniform ones added, which rounds alike everywhere."""
    return sum(rng.random() for _ in range(12)) - 6.0


def chance(rng: random.Random, probability: float) -> bool:
    return rng.random() < probability


def kinship(text: str, other: str) -> float:
    """How much two texts speak of the same things: stems of longer words that both have."""
    return float(len(_stems(text) & _stems(other)))


@cache
def _stems(text: str) -> frozenset[str]:
    return frozenset(word[:5] for word in re.findall(r"[a-z]{4,}", text.lower()) if word not in _COMMON)


_COMMON = {"that", "with", "from", "this", "they", "their", "them", "will", "would", "could", "might", "have", "when"}
