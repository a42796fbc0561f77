"""The results of many rows in a few numbers, and as a table for people."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table

from eval.create.judging import VALIDITY_RULES
from eval.create.scoring import Result
from eval.resampling import mean_interval
from eval.tables import MISSING, number, percent
from inference.errors import printable

SHOWN_ROWS = 40
PATHS = ("parsed", "valid", "kept")
UNJUDGED = ("factuality_", "specificity_")
"""Outcomes of paths whose evaluators failed begin like this."""


@dataclass(frozen=True)
class Mean:
    value: float
    low: float | None
    """95 % bootstrap interval over rows; None with too few of them."""
    high: float | None
    sd: float | None
    """Standard deviation over rows; None for a single one."""
    n: int


@dataclass(frozen=True)
class Summary:
    """Sums and means over the rows that were scored."""

    mode: str
    rows: int
    failed: int
    utility: dict[str, Mean]
    counts: dict[str, int]
    """Candidates, parsed, valid and kept paths of all rows; of those `checked` how many each rule accepts."""
    lost: dict[str, int]
    """Reason → candidates that do not count."""
    unjudged: float | None
    """Share of valid paths whose evaluator's reply is missing or unreadable; None where no path is valid, and for the
    released code, which does not tell."""

    @property
    def valid(self) -> dict[str, float]:
        """Rule → share of the checked paths that it accepts; empty where none was checked."""
        checked = self.counts.get("checked")
        return {rule: self.counts[f"valid_{rule}"] / checked for rule in VALIDITY_RULES} if checked else {}

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def summarise(results: Sequence[Result], mode: str) -> Summary:
    scored = [result for result in results if "error" not in result]
    counts: Counter[str] = Counter()
    lost: Counter[str] = Counter()
    for result in scored:
        counts.update({name: value for name, value in result["counts"].items() if name != "lost"})
        lost.update(result["counts"]["lost"])
    names = scored[0]["utility"] if scored else ()
    unjudged = sum(value for reason, value in lost.items() if reason.startswith(UNJUDGED))
    return Summary(
        mode=mode,
        rows=len(results),
        failed=len(results) - len(scored),
        utility={name: mean for name in names if (mean := mean_of(result["utility"][name] for result in scored))},
        counts=dict(counts),
        lost=dict(lost.most_common()),
        unjudged=unjudged / counts["valid"] if counts["valid"] and mode == "paper" else None,
    )


def mean_of(values: Iterable[float | None]) -> Mean | None:
    """Mean of the known `values`; None where there is none."""
    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return None
    low, high = (end if math.isfinite(end) else None for end in mean_interval(known))
    return Mean(float(known.mean()), low, high, float(known.std(ddof=1)) if len(known) > 1 else None, len(known))


def result_tables(results: Sequence[Result], summary: Summary) -> Group:
    """Rows with utility and counts, the mean, and what became of the paths that do not count."""
    parts: list[RenderableType] = [_rows_table(results, summary)]
    if len(results) > SHOWN_ROWS:
        parts.append(f"{len(results) - SHOWN_ROWS} more rows: --json, or --out")
    failed = [result for result in results if "error" in result]
    if failed:
        parts.append(_errors_table(failed))
    if summary.utility:
        parts.append(_means(summary))
    parts += _rates(summary)
    if summary.lost:
        parts.append(_lost_table(summary))
    return Group(*parts)


def _rows_table(results: Sequence[Result], summary: Summary) -> Table:
    table = Table(title=f"CREATE, {summary.mode} mode: utility at each patience, paths", title_justify="left")
    table.add_column("id", overflow="fold", min_width=12)
    for name in (*summary.utility, *PATHS):
        table.add_column(name, justify="right")
    for result in results[:SHOWN_ROWS]:
        table.add_row(*_cells(result, summary))
    table.add_section()
    means = [number(mean.value) for mean in summary.utility.values()]
    table.add_row("mean, sum of paths", *means, *(str(summary.counts.get(name, 0)) for name in PATHS))
    return table


def _cells(result: Result, summary: Summary) -> list[str]:
    name = escape(printable(str(result["id"])))
    if "error" in result:
        return [name, *[MISSING] * (len(summary.utility) + len(PATHS))]
    return [name, *map(number, result["utility"].values()), *(str(result["counts"][key]) for key in PATHS)]


def _errors_table(failed: Sequence[Result]) -> Table:
    table = Table(title=f"not scored: {len(failed)} rows", title_justify="left")
    table.add_column("id", overflow="fold", max_width=24)
    table.add_column("why", overflow="fold")
    for result in failed[:SHOWN_ROWS]:
        quirk, message = result["error"]["quirk"], result["error"]["message"]
        cells = (str(result["id"]), f"{quirk}: {message}" if quirk else message)
        table.add_row(*(escape(printable(cell)) for cell in cells))
    return table


def _means(summary: Summary) -> str:
    values = (
        f"{name}: {number(mean.value)}" + ("" if mean.low is None else f" ({number(mean.low)} to {number(mean.high)})")
        for name, mean in summary.utility.items()
    )
    return f"mean utility of {summary.rows - summary.failed} rows (95 % interval): {', '.join(values)}"


def _rates(summary: Summary) -> list[str]:
    found = []
    if summary.valid:
        rates = (f"{rule} {percent(share)}" for rule, share in summary.valid.items())
        found.append(f"valid by rule: {', '.join(rates)}")
    if summary.unjudged is not None:
        found.append(f"valid paths without a readable judgement: {percent(summary.unjudged)}")
    return found


def _lost_table(summary: Summary) -> Table:
    table = Table(title="paths that do not count", title_justify="left")
    table.add_column("reason")
    table.add_column("paths", justify="right")
    for reason, value in summary.lost.items():
        table.add_row(reason, str(value))
    return table
