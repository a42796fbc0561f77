"""Tables and sentences of the protocol's averages over dimensions, from its tidy rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.metrics import KINDS, Kind
from eval.protocol import ALL, HUMAN, MEAN, MEAN_OF_JUDGES, METRICS, title
from eval.rows import MetricRow
from eval.significance import QWK, Significance
from eval.tables import (
    LABELS,
    MISSING,
    Cell,
    Table,
    count,
    interval,
    metric_cell,
    notes_of,
    number,
    p_value,
    percent,
    signed,
)
from inference.rubric import Rubric

Key = tuple[str, str, str]
"""(step, dimension, metric)."""


@dataclass(frozen=True)
class _Line:
    judge: str
    method: str
    scores: tuple[Kind, ...]
    """Both kinds where all figures of the two are the same."""
    cells: Mapping[Key, MetricRow]

    @property
    def is_judge(self) -> bool:
        return self.method != HUMAN and self.judge != MEAN_OF_JUDGES

    @property
    def kind(self) -> str:
        return "" if self.method == HUMAN else " = ".join(LABELS[kind] for kind in self.scores)

    @property
    def qwk(self) -> float:
        value = self.cells[ALL, MEAN, "qwk"].value
        return -math.inf if value is None else value


class ProtocolTables:
    """The protocol's rows of one split, as tables."""

    def __init__(self, rows: Sequence[MetricRow], rubric: Rubric, kinds_of_judges: Mapping[str, str]) -> None:
        self._rows = rows
        self._kinds = kinds_of_judges
        self._pairs = rubric.reported
        self._steps = list(dict.fromkeys((step.name, step.label or step.name) for step, _ in rubric.reported))
        self._lines = _ordered(_lines(rows))

    def overall(self, split: str) -> Table:
        """Metric × judge × averages over all dimensions and of each step; raters among themselves last, best marked."""
        columns = [ALL, *(name for name, _ in self._steps)]
        rows = []
        for metric, name in METRICS.items():
            best = {step: self._best((step, MEAN, metric), self._lines) for step in columns}
            for number_of_line, line in enumerate(self._lines):
                overall = line.cells[ALL, MEAN, metric]
                figures = [self._cell(line, (step, MEAN, metric), best[step], ends=step == ALL) for step in columns]
                rows.append(
                    (
                        Cell(name, number=False, repeated=number_of_line > 0),
                        *(Cell(text, number=False) for text in (line.judge, self._method(line), line.kind)),
                        *figures,
                        Cell(count(overall.n)),
                        Cell(percent(overall.coverage)),
                    )
                )
        header = ("metric", "judge", "method", "score", "all", *(label for _, label in self._steps), "n", "coverage")
        return Table(split, header, tuple(rows), notes_of(self._rows))

    def dimensions(self, split: str) -> list[Table]:
        """For each metric and kind of score: dimension × judge, averaged over the raters, best of each line marked."""
        kinds = dict.fromkeys(line.scores for line in self._lines if line.method != HUMAN)
        # One table holds both kinds where no judge tells them apart.
        shown = [KINDS] if list(kinds) == [KINDS] else [(kind,) for kind in KINDS]
        return [self._by_dimension(split, metric, scores) for metric in METRICS for scores in shown]

    def _by_dimension(self, split: str, metric: str, scores: tuple[Kind, ...]) -> Table:
        lines = [line for line in self._lines if line.method == HUMAN or scores[0] in line.scores]
        rows = []
        for step, dimension in self._pairs:
            key = (step.name, dimension.name, metric)
            best = self._best(key, lines)
            figures = [self._cell(line, key, best, ends=False) for line in lines]
            rows.append((Cell(title(step, dimension), number=False), *figures))
        names = [f"{line.judge} ({line.method})" if line.judge == MEAN_OF_JUDGES else line.judge for line in lines]
        what = " = ".join(LABELS[kind] for kind in scores)
        return Table(
            f"{split}: {METRICS[metric]}, {what} scores", ("dimension", *names), tuple(rows), notes_of(self._rows)
        )

    def _method(self, line: _Line) -> str:
        kind = self._kinds.get(line.judge, "") if line.is_judge else ""
        return line.method if kind in ("", line.method) else f"{kind}, {line.method}"

    def _best(self, key: Key, lines: Sequence[_Line]) -> float | None:
        values = [line.cells[key].value for line in lines if line.is_judge]
        return max((value for value in values if value is not None), default=None)

    def _cell(self, line: _Line, key: Key, best: float | None, *, ends: bool) -> Cell:
        row = line.cells[key]
        shown = row if ends else row.model_copy(update={"low": None, "high": None})
        return metric_cell(shown, best if line.is_judge else None)


def _lines(rows: Sequence[MetricRow]) -> list[_Line]:
    found: dict[tuple[str, str], dict[Kind, dict[Key, MetricRow]]] = {}
    for row in rows:
        cells = found.setdefault((row.judge, row.method), {}).setdefault(row.score, {})
        cells[row.step, row.dimension, row.metric] = row
    lines = []
    for (judge, method), kinds in found.items():
        figures = [[row.value for row in cells.values()] for cells in kinds.values()]
        if len(kinds) == len(KINDS) and figures[0] == figures[1]:
            lines.append(_Line(judge, method, KINDS, kinds[KINDS[0]]))
        else:
            lines += [_Line(judge, method, (kind,), cells) for kind, cells in kinds.items()]
    return lines


def _ordered(lines: Sequence[_Line]) -> list[_Line]:
    """Judges by overall QWK of the expected score, highest first, then means of judges, then the raters."""
    qwk = {(line.judge, line.method): line.qwk for line in lines if "value" in line.scores}
    return sorted(
        lines,
        key=lambda line: (line.method == HUMAN, line.judge == MEAN_OF_JUDGES, -qwk[line.judge, line.method]),
    )


def sentences(found: Sequence[Significance]) -> list[str]:
    """The best judge against the second best, one sentence per kind of score; the same of both kinds once."""
    said: dict[str, list[str]] = {}
    for one in found:
        said.setdefault(_sentence(one), []).append(LABELS[one.score])
    return [f"{' and '.join(kinds).capitalize()} scores: {text}" for text, kinds in said.items()]


def _sentence(one: Significance) -> str:
    paired = one.paired
    ends = interval(_known(paired.low[QWK]), _known(paired.high[QWK]), signed)
    return (
        f"best {one.judges[0]}, QWK {number(_known(paired.a[QWK]))}, against second {one.judges[1]}, "
        f"{number(_known(paired.b[QWK]))}, on the responses both scored (n = {count(paired.n)}): "
        f"difference {signed(_known(one.difference))}{f' (95 %: {ends})' if ends else ''}; "
        f"paired bootstrap over clusters {_p(paired.p[QWK])}; "
        f"paired t-test over {one.dimensions} dimensions t = {_decimals(paired.t)}, {_p(paired.p_t)}."
    )


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _p(value: float) -> str:
    text = p_value(_known(value))
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def _decimals(value: float) -> str:
    return f"{value:.2f}".replace("-", "−") if math.isfinite(value) else MISSING


def rounding(rubric: Rubric) -> str:
    """To what the scores behind QWK are rounded."""
    halves = [title(*pair) for pair in rubric.reported if pair[1].fractional]
    if not halves:
        return "whole points"
    if len(halves) == len(rubric.reported):
        return "half points"
    return f"whole points ({', '.join(halves)}: half points)"


def about(rubric: Rubric) -> str:
    """How the averages are made."""
    return (
        "Each judge against each rater separately, then averaged over the raters; all: mean over the "
        f"{len(rubric.reported)} reported dimensions, Step: mean over those of the step. "
        f"QWK: quadratic weighted kappa of scores rounded to {rounding(rubric)}; r: Pearson; ICC(2,1): two-way random, "
        "absolute agreement, single rater. n: responses of the dimension with the fewest; coverage: share of the "
        "scores asked for that the judge gave. human–human: the raters among themselves. Where a metric is undefined "
        "for a dimension, the averages over it are missing (–). The best judge of each column is bold."
    )
