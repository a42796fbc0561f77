"""Published utilities, which carry the released code's discount, in the paper's.

The released code does not discount the second path: s_released = u₁ + (s_paper − u₁) / γ, where u₁ is the first gain.
So s_paper = γ s_released + (1 − γ) u₁. Only means over queries are published and u₁ is not, but it lies between half
the released value at γ = 0, which is the first gain and the second, no larger one, and 5, the largest strength.
The other differences of the released code stay in the values: an answer without a usable path counts 1, not 0.
"""

from collections.abc import Mapping
from typing import NamedTuple

LARGEST_GAIN = 5.0


class Converted(NamedTuple):
    model: str
    patience: float
    published: float
    low: float
    high: float


def paper_interval(published: float, patience: float, at_zero: float) -> tuple[float, float]:
    """Where the mean utility by the paper's discount lies.

    Args:
        published: Mean utility as published, at `patience` (0 to 1).
        at_zero: The published curve's value at patience 0.
    """
    low, high = (patience * published + (1 - patience) * first for first in (at_zero / 2, LARGEST_GAIN))
    return low, high


def convert_curves(
    curves: Mapping[str, Mapping[str, float]], patiences: tuple[float, ...] = (0.7, 0.9)
) -> list[Converted]:
    """Each model's published curve, patience as text → mean utility, at `patiences`; one that lacks 0 is left out."""
    converted = []
    for model, curve in curves.items():
        values = {float(patience): value for patience, value in curve.items()}
        if 0.0 in values:
            for patience in patiences:
                ends = paper_interval(values[patience], patience, values[0.0])
                converted.append(Converted(model, patience, values[patience], *ends))
    return converted
