"""Seeded chance that gives the same draws on every machine."""

import random
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")


class Deck(Generic[T]):
    """Deals its cards in a random order, each once before any comes again."""

    def __init__(self, rng: random.Random, cards: Sequence[T]) -> None:
        self._rng, self._cards = rng, list(cards)
        self._waiting: list[T] = []

    def draw(self, *wishes: Callable[[T], bool]) -> T:
        """The next card that fits the first of `wishes`, or else the next one, and so on; without wishes the next card.

        New cards are only put in when none that waits fits the last wish. Raises ValueError where no card does.
        """
        for _ in range(2):
            for fits in wishes or (lambda _: True,):
                for position, card in enumerate(self._waiting):
                    if fits(card):
                        return self._waiting.pop(position)
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
