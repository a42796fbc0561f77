"""Counts, redundancy and strategies of each generator's traces, from the readings alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from rich.box import SIMPLE
from rich.console import Group
from rich.table import Table

from eval.create.columns import shown_text
from eval.create.generation.records import Answer
from eval.create.reasoning.prompts import STRATEGIES
from eval.create.reasoning.records import TraceReading, thoughts
from eval.tables import MISSING, percent
from inference.cost import Cost, cost_json
from inference.judges import ModelConfig
from inference.store import Store

NONE = "none"
"""In place of a strategy: traces that show none."""


def trace_report(
    answers: Sequence[Answer], readings: Sequence[TraceReading], extractor: ModelConfig, store: Store
) -> dict[str, Any]:
    """``{extractor, generators: [{generator, model, …}], cost}``, generators in the order of the answers.

    Means are over traces that could be read; null where there is none.
    """
    names = dict.fromkeys(answer.generator for answer in answers)
    rows = [
        _row([a for a in answers if a.generator == name], [r for r in readings if r.generator == name])
        for name in names
    ]
    return {"extractor": extractor.model, "generators": rows, "cost": _cost(readings, extractor, store)}


def _row(answers: Sequence[Answer], readings: Sequence[TraceReading]) -> dict[str, Any]:
    read = [reading for reading in readings if reading.status == "ok"]
    replies = sum(reading.status != "failed" for reading in readings)
    return {
        "generator": answers[0].generator,
        "model": answers[0].model,
        "answers": len(answers),
        "without_trace": sum(not thoughts(answer) for answer in answers),
        "traces": len(readings),
        "cut": sum(reading.cut for reading in readings),
        "failed": len(readings) - replies,
        "asked_again": sum(reading.asked_again for reading in readings),
        "unreadable": replies - len(read),
        "unreadable_rate": (replies - len(read)) / replies if replies else None,
        "relations": _mean(len(reading.relations) for reading in read),
        "entities": _mean(len(reading.entities) for reading in read),
        "relation_redundancy": _mean(redundancy(reading.relations) for reading in read),
        "entity_redundancy": _mean(redundancy(reading.entities) for reading in read),
        "strategies": {
            **{name: _mean(name in reading.strategies for reading in read) for name in STRATEGIES},
            NONE: _mean(not reading.strategies for reading in read),
        },
    }


def redundancy(phrases: Sequence[str]) -> float | None:
    """1 − distinct / total, from 0 (nothing comes up twice) to below 1; None without phrases."""
    return 1 - len(set(phrases)) / len(phrases) if phrases else None


def _mean(values: Iterable[float | None]) -> float | None:
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None


def _cost(readings: Sequence[TraceReading], extractor: ModelConfig, store: Store) -> dict[str, Any]:
    keys, cost = {key for reading in readings for key in reading.calls}, Cost()
    for call in store.calls():
        if call.key in keys:
            cost.add(call, extractor.price)
    return cost_json(cost)


def report_tables(report: Mapping[str, Any]) -> Group:
    """The report for a terminal of 80 columns: counts, strategies, what the extractor took."""
    rows, cost = report["generators"], report["cost"]
    counts = _table(
        "reasoning traces; relations and entities: mean per trace (redundancy)",
        ("traces", "cut", "unread-\nable", "relations", "entities"),
        rows,
        lambda row: [
            f"{row['traces']:,}",
            f"{row['cut']:,}",
            MISSING if row["unreadable_rate"] is None else percent(row["unreadable_rate"]),
            _mean_shown(row["relations"], row["relation_redundancy"]),
            _mean_shown(row["entities"], row["entity_redundancy"]),
        ],
    )
    shares = _table(
        "share of the readable traces that show a strategy",
        [name.replace("_", "\n").replace("enumeration", "enumer-\nation") for name in (*STRATEGIES, NONE)],
        rows,
        lambda row: [MISSING if share is None else f"{share:.0%}" for share in row["strategies"].values()],
    )
    money = "no price" if cost["cost"] is None else f"{cost['cost']:.4f}"
    tokens = f"{cost['prompt_tokens']:,} tokens in, {cost['completion_tokens']:,} out"
    spent = f"{report['extractor']}: {cost['calls']:,} calls, {tokens}, {cost['seconds']} s, {money}"
    return Group(counts, shares, shown_text(spent))


def _table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Any]],
    cells: Callable[[Mapping[str, Any]], Sequence[str]],
) -> Table:
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.add_column("generator", overflow="fold")
    for name in columns:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(shown_text(row["generator"]), *cells(row))
    return table


def _mean_shown(mean: float | None, again: float | None) -> str:
    if mean is None:
        return MISSING
    return f"{mean:.1f} ({MISSING if again is None else f'{again:.2f}'})"
