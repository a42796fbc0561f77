"""What became of every path in an evaluation, what that cost, and the utility that follows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import RenderableType
from rich.table import Table

from eval.create.evaluators.kinds import KINDS, Kind
from eval.create.evaluators.plan import PlannedRow
from eval.create.evaluators.readings import Reading
from eval.create.rows import BadRow
from eval.tables import MISSING, number, percent
from inference.cost import cost_json, judge_costs
from inference.judges import JudgeConfig
from inference.records import Judgement
from inference.store import Store

STATUSES = ("ok", "unreadable", "count_mismatch", "empty", "failed")


@dataclass(frozen=True)
class Evaluated:
    """The rows of the input, and for each kind of judgement one reading per path, None where none was wanted."""

    rows: Sequence[PlannedRow]
    readings: Mapping[str, Sequence[Sequence[Reading | None]]]
    """Kind → row → path."""

    def content(self, index: int) -> dict[str, Any]:
        """The row `index` with its judgements, as the scoring reads it."""
        content, row = dict(self.rows[index].content), self.rows[index].row
        if isinstance(row, BadRow):
            return content
        for kind in KINDS:
            readings = self.readings[kind.name][index]
            for key in (kind.reply_key, kind.value_key):
                content.pop(key, None)
            content.update(_judgements(kind, readings))
        return content


def _judgements(kind: Kind, readings: Sequence[Reading | None]) -> dict[str, Any]:
    if not any(reading and reading.values for reading in readings):
        return {kind.reply_key: [reading.reply if reading else None for reading in readings]}
    values = [reading.values if reading else () for reading in readings]
    return {
        kind.value_key: [kind.path_value(of_path) if of_path else None for of_path in values],
        f"{kind.name}_values": values,
    }


def counts(evaluated: Evaluated) -> dict[str, Any]:
    """Rows and paths; for each kind of judgement how many paths have which status, and the share without judgement."""
    found: dict[str, Any] = {
        "rows": len(evaluated.rows),
        "faulty_rows": sum(isinstance(row.row, BadRow) for row in evaluated.rows),
        "paths": sum(len(row.paths) for row in evaluated.rows),
        "evaluated": sum(path is not None for row in evaluated.rows for path in row.paths),
    }
    for kind in KINDS:
        readings = [reading for row in evaluated.readings[kind.name] for reading in row if reading is not None]
        status = Counter(reading.status for reading in readings)
        found[kind.name] = {
            **{name: status[name] for name in STATUSES},
            "asked_again": sum(reading.asked_again for reading in readings),
            "unjudged": 1 - status["ok"] / len(readings) if readings else None,
        }
    return found


def costs(readings: Sequence[Reading], judges: Mapping[str, JudgeConfig], store: Store) -> dict[str, Any]:
    """Calls, tokens, seconds and money of each evaluator that was asked, those of earlier starts included."""
    users = [
        Judgement(
            sample_id=reading.job,
            judge=reading.evaluator,
            method=judges[reading.evaluator].method,
            rubric="",
            scores=(),
            calls=reading.calls,
        )
        for reading in readings
    ]
    return {name: cost_json(cost) for name, cost in judge_costs(store.calls(), users, judges).judges.items()}


def report_tables(report: Mapping[str, Any]) -> list[RenderableType]:
    """The counts and costs of a report; its utility has a table of its own."""
    rows = f"{report['rows']} rows ({report['faulty_rows']} faulty)"
    paths = f"{report['paths']} paths, {report['evaluated']} of them evaluated"
    parts: list[RenderableType] = [f"{rows}, {paths}", _status_table(report)]
    if report["costs"]:
        parts.append(_cost_table(report["costs"]))
    return parts


def _status_table(report: Mapping[str, Any]) -> Table:
    table = Table(title="paths by what their evaluators said", title_justify="left")
    table.add_column("reply")
    for kind in KINDS:
        table.add_column(kind.name, justify="right")
    for name in (*STATUSES, "asked_again"):
        table.add_row(name, *(str(report[kind.name][name]) for kind in KINDS))
    shares = (report[kind.name]["unjudged"] for kind in KINDS)
    table.add_row("unjudged", *(MISSING if share is None else percent(share) for share in shares))
    return table


def _cost_table(found: Mapping[str, Any]) -> Table:
    table = Table(title="cost of all starts", title_justify="left")
    table.add_column("judgement")
    for name in ("calls", "tokens in", "tokens out", "seconds", "cost"):
        table.add_column(name, justify="right")
    for name, cost in found.items():
        money = MISSING if cost["cost"] is None else number(cost["cost"])
        shown = (str(cost[key]) for key in ("calls", "prompt_tokens", "completion_tokens", "seconds"))
        table.add_row(name, *shown, money)
    return table
