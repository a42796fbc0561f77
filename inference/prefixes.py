"""Sequences that others begin with need no computation of their own: a causal model is read inside the longer ones."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

S = TypeVar("S", list[int], str)


class Shared(NamedTuple):
    """Which sequences are computed, and where each of those asked for is read."""

    kept: list[int]
    """Indices of the sequences to compute, ascending."""
    places: list[tuple[int, int]]
    """Of each sequence (position in `kept`, index of its own last element)."""


def share_prefixes(sequences: Sequence[S]) -> Shared:
    """Leave out every sequence that another one begins with; of equal ones the last is kept.

    Exact for causal models: what follows a position does not change it.
    """
    # In this order, whatever begins with a sequence stands right behind it.
    order = sorted(range(len(sequences)), key=lambda index: (sequences[index], index))
    hosts: dict[int, int] = {}
    host: int | None = None
    for index in reversed(order):
        if host is None or sequences[host][: len(sequences[index])] != sequences[index]:
            host = index
        hosts[index] = host
    kept = sorted(set(hosts.values()))
    number = {index: position for position, index in enumerate(kept)}
    return Shared(kept, [(number[hosts[index]], len(one) - 1) for index, one in enumerate(sequences)])
