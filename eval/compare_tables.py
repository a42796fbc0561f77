"""Tables of a comparison of judges, from its rows."""

from collections.abc import Callable, Mapping, Sequence

from eval.compare import Comparison, DifferenceRow
from eval.metrics import KINDS
from eval.protocol import ALL, MEAN, METRICS
from eval.protocol_tables import BOTH
from eval.tables import LABELS, Cell, Table, count, interval, notes_of, number, p_value, signed

_FIGURES = ("first", "second", "difference", "p", "n")


def compared(found: Comparison, *, everything: bool = False) -> list[Table]:
    """Tables for each pair of judges on each split.

    With several dimensions, as in reports: averages over dimensions and raters, then QWK of the expected score by
    dimension. With one, and with `everything`, all metrics, kinds of score and raters.
    """
    averaged, single = ([row for row in found.rows if (row.rater == MEAN) == mean] for mean in (True, False))
    tables = []
    for title, rows in _grouped(averaged, _judges).items():
        tables.append(_averages(f"{title}; mean over dimensions and raters", [row for row in rows if row.step == ALL]))
        shown = [
            _by_dimension(f"{title}; {LABELS[metric]}, {kind} scores", part, found.averaged)
            for metric in METRICS
            for kind, part in _by_kind([row for row in rows if row.metric == metric])
        ]
        tables += shown if everything else shown[:1]
    if everything or not averaged:
        tables += [_by_metric(title, rows) for title, rows in _grouped(single, _of_one_rater).items()]
    return tables


def _grouped(rows: Sequence[DifferenceRow], key: Callable[[DifferenceRow], str]) -> dict[str, list[DifferenceRow]]:
    found: dict[str, list[DifferenceRow]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _judges(row: DifferenceRow) -> str:
    return f"{row.split}: {_pair(row)}"


def _of_one_rater(row: DifferenceRow) -> str:
    return f"{row.split}, {row.step} {row.dimension}, rater {row.rater}: {_pair(row)}"


def _pair(row: DifferenceRow) -> str:
    return f"{row.judge_a} ({row.run_a}) − {row.judge_b} ({row.run_b})"


def _by_kind(rows: Sequence[DifferenceRow]) -> list[tuple[str, list[DifferenceRow]]]:
    """Rows of each kind of score with its name; those of one kind alone where both show the same."""
    kinds = {kind: [row for row in rows if row.score == kind] for kind in KINDS}
    shown = [[_figures(row) for row in of_kind] for of_kind in kinds.values()]
    if shown[0] == shown[1]:
        return [(BOTH, kinds[KINDS[0]])]
    return [(LABELS[kind], of_kind) for kind, of_kind in kinds.items()]


def _averages(title: str, rows: Sequence[DifferenceRow]) -> Table:
    """One line per metric and kind of score, or for both kinds."""
    lines = tuple(
        (Cell(LABELS[metric], number=False), Cell(kind, number=False), *_figures(row))
        for metric in METRICS
        for kind, part in _by_kind([row for row in rows if row.metric == metric])
        for row in part
    )
    return Table(title, ("metric", "score", *_FIGURES), lines, notes_of(rows))


def _by_dimension(title: str, rows: Sequence[DifferenceRow], names: Mapping[tuple[str, str], str]) -> Table:
    """One line per step and dimension, of one metric and kind of score."""
    lines = tuple((Cell(names[row.step, row.dimension], number=False), *_figures(row)) for row in rows)
    return Table(title, ("dimension", *_FIGURES), lines, notes_of(rows))


def _by_metric(title: str, rows: Sequence[DifferenceRow]) -> Table:
    """One line per kind of score and metric."""
    lines = tuple(
        (*(Cell(LABELS[text], number=False) for text in (row.score, row.metric)), *_figures(row)) for row in rows
    )
    return Table(title, ("score", "metric", *_FIGURES), lines, notes_of(rows))


def _figures(row: DifferenceRow) -> tuple[Cell, ...]:
    return (
        *(Cell(number(value)) for value in (row.a, row.b)),
        Cell(signed(row.difference), interval(row.low, row.high, signed)),
        Cell(p_value(row.p)),
        Cell(count(row.n)),
    )
