"""Wide tables for narrow terminals: columns that do not fit go into another table with the same first column."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from inference.errors import printable

LABEL, HEADER = 24, 12
"""Most characters in a line of the first column, and of a column's name; longer ones go on in the next line."""
_EDGES = 3
"""Characters of a column that are no text."""
_PIECES = re.compile(r"[^\s_-]*[_-]|[^\s_-]+\s*|\s+")


@dataclass(frozen=True)
class Column:
    name: str
    """Broken at blanks, hyphens and underscores."""
    cells: Sequence[str]
    """One per row of the table; may have several lines, which are never broken."""

    @property
    def width(self) -> int:
        longest = max((cell_len(piece.rstrip()) for piece in _PIECES.findall(self.name)), default=0)
        return max(min(longest, HEADER), *map(_width, self.cells), 1)

    @property
    def header(self) -> str:
        lines = [""]
        for piece in _PIECES.findall(self.name):
            if lines[-1] and cell_len(lines[-1] + piece.rstrip()) > self.width:
                lines.append("")
            lines[-1] += piece
        return "\n".join(line.strip() for line in lines)


def side_by_side(title: str, labels: Column, columns: Sequence[Column], width: int) -> Iterator[RenderableType]:
    """A title and one table, or as many as it takes for each to fit into `width` characters, one column at least."""
    yield Text(title, style="italic")
    label = min(labels.width, LABEL)
    block: list[Column] = []
    for column in columns:
        if block and sum(one.width + _EDGES for one in (*block, column)) + label + _EDGES + 1 > width:
            yield _table(labels, label, block)
            block = []
        block.append(column)
    yield _table(labels, label, block)


def _table(labels: Column, label: int, columns: Sequence[Column]) -> Table:
    table = Table()
    table.add_column(shown_text(labels.name), width=label, overflow="fold")
    for column in columns:
        table.add_column(shown_text(column.header), width=column.width, justify="right", overflow="fold")
    for cells in zip(labels.cells, *(column.cells for column in columns), strict=True):
        table.add_row(*map(shown_text, cells))
    return table


def _width(text: str) -> int:
    return max(map(cell_len, text.split("\n")))


def shown_text(cell: str) -> Text:
    """`cell` without markup: brackets in it are brackets."""
    return Text(printable(cell))
