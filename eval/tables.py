"""Tidy metric rows as tables for people. A table is plain data: HTML, Markdown and the terminal show the same one."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from eval.compare import DifferenceRow
from eval.metrics import KINDS
from eval.protocol import METRICS
from eval.rows import MetricRow
from inference.cost import Cost, Costs, Spread
from inference.errors import printable

LABELS = {
    **METRICS,
    "qwk_half_point": "QWK",
    "qwk_integer": "QWK",
    "rmse": "RMSE",
    "mae": "MAE",
    "value": "expected",
    "top": "top",
}
LOWER_IS_BETTER = frozenset({"rmse", "mae"})
SIMULATED = "Simulated ratings: written for demonstration, not gathered from people."
SIMULATED_BOTH = (
    "Simulated responses and ratings: made by a program for tests and comparisons, not gathered from people."
)
MISSING = "–"


@dataclass(frozen=True)
class Group:
    """What one table is about."""

    split: str
    rater: str
    step: str
    dimension: str


@dataclass(frozen=True)
class Cell:
    text: str
    interval: str = ""
    best: bool = False
    number: bool = True
    repeated: bool = False
    """Says the same as the cell above it."""


@dataclass(frozen=True)
class Table:
    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()


class Scores:
    """The metrics of one group: (judge, score kind) → metric → row."""

    def __init__(self, rows: Sequence[MetricRow]) -> None:
        self._rows: dict[tuple[str, str], dict[str, MetricRow]] = {}
        for row in rows:
            self._rows.setdefault((row.judge, row.score), {})[row.metric] = row
        self.notes = notes_of(rows)
        self.metrics = list(dict.fromkeys(row.metric for row in rows))
        self.judges = sorted(dict.fromkeys(row.judge for row in rows), key=self._rank)
        """By r of the expected value, highest first; judges without an r last."""

    def row(self, judge: str, kind: str, metric: str) -> MetricRow | None:
        return self._rows.get((judge, kind), {}).get(metric)

    def value(self, judge: str, kind: str, metric: str) -> float | None:
        row = self.row(judge, kind, metric)
        return None if row is None else row.value

    def best(self, metric: str) -> float | None:
        """Best value of all judges and kinds; None where a single judge has any."""
        values = [(judge, row[metric].value) for (judge, _), row in self._rows.items() if metric in row]
        return best_of(values, lowest=metric in LOWER_IS_BETTER)

    def _rank(self, judge: str) -> float:
        value = self.value(judge, "value", "pearson")
        return math.inf if value is None else -value


def grouped(rows: Sequence[MetricRow]) -> dict[Group, Scores]:
    """One entry per split, rater and dimension, in the order of the rows."""
    found: dict[Group, list[MetricRow]] = {}
    for row in rows:
        found.setdefault(Group(row.split, row.rater, row.step, row.dimension), []).append(row)
    return {group: Scores(members) for group, members in found.items()}


def title_of(group: Group, groups: Sequence[Group]) -> str:
    """The split, and what else tells `group` from the others."""
    parts = [group.split]
    if len({(other.step, other.dimension) for other in groups}) > 1:
        parts.append(f"{group.step} {group.dimension}")
    if len({other.rater for other in groups}) > 1:
        parts.append(f"rater {group.rater}")
    return ", ".join(parts)


def headline(title: str, scores: Scores, kinds_of_judges: Mapping[str, str], qwk: str) -> Table:
    """Judge × r, QWK, RMSE, ICC(2,1), n, coverage: expected value and top score, best per column marked.

    `qwk` is the metric shown as QWK.
    """
    rows = []
    shown = ("pearson", qwk, "rmse", "icc2_1")
    best = {metric: scores.best(metric) for metric in shown}
    for judge in scores.judges:
        for kind in KINDS:
            named = (Cell(judge, number=False), Cell(kinds_of_judges[judge], number=False))
            named = named if kind == KINDS[0] else (replace(named[0], repeated=True), replace(named[1], repeated=True))
            metrics = [metric_cell(scores.row(judge, kind, metric), best[metric]) for metric in shown]
            found = scores.row(judge, kind, "pearson")
            counts = (Cell(count(found.n)), Cell(percent(found.coverage))) if found else (Cell(MISSING), Cell(MISSING))
            rows.append((*named, Cell(LABELS[kind], number=False), *metrics, *counts))
    header = ("judge", "kind", "score", *(LABELS[metric] for metric in shown), "n", "coverage")
    return Table(title, header, tuple(rows), scores.notes)


def differences(title: str, rows: Sequence[DifferenceRow]) -> Table:
    """Judge a (the best) minus each other judge, from `DifferenceRow` of one group and one kind of score."""
    by_judge: dict[str, dict[str, DifferenceRow]] = {}
    for row in rows:
        by_judge.setdefault(row.judge_b, {})[row.metric] = row
    lines = []
    for judge, found in by_judge.items():
        cells = [Cell(judge, number=False)]
        for row in found.values():
            cells += [Cell(signed(row.difference), interval(row.low, row.high, signed)), Cell(p_value(row.p))]
        lines.append((*cells, Cell(count(next(iter(found.values())).n))))
    metrics = dict.fromkeys(row.metric for row in rows)
    header = tuple(text for metric in metrics for text in (f"Δ {LABELS[metric]}", "p"))
    return Table(title, ("minus", *header, "n"), tuple(lines), notes_of(rows))


def bias(title: str, scores: Scores, length_of_ratings: float | None) -> Table:
    """Mean difference, ratio of standard deviations, correlation with length, and mass off the scale."""
    rows = []
    for judge in scores.judges:
        mean = scores.row(judge, "value", "bias_pred_minus_target")
        length = scores.row(judge, "value", "length_pearson")
        spread, human = (scores.value(judge, "value", metric) for metric in ("sd_pred", "sd_target"))
        ratio = spread / human if spread is not None and human else None
        rows.append(
            (
                Cell(judge, number=False),
                metric_cell(mean, None, signed),
                Cell(number(ratio)),
                metric_cell(length, None, signed),
                Cell(number(scores.value(judge, "value", "off_grid_mean"))),
            )
        )
    if length_of_ratings is not None:
        rows.append(
            (
                Cell("human ratings", number=False),
                Cell(MISSING),
                Cell(number(1.0)),
                Cell(signed(length_of_ratings)),
                Cell(MISSING),
            )
        )
    header = ("judge", "mean judge − human", "SD judge / SD human", "r with length", "mass off the scale")
    return Table(title, header, tuple(rows), scores.notes)


ALL_JUDGES = "all judges"
"""Row of the total; no judge has a blank in its id."""


def costs(found: Costs) -> Table:
    """Calls, tokens, time and money of each judge that was asked; with several judges of all together, too."""
    rows = [cost_cells(judge, cost) for judge, cost in found.judges.items()]
    if len(rows) > 1:
        rows.append(cost_cells(ALL_JUDGES, found.total))
    header = (
        *("judge", "method", "calls", "calls per response", "prompt tokens", "of these cached", "answer tokens"),
        *("of these reasoning", "k tokens, p50 / p95", "seconds, p50 / p95"),
        *("calls per second", "cost"),
    )
    return Table("", header, tuple(rows))


def cost_cells(name: str, cost: Cost) -> tuple[Cell, ...]:
    calls, seconds = cost.calls_per_response, cost.seconds
    tokens = (
        count(cost.prompt),
        percent(cost.cached / cost.prompt) if cost.prompt else MISSING,
        *(count(value) for value in (cost.completion, cost.reasoning)),
        spread(cost.tokens_per_response, 1000),
    )
    return (
        Cell(name, number=False),
        Cell(cost.method or MISSING, number=False),
        Cell(count(cost.calls)),
        Cell(MISSING if calls is None else f"{calls:,.1f}"),
        *(Cell(MISSING if cost.uncounted else text) for text in tokens),
        Cell(spread(cost.seconds_per_response)),
        Cell(f"{cost.calls / seconds:,.1f}" if seconds else MISSING),
        Cell(MISSING if cost.money is None else f"{cost.money:,.4f}"),
    )


def spread(found: Spread | None, unit: float = 1.0) -> str:
    """``1.20 / 3.45``: median and 95th percentile in `unit`."""
    return MISSING if found is None else f"{found.p50 / unit:,.2f} / {found.p95 / unit:,.2f}"


def all_metrics(title: str, scores: Scores, kind: str) -> Table:
    """Every metric × judge for one kind of score."""
    rows = tuple(
        (Cell(metric, number=False), *(metric_cell(scores.row(judge, kind, metric), None) for judge in scores.judges))
        for metric in scores.metrics
    )
    return Table(f"{title}, {LABELS[kind]} scores", ("metric", *scores.judges), rows, scores.notes)


def as_text(table: Table, *, intervals: bool = False) -> str:
    """Aligned columns for a terminal; ``*`` marks the best of a column."""

    def shown(cell: Cell) -> str:
        ends = f" ({cell.interval})" if intervals and cell.interval else ""
        return f"{cell.text}{ends}{'*' if cell.best else ' '}"

    lines = [[f"{name} " for name in table.header], *([shown(cell) for cell in row] for row in table.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(table.header))]
    numeric = [cell.number for cell in table.rows[0]] if table.rows else [False] * len(widths)
    return "\n".join(
        " ".join(
            printable(cell).rjust(width) if right else printable(cell).ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def number(value: float | None) -> str:
    """Three decimals with a true minus sign."""
    return MISSING if value is None else f"{value:.3f}".replace("-", "−")


def signed(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.3f}".replace("-", "−")


def interval(low: float | None, high: float | None, shown: Callable[[float | None], str] = number) -> str:
    """``0.808 to 0.832``; empty where there is none."""
    return "" if low is None or high is None else f"{shown(low)} to {shown(high)}"


def p_value(value: float | None) -> str:
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def count(value: int) -> str:
    return f"{value:,}"


def percent(share: float) -> str:
    """Full coverage is only written where nothing is missing: rounded down to a tenth of a percent."""
    return f"{math.floor(share * 1000) / 10:.1f} %"


def best_of(values: Iterable[tuple[str, float | None]], *, lowest: bool = False) -> float | None:
    """The best of (judge, value); None where fewer than two judges have a value: one alone is not the best."""
    defined = [(judge, value) for judge, value in values if value is not None]
    if len({judge for judge, _ in defined}) < 2:
        return None
    return (min if lowest else max)(value for _, value in defined)


def metric_cell(row: MetricRow | None, best: float | None, shown: Callable[[float | None], str] = number) -> Cell:
    if row is None or row.value is None:
        return Cell(MISSING)
    # What looks the same is the same for the reader.
    is_best = best is not None and shown(row.value) == shown(best)
    return Cell(shown(row.value), interval(row.low, row.high, shown), best=is_best)


def simulated_note(benchmark: str) -> str:
    """What stands at every table of simulated data."""
    return SIMULATED if benchmark == "aut" else SIMULATED_BOTH


def notes_of(rows: Iterable[MetricRow | DifferenceRow]) -> tuple[str, ...]:
    """Notes of a table of these rows: that they are simulated, where they are."""
    return tuple(dict.fromkeys(simulated_note(row.benchmark) for row in rows if row.simulated))
