"""Traces on the screen: kept and dropped by reason, dropped parts with their reason, and single traces."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from eval.evidence import rows
from inference.errors import UserError, named
from inference.files import read_json_lines
from inference.rubric import Rubric
from training.traces.filter import REASONS, Drop, Filtered
from training.traces.records import DROPPED, Trace, TracesInfo


def counts_table(info: TracesInfo) -> Table:
    """What is in a folder."""
    table = Table(title=f"Traces of {info.rubric.name}@{info.rubric_digest}", title_justify="left", show_header=False)
    for name, what in info.teachers.items():
        table.add_row("teacher", escape(f"{name}: {what}"))
    split = f"train of {info.split.name} in {info.split.file}" if info.split else "none"
    table.add_row("prompts", info.prompts)
    table.add_row("split", escape(split))
    table.add_row("simulated", "yes" if info.simulated else "no")
    for name, count in info.counts.items():
        table.add_row(name, f"{count:,}")
    for reason, count in info.left_out.items():
        table.add_row(f"not collected: {reason}", f"{count:,}")
    for reason, count in info.dropped.items():
        table.add_row(f"dropped: {reason}", f"{count:,}")
    return table


def filter_table(found: Filtered, rubric: Rubric) -> Table:
    """Kept parts, and dropped ones by reason, for each step."""
    names = [step.name for step in rubric.answered]
    table = Table(title="Items, and steps without items, that are kept and dropped", title_justify="left")
    for name in ("", *names, "all"):
        table.add_column(name, justify="right" if name else "left")
    kept = [sum(trace.parts for trace in found.kept if trace.step == name) for name in names]
    table.add_row("kept", *map(str, kept), str(sum(kept)))
    for reason in REASONS:
        lost = [sum(drop.reason == reason and drop.trace.step == name for drop in found.dropped) for name in names]
        if sum(lost):
            table.add_row(reason, *map(str, lost), str(sum(lost)))
    return table


def drop_sample(dropped: Sequence[Drop], count: int) -> list[Drop]:
    """Up to `count` dropped parts, one after the other of each reason."""
    by_reason = [[drop for drop in dropped if drop.reason == reason] for reason in REASONS]
    turns = max((len(drops) for drops in by_reason), default=0)
    mixed = [drops[turn] for turn in range(turns) for drops in by_reason if turn < len(drops)]
    return mixed[:count]


def print_drops(console: Console, drops: Iterable[dict[str, object]]) -> None:
    for drop in drops:
        item = f" item {drop['item']}" if drop["item"] is not None else ""
        console.print(f"[bold]{drop['sample_id']} {drop['step']}{item}[/bold]: {drop['reason']}: ", end="")
        console.print(str(drop["detail"]), markup=False, highlight=False)
        texts = drop["evidence"]
        for name, text in texts.items() if isinstance(texts, dict) else ():
            console.print(f"  {name}: {text}", markup=False, highlight=False)


def print_trace(console: Console, trace: Trace) -> None:
    console.print(f"[bold]{trace.sample_id} {trace.step}[/bold] by {escape(trace.teacher)}, repeat {trace.repeat}")
    for name, memory in trace.memories.items():
        console.print(f"  memory of {name}: {memory}", markup=False, highlight=False)
    for number, row in enumerate(rows(trace.evidence), 1):
        numbered = bool(trace.evidence.items)
        mark = f"  {number}. " if numbered else "  "
        gone = " (dropped)" if numbered and number not in trace.items else ""
        for name, text in row.items():
            console.print(f"{mark}{name}: {text}{gone}", markup=False, highlight=False)
    console.print(f"  memory: {trace.evidence.memory}", markup=False, highlight=False)


def read_drops(folder: Path) -> list[dict[str, object]]:
    """What the filter dropped from a folder. Raises UserError where nothing was filtered there."""
    if not (folder / DROPPED).is_file():
        raise UserError(f"{folder}: has no {DROPPED}; `python -m training traces filter` writes it")
    return [row for _, row in read_json_lines(folder / DROPPED)]


def chosen(traces: Sequence[Trace], sample: str | None, count: int) -> list[Trace]:
    """All traces of one sample, or the first `count`. Raises UserError for an unknown sample."""
    if sample is None:
        return list(traces[:count])
    found = [trace for trace in traces if trace.sample_id == sample]
    if not found:
        raise UserError(f"no trace of the sample {named(sample)} is there")
    return found
