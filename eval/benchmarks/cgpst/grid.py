"""The grid of Step-5: every criterion ranks all solutions, and each row adds up to its total.

``Solution | Criterion 1 | … | Total``, one line per solution, cells between pipes. Markdown's outer pipes, rules and
stars are tolerated, a missing heading or column of totals too.
"""

import re
from collections import Counter
from dataclasses import dataclass

from inference.errors import named

BEST = 5
"""Score of a grid without an error; each error takes one off, down to `WORST`."""
WORST = 1
_NUMBER = re.compile(r"-?\d{1,6}(?![\d.,]*\d)")
_TOTAL = re.compile(r"\b(total|sum)\b", re.IGNORECASE)


@dataclass(frozen=True)
class GridRow:
    """One solution."""

    name: str
    """As the grid calls it: its number."""
    ranks: tuple[int | None, ...]
    """One per criterion; None where there is no whole number."""
    total: int | None


@dataclass(frozen=True)
class Grid:
    rows: tuple[GridRow, ...]
    criteria: int
    has_totals: bool

    def column(self, criterion: int) -> tuple[int | None, ...]:
        """All ranks by a criterion, counted from 1."""
        return tuple(row.ranks[criterion - 1] for row in self.rows)


def read_grid(text: str) -> Grid | None:
    """The first grid in a response; None where there is none."""
    heading: list[str] | None = None
    rows: list[list[str]] = []
    for line in text.splitlines():
        cells = _cells(line)
        if len(cells) < 3:
            if rows:
                break
        elif _is_row(cells):
            rows.append(cells)
        elif not rows and not all(set(cell) <= set("-: ") for cell in cells):
            heading = cells
    if not rows:
        return None
    # Without a heading the last column is taken for the totals, as the task asks for them.
    has_totals = heading is None or bool(_TOTAL.search(heading[-1]))
    width = len(heading) if heading else Counter(map(len, rows)).most_common(1)[0][0]
    criteria = max(1, width - 1 - has_totals)
    return Grid(tuple(_row(cells, criteria, has_totals=has_totals) for cells in rows), criteria, has_totals)


def _cells(line: str) -> list[str]:
    line = line.strip()
    if "|" not in line:
        return []
    return [cell.strip(" \t*_`") for cell in line.removeprefix("|").removesuffix("|").split("|")]


def _is_row(cells: list[str]) -> bool:
    numbers = sum(bool(_NUMBER.match(cell)) for cell in cells[1:])
    sums = _TOTAL.search(cells[0]) and not any(character.isdigit() for character in cells[0])
    return 2 * numbers >= len(cells) - 1 and not sums


def _row(cells: list[str], criteria: int, *, has_totals: bool) -> GridRow:
    name = re.search(r"\d+", cells[0])
    numbers = [_whole(cell) for cell in cells[1:]]
    numbers += [None] * (criteria + has_totals - len(numbers))
    return GridRow(
        name.group() if name else cells[0], tuple(numbers[:criteria]), numbers[criteria] if has_totals else None
    )


def _whole(cell: str) -> int | None:
    match = _NUMBER.match(cell)
    return int(match.group()) if match else None


def faulty_criteria(grid: Grid) -> list[int]:
    """Criteria, counted from 1, whose ranks are not each number from 1 to the number of solutions once."""
    wanted = list(range(1, len(grid.rows) + 1))
    columns = {number: grid.column(number) for number in range(1, grid.criteria + 1)}
    return [number for number, ranks in columns.items() if sorted(rank or 0 for rank in ranks) != wanted]


def faulty_totals(grid: Grid) -> list[GridRow]:
    """Rows whose total is not the sum of their ranks, or missing."""
    return [row for row in grid.rows if row.total != sum(rank or 0 for rank in row.ranks)]


def grid_errors(grid: Grid) -> list[str]:
    """One sentence for each error: a column that is no permutation, a total that is wrong."""
    count = len(grid.rows)
    columns = [f"criterion {number} does not hold each rank from 1 to {count} once" for number in faulty_criteria(grid)]
    totals = [
        f"the total of solution {named(row.name, 20)} is {'missing' if row.total is None else row.total}, "
        f"its ranks add up to {sum(rank or 0 for rank in row.ranks)}"
        for row in faulty_totals(grid)
    ]
    return columns + totals


def rule_score(errors: int) -> int:
    """Correctly Used by the rubric's rule: 5 without an error, one less for each, 1 at the least."""
    return max(WORST, BEST - errors)
