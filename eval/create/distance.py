"""How different two paths are: 1 − cosine of their strings' vectors, stretched so that 0.7 is as far as it gets."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
SATURATION = 0.7
"""Cosine distance from which two paths count as fully different."""


def ramp(x: Array) -> Array:
    """(1 − cos(π (x / 0.7)²)) / 2: 0 at 0, rising to 1 at 0.7; meaningful up to there only."""
    return np.asarray((1 - np.cos(np.pi * (x / SATURATION) ** 2)) / 2)


def transform(x: Array) -> Array:
    """Cosine distances of any shape, 0 to 2 → distances 0 to 1: `ramp` up to 0.7, 1 above it."""
    return ramp(np.clip(x, 0.0, SATURATION))


def cosine_distances(vectors: npt.NDArray[np.floating]) -> Array:
    """(n, n) of 1 − cosine, 0 to 2, zero on the diagonal, from the rows of `vectors` (n, dimensions), of any length.

    A row of zeros is at distance 1 from all others.
    """
    exact = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    unit = exact / np.where(lengths > 0, lengths, 1.0)
    distances = np.clip(1.0 - unit @ unit.T, 0.0, 2.0)
    np.fill_diagonal(distances, 0.0)
    return np.asarray(distances)


def path_distances(vectors: npt.NDArray[np.floating]) -> Array:
    """(n, n) of distances 0 to 1, zero on the diagonal."""
    return transform(cosine_distances(vectors))
