"""The released distances and utility (Q28 to Q32)."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from eval.create.distance import Array
from eval.create.utility import discounts

EMPTY = 1.0
"""Utility of an answer without a usable path (Q30)."""
Floats = npt.NDArray[np.floating]


def transform(x: Floats) -> Floats:
    """Cosine distances of any shape → distances: 1 only from 0.7 to 1; above 1 the ramp goes on and wraps (Q28)."""
    ramp = (1 - np.cos(np.pi * (x / 0.7) ** 2)) / 2
    return np.where((x > 0.7) & (x <= 1), np.ones_like(x), ramp)


def cosine_distances(vectors: Floats) -> npt.NDArray[np.float32]:
    """(n, n), 0 to 2, zero on the diagonal, in single precision."""
    exact = np.asarray(vectors, dtype=np.float32)
    unit = exact / np.maximum(np.linalg.norm(exact, axis=1, keepdims=True), np.float32(1e-12))
    distances = np.clip(1 - unit @ unit.T, 0, 2)
    np.fill_diagonal(distances, 0)
    return np.asarray(distances, dtype=np.float32)


def path_distances(vectors: Floats) -> Array:
    """(n, n) of distances, computed in single precision, one on the diagonal."""
    distances = transform(cosine_distances(vectors)).astype(np.float64)
    np.fill_diagonal(distances, 1.0)
    return np.asarray(distances)


def utility(gains: Sequence[float], patience: float) -> float:
    """Σ of discounted gains, 1 where there is none."""
    return cumulative(gains, patience)[-1] if gains else EMPTY


def cumulative(gains: Sequence[float], patience: float) -> list[float]:
    """Utility after each path of the greedy order; the second one is not discounted (Q29)."""
    exponents = discounts(max(len(gains) - 1, 0), patience)
    discounted = np.asarray(gains, dtype=np.float64) * np.append(1.0, exponents)[: len(gains)]
    return [float(value) for value in np.cumsum(discounted)]


def mean_distance(distances: Array) -> float | None:
    """Mean over pairs of paths; None for fewer than two, where the released code has NaN (Q32)."""
    pairs = distances[np.triu_indices(len(distances), k=1)]
    return float(pairs.mean()) if len(pairs) else None
