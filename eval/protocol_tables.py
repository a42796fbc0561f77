"""Tables and sentences of the protocol's averages over dimensions, from its tidy rows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eval.metrics import KINDS, Kind
from eval.protocol import ALL, HUMAN, MEAN, METRICS, title
from eval.rows import MEAN_OF_JUDGES, MetricRow
from eval.significance import QWK, Significance
from eval.tables import (
    LABELS,
    MISSING,
    Cell,
    Table,
    best_of,
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
LABELS_OF_KINDS = tuple(LABELS[kind] for kind in KINDS)
BOTH = " = ".join(LABELS_OF_KINDS)
"""Name of both kinds of score where they are the same."""


@dataclass(frozen=True)
class _Line:
    judge: str
    method: str
    score: Kind
    cells: Mapping[Key, MetricRow]

    @property
    def is_judge(self) -> bool:
        return self.method != HUMAN and self.judge != MEAN_OF_JUDGES

    @property
    def who(self) -> tuple[str, str]:
        return self.judge, self.method

    def figures(self, metric: str) -> list[tuple[str, ...]]:
        """All that is shown of a metric."""
        return [
            (number(row.value), interval(row.low, row.high), count(row.n), percent(row.coverage))
            for (_, _, of), row in self.cells.items()
            if of == metric
        ]

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
            for position, (line, kinds) in enumerate(self._merged(metric)):
                overall = line.cells[ALL, MEAN, metric]
                figures = [self._cell(line, (step, MEAN, metric), best[step], ends=step == ALL) for step in columns]
                rows.append(
                    (
                        Cell(name, number=False, repeated=position > 0),
                        *(Cell(text, number=False) for text in (line.judge, self._method(line), kinds)),
                        *figures,
                        Cell(count(overall.n)),
                        Cell(percent(overall.coverage)),
                    )
                )
        header = ("metric", "judge", "method", "score", "all", *(label for _, label in self._steps), "n", "coverage")
        return Table(split, header, tuple(rows), notes_of(self._rows))

    def dimensions(self, split: str) -> list[Table]:
        """For each metric and kind of score: dimension × judge, averaged over the raters, best of each line marked."""
        tables = []
        for metric in METRICS:
            # One table holds both kinds where no judge tells them apart.
            apart = any(kinds in LABELS_OF_KINDS for line, kinds in self._merged(metric) if line.method != HUMAN)
            shown = [(kind,) for kind in KINDS] if apart else [KINDS]
            tables += [self._by_dimension(split, metric, scores) for scores in shown]
        return tables

    def _merged(self, metric: str) -> list[tuple[_Line, str]]:
        """Lines and the names of their kinds of score; one line for both kinds where they show the same of `metric`."""
        by_judge: dict[tuple[str, str], list[_Line]] = {}
        for line in self._lines:
            by_judge.setdefault(line.who, []).append(line)
        merged = []
        for lines in by_judge.values():
            if len(lines) == len(KINDS) and lines[0].figures(metric) == lines[1].figures(metric):
                merged.append((lines[0], BOTH))
            else:
                merged += [(line, "" if line.method == HUMAN else LABELS[line.score]) for line in lines]
        return merged

    def _by_dimension(self, split: str, metric: str, scores: tuple[Kind, ...]) -> Table:
        lines = [line for line in self._lines if line.method == HUMAN or line.score == scores[0]]
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
        return best_of((line.judge, line.cells[key].value) for line in lines if line.is_judge)

    def _cell(self, line: _Line, key: Key, best: float | None, *, ends: bool) -> Cell:
        row = line.cells[key]
        shown = row if ends else row.model_copy(update={"low": None, "high": None})
        return metric_cell(shown, best if line.is_judge else None)


def _lines(rows: Sequence[MetricRow]) -> list[_Line]:
    found: dict[tuple[str, str], dict[Kind, dict[Key, MetricRow]]] = {}
    for row in rows:
        cells = found.setdefault((row.judge, row.method), {}).setdefault(row.score, {})
        cells[row.step, row.dimension, row.metric] = row
    return [_Line(*who, kind, cells) for who, kinds in found.items() for kind, cells in kinds.items()]


def _ordered(lines: Sequence[_Line]) -> list[_Line]:
    """Judges by overall QWK of the expected score, highest first, then means of judges, then the raters."""
    qwk = {line.who: line.qwk for line in lines if line.score == "value"}
    return sorted(
        lines,
        key=lambda line: (line.method == HUMAN, line.judge == MEAN_OF_JUDGES, -qwk[line.who]),
    )


def sentences(found: Sequence[Significance], label: str) -> list[str]:
    """The best judge against the second best, one sentence per kind of score; the same of both kinds once.

    `label` is what the rubric calls a scenario.
    """
    said: dict[str, list[str]] = {}
    for one in found:
        said.setdefault(_sentence(one, label), []).append(LABELS[one.score])
    return [f"{' and '.join(kinds).capitalize()} scores: {text}" for text, kinds in said.items()]


def _sentence(one: Significance, label: str) -> str:
    paired = one.paired
    ends = interval(_known(paired.low[QWK]), _known(paired.high[QWK]), signed)
    return (
        f"best {one.judges[0]}, QWK {number(_known(paired.a[QWK]))}, against second {one.judges[1]}, "
        f"{number(_known(paired.b[QWK]))}, on the responses both scored (n = {count(paired.n)}): "
        f"difference {signed(_known(one.difference))}{f' (95 %: {ends})' if ends else ''}; "
        f"paired bootstrap over {f'whole {label}s' if paired.clustered else 'single responses'} {_p(paired.p[QWK])}; "
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
        "for a dimension, the averages over it are missing (–). The best judge of each column, "
        "or line of dimensions, is bold where several are compared."
    )
