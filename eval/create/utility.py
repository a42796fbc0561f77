"""Creative utility: many strong paths that differ, discounted by how many the reader has seen before.

s(U) = Σ γ^(i−1) f(uᵢ) min over j < i of d(uᵢ, uⱼ), i from 1, over the greedy order; the first path has d = 1.
The patience γ is 0 to 1; f is a path's strength, d the distance of two paths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
import numpy.typing as npt

from eval.create.distance import Array
from inference.errors import UserError

LARGEST_OPTIMUM = 8
"""Paths for which all orders are tried: 40,320 of them."""


@dataclass(frozen=True)
class Greedy:
    """Paths in the order in which each adds the most to those before it."""

    order: tuple[int, ...]
    gains: tuple[float, ...]
    """f × smallest distance to those before, never increasing."""
    nearest: tuple[float, ...]
    """Smallest distance to those before; 1 for the first."""


def greedy(strengths: Sequence[float] | Array, distances: Array) -> Greedy:
    """At each step the path with the largest gain, the lowest index among equals. O(n²): minima are kept.

    Args:
        strengths: (n,), 0 or more.
        distances: (n, n), 0 to 1, used as given; the diagonal is not read.
    """
    strength = np.array(strengths, dtype=np.float64)
    nearest = np.ones(len(strength))
    gain = np.empty(len(strength))
    order: list[int] = []
    gains: list[float] = []
    closest: list[float] = []
    for _ in range(len(strength)):
        best = int(np.multiply(strength, nearest, out=gain).argmax())
        order.append(best)
        gains.append(float(gain[best]))
        closest.append(float(nearest[best]))
        # Below every gain from now on, since no distance is negative.
        strength[best], nearest[best] = 1.0, -1.0
        np.minimum(nearest, distances[best], out=nearest)
    return Greedy(tuple(order), tuple(gains), tuple(closest))


def utility(gains: Sequence[float] | Array, patience: float) -> float:
    """Σ γ^(i−1) gainᵢ; 0 where there is none."""
    values = np.asarray(gains, dtype=np.float64)
    return float(values @ discounts(len(values), patience))


def discounts(n: int, patience: float) -> Array:
    """(n,): 1, γ, γ², …"""
    return np.asarray(float(patience) ** np.arange(n))


def optimum(strengths: Sequence[float], distances: Array, patience: float) -> float:
    """The largest utility of any order, which the greedy one may miss: a diagnostic, for 8 paths at most.

    Raises UserError for more.
    """
    n = len(strengths)
    if n > LARGEST_OPTIMUM:
        raise UserError(f"the best order of {n} paths is not searched for; give {LARGEST_OPTIMUM} paths at most")
    if not n:
        return 0.0
    orders: npt.NDArray[np.intp] = np.array(list(permutations(range(n))), dtype=np.intp)
    strength = np.asarray(strengths, dtype=np.float64)
    total = strength[orders[:, 0]].copy()
    for place in range(1, n):
        nearest = distances[orders[:, place, None], orders[:, :place]].min(axis=1)
        total += float(patience) ** place * strength[orders[:, place]] * nearest
    return float(total.max())
