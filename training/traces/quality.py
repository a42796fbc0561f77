"""What the evidence in a run is worth as text: form, quotations, names and numbers, by judge and step."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from rich.table import Table

from eval.evidence import Quality, quality
from inference.records import StepEvidence
from training.traces.collect import run_analysts, run_judgements, run_settings, run_source
from training.traces.filter import FilterConfig


def run_quality(run: Path, check: FilterConfig, judges: Sequence[str] = ()) -> dict[str, dict[str, Quality]]:
    """Judge → step → quality of what its analyst wrote, first repeats only; a response that it failed on counts.

    Raises UserError for a folder that is no run, a run without an analyst, and changed or missing responses.
    """
    settings = run_settings(run)
    source = run_source(run, settings)
    analysts = run_analysts(run, settings, judges)
    evidence: dict[str, dict[str, Sequence[StepEvidence]]] = defaultdict(dict)
    judged: dict[str, set[str]] = defaultdict(set)
    for judgement in run_judgements(run, source.rubric):
        if judgement.judge in analysts and judgement.repeat == 0:
            evidence[judgement.judge][judgement.sample_id] = judgement.evidence
            judged[judgement.judge].add(judgement.sample_id)
    return {
        judge: quality(
            source.rubric,
            [sample for sample in source.samples if sample.id in judged[judge]],
            evidence[judge],
            no_choice=check.no_choice,
            unquoted_steps=check.unquoted_steps,
        )
        for judge in analysts
        if judged[judge]
    }


def quality_table(found: Mapping[str, Quality], of: str = "") -> Table:
    """Shares by step, and over all."""
    title = "Evidence on items, and on steps without items, that have a text"
    table = Table(title=f"{of}: {title[0].lower()}{title[1:]}" if of else title, title_justify="left")
    for name in ("step", "asked", "schema-valid", "grounded", "names and numbers known"):
        table.add_column(name, justify="left" if name == "step" else "right")
    every = Quality(
        *(sum(values) for values in zip(*(tuple(asdict(part).values()) for part in found.values()), strict=True))
    )
    for name, part in [*found.items(), ("all", every)]:
        table.add_row(
            name,
            str(part.asked),
            _share(part.valid, part.asked),
            _share(part.grounded, part.quotable),
            _share(part.founded, part.valid),
        )
    return table


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"
