"""How a judge's scores lie against the human ratings, counted on a grid: the data of a calibration picture."""

import math
from dataclasses import dataclass

import numpy as np

from eval.agreement import Array, to_labels
from inference.rubric import Dimension

MOST_BINS = 17
CELL = 20.0
"""Side of a cell in units of the drawing."""
MARGIN = 34.0
"""Room for the labels at the left and below."""


@dataclass(frozen=True)
class HeatCell:
    x: float
    y: float
    opacity: float
    label: str


@dataclass(frozen=True)
class Tick:
    position: float
    """Along the human axis; the judge's axis mirrors it."""
    label: str


@dataclass(frozen=True)
class Heatmap:
    """A square drawing, `side` units wide; the origin is at the top left, human scores go right, the judge's up."""

    judge: str
    side: float
    cells: tuple[HeatCell, ...]
    means: tuple[tuple[float, float], ...]
    """For each human score the mean of the judge's, where at least `fewest` responses have it."""
    ticks: tuple[Tick, ...]
    n: int
    cell: float = CELL
    margin: float = MARGIN


def bin_width(dimension: Dimension) -> float:
    """Half points on short fractional scales, otherwise whole ones, wider where they would be more than `MOST_BINS`."""
    span = dimension.range[1] - dimension.range[0]
    if dimension.fractional and 2 * span + 1 <= MOST_BINS:
        return 0.5
    return float(math.ceil((span + 1) / MOST_BINS))


def heatmap(judge: str, human: Array, scores: Array, dimension: Dimension, fewest: int = 5) -> Heatmap:
    """Counts of (human, judge) on the grid of `bin_width`; opacity is the root of the share of the fullest cell.

    Args:
        human, scores: (n,) on the dimension's scale.
        fewest: responses with the same human score below which no mean is drawn.
    """
    low, high = dimension.range
    width = bin_width(dimension)
    bins = math.floor((high - low) / width) + 1
    columns, rows = (
        (to_labels(part - low, width, (0, high - low))).astype(int).clip(0, bins - 1) for part in (human, scores)
    )
    counts = np.zeros((bins, bins), dtype=int)
    np.add.at(counts, (columns, rows), 1)
    means = [
        (_at(column), CELL * bins - CELL * (float(scores[columns == column].mean() - low) / width + 0.5))
        for column in range(bins)
        if counts[column].sum() >= fewest
    ]
    fullest = counts.max(initial=1)
    cells = [
        HeatCell(
            x=MARGIN + CELL * column,
            y=CELL * (bins - 1 - row),
            opacity=round(math.sqrt(counts[column, row] / fullest), 3),
            label=f"human {low + width * column:g}, judge {low + width * row:g}: {counts[column, row]}",
        )
        for column in range(bins)
        for row in range(bins)
        if counts[column, row]
    ]
    ticks = tuple(Tick(_at(step), f"{low + width * step:g}") for step in range(bins) if (width * step).is_integer())
    rounded = tuple((x, round(y, 2)) for x, y in means)
    return Heatmap(judge, MARGIN + CELL * bins, tuple(cells), rounded, ticks, len(human))


def _at(step: int) -> float:
    return MARGIN + CELL * (step + 0.5)
