"""Metrics and report of an evaluation, recomputed from its records alone: no model, no data, no config file.

    python -m eval report runs/aut_published

Writes ``metrics.jsonl``, ``report.md`` and ``report.html`` into the run directory; same records, same bytes.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from eval import protocol_tables, tables
from eval.agreement import pearson
from eval.compare import DifferenceRow, Setting, Side, difference_rows
from eval.cost import run_costs
from eval.heatmap import Heatmap, heatmap
from eval.metrics import (
    KINDS,
    ScoreTable,
    cluster,
    headline_qwk,
    human_scores,
    judge_scores,
    metric_rows,
    rated,
    score_tables,
)
from eval.protocol import protocol
from eval.protocol_tables import ProtocolTables
from eval.resampling import MIN_CLUSTERS
from eval.rows import MetricRow, write_rows
from eval.run_files import METRICS, STORE, EvaluatedRun, load_run
from eval.significance import best_two, significance_rows
from eval.tables import Group, Scores, Table
from inference.errors import UserError
from inference.files import write_text
from inference.prompts import fence
from inference.records import Sample
from inference.rubric import Dimension, Step

MARKDOWN = "report.md"
HTML = "report.html"


@dataclass(frozen=True)
class Section:
    """What the protocol of several dimensions says of one split."""

    overall: Table
    tests: list[str]
    """Sentences: the best judge against the second best."""
    notes: list[str]
    """Sentences: what is undefined."""
    dimensions: list[Table]
    """One per metric of the protocol."""


@dataclass(frozen=True)
class Report:
    """A written report."""

    run: Path
    settings: dict[str, Any]
    rows: list[MetricRow]
    headlines: list[Table]
    sections: list[Section]
    """Averages over dimensions, one section per split; empty for rubrics with a single reported dimension."""

    @property
    def html(self) -> Path:
        return self.run / HTML

    def as_text(self) -> str:
        """The headline tables for a terminal: of averages over dimensions where there are several."""
        if self.sections:
            shown = [table for part in self.sections for table in (part.overall, part.dimensions[0])]
            texts = [
                "\n".join([_as_text(part.overall), *part.tests, *part.notes, "", _as_text(part.dimensions[0])])
                for part in self.sections
            ]
        else:
            shown = self.headlines
            texts = [_as_text(table) for table in self.headlines]
        if any(cell.best for table in shown for row in table.rows for cell in row):
            texts.append("* best judge of its column" + ("; by dimension, of its line" if self.sections else ""))
        return "\n\n".join(texts)


def _as_text(table: Table) -> str:
    return "\n".join([table.title, *table.notes, tables.as_text(table)])


def write_report(path: Path | str) -> Report:
    """Recompute everything after the calls. Raises UserError where the directory holds no evaluation."""
    run = load_run(path)
    rows = metric_rows(
        run.settings.run,
        run.benchmark,
        run.samples,
        run.judgements,
        run.settings.rubric,
        run.splits,
        run.settings.seed,
        run.simulated,
        run.settings.resamples,
    )
    if not rows:
        raise UserError(f"{run.path}: nobody has rated its samples, so there is nothing to compare the judges with")
    view = _View(run, rows)
    averaged, sections = _averages(run, view.kinds) if len(run.settings.rubric.reported) > 1 else ([], [])
    context = {**view.context(), "sections": sections, "about": protocol_tables.about(run.settings.rubric)}
    rows = averaged + rows
    templates = _templates()
    write_rows(run.path / METRICS, rows)
    write_text(run.path / MARKDOWN, templates.get_template("report.md.jinja").render(context))
    write_text(run.path / HTML, templates.get_template("report.html.jinja").render(context))
    return Report(run.path, run.raw_settings, rows, context["headlines"], sections)


def _averages(run: EvaluatedRun, kinds: Mapping[str, str]) -> tuple[list[MetricRow], list[Section]]:
    """Rows and sections of the averages over dimensions."""
    settings, rubric = run.settings, run.settings.rubric
    found = protocol(
        settings.run,
        run.benchmark,
        run.samples,
        run.judgements,
        rubric,
        run.splits,
        settings.seed,
        run.simulated,
        settings.resamples,
    )
    tests = best_two(run.samples, run.judgements, rubric, run.splits, settings.seed, found.rows, settings.resamples)
    sections = []
    for split, notes in found.notes.items():
        views = ProtocolTables([row for row in found.rows if row.split == split], rubric, kinds)
        said = protocol_tables.sentences([test for test in tests if test.split == split], rubric.scenario_label)
        sections.append(Section(views.overall(split), said, notes, views.dimensions(split)))
    return found.rows + significance_rows(tests, settings.run, run.benchmark, run.simulated), sections


def kind_of(judge: str, method: str, run: EvaluatedRun) -> str:
    """``recorded``: scores from a file; ``learned``: fitted to ratings; ``prompted``: instructions alone."""
    if method == "recorded":
        return "recorded"
    with_adapter = any(settings.id == judge and settings.adapter for settings in run.settings.judges)
    return "learned" if with_adapter or method == "compact" else "prompted"


class _View:
    """What the templates show, computed from a run and its metrics."""

    def __init__(self, run: EvaluatedRun, rows: list[MetricRow]) -> None:
        self.run = run
        self.groups = tables.grouped(rows)
        self.kinds = {judge: kind_of(judge, method, run) for judge, method in run.judges.items()}
        self.tables: dict[str, ScoreTable] = {
            judge: table for (judge, _), table in score_tables(run.judgements).items()
        }
        self.dimensions = {(s.name, d.name): (s, d) for s, d in run.settings.rubric.scored}
        self.first_split = next(iter(self.groups)).split

    def context(self) -> dict[str, Any]:
        named = [(tables.title_of(group, list(self.groups)), group, scores) for group, scores in self.groups.items()]
        # What holds for one of several dimensions is no main result.
        leading = named[:1] if len(self.run.settings.rubric.reported) == 1 else []
        return {
            "run": self.run.settings.run,
            "benchmark": self.run.benchmark,
            "rubric": f"{self.run.settings.rubric.name}@{self.run.settings.rubric.digest}",
            "samples": tables.count(len(self.run.samples)),
            "chosen": self.run.settings.chosen,
            "simulated": tables.simulated_note(self.run.benchmark) if self.run.simulated else "",
            "findings": [text for _, group, scores in leading for text in self._findings(group, scores)],
            "intervals": self._intervals(),
            "metrics_shown": self._metrics_shown(),
            "headlines": [
                tables.headline(title, scores, self.kinds, headline_qwk(self._scale(group)[1]))
                for title, group, scores in named
            ],
            "differences": [self._differences(title, group, scores) for title, group, scores in named],
            "pictures": [
                (title, self._pictures(group, scores))
                for title, group, scores in named
                if group.split == self.first_split and self._scale(group)[1].reported
            ],
            "bias": [tables.bias(title, scores, self._length_of_ratings(group)) for title, group, scores in named],
            "costs": self._costs(),
            "metrics": [tables.all_metrics(title, scores, kind) for title, _, scores in named for kind in KINDS],
            "settings": yaml.safe_dump(self.run.raw_settings, sort_keys=False, allow_unicode=True),
            "environment": json.dumps(self.run.environment, indent=2, ensure_ascii=False),
        }

    def _findings(self, group: Group, scores: Scores) -> list[str]:
        """The main results in words, for one group."""
        best = scores.judges[0]
        found = []
        row = scores.row(best, "value", "pearson")
        if row is not None and row.value is not None:
            ends = tables.interval(row.low, row.high)
            found.append(
                f"Highest agreement on {group.split}: {best} ({self.kinds[best]}), r = {tables.number(row.value)}"
                f"{f' ({ends})' if ends else ''} for the expected score, n = {tables.count(row.n)}."
            )
        learned, prompted = (
            next((j for j in scores.judges if self.kinds[j] == k), None) for k in ("learned", "prompted")
        )
        if learned and prompted:
            row_r = self._difference_rows(group, learned, prompted)[0]
            ends = tables.interval(row_r.low, row_r.high, tables.signed)
            found.append(
                f"Best learned minus best prompted judge ({learned} − {prompted}): "
                f"Δ r = {tables.signed(row_r.difference)}"
                f"{f' ({ends})' if ends else ''}, p = {tables.p_value(row_r.p)}, n = {tables.count(row_r.n)}."
            )
        for judge in scores.judges:
            row = scores.row(judge, "value", "pearson")
            if row is not None and row.coverage < 1:
                found.append(
                    f"{judge} scored {tables.percent(row.coverage)} of the responses; its metrics leave the rest out."
                )
        return found

    def _intervals(self) -> str:
        clusters = len({cluster(sample) for sample in self.run.samples})
        label = self.run.settings.rubric.scenario_label
        unit = f"whole {label}s ({clusters} of them)"
        if clusters < MIN_CLUSTERS:
            unit = f"single responses, as there are only {clusters} different values of {label}"
        return (
            f"In parentheses: 95 % bootstrap intervals over {unit}, "
            f"{tables.count(self.run.settings.resamples)} resamples, seed {self.run.settings.seed}."
        )

    def _metrics_shown(self) -> str:
        return (
            f"QWK: quadratic weighted kappa of scores rounded to {protocol_tables.rounding(self.run.settings.rubric)}. "
            "ICC(2,1): two-way random, absolute agreement, single rater."
        )

    def _setting(self, group: Group) -> Setting:
        step, dimension = self._scale(group)
        ids = self.run.splits[group.split]
        return Setting(
            benchmark=self.run.benchmark,
            split=group.split,
            samples=[sample for sample in self.run.samples if sample.id in ids],
            rater=group.rater,
            step=step,
            dimension=dimension,
            simulated=self.run.simulated,
            seed=self.run.settings.seed,
            resamples=self.run.settings.resamples,
        )

    def _scale(self, group: Group) -> tuple[Step, Dimension]:
        return self.dimensions[group.step, group.dimension]

    def _side(self, judge: str) -> Side:
        return Side(self.run.settings.run, judge, self.tables[judge])

    def _difference_rows(self, group: Group, judge_a: str, judge_b: str) -> list[DifferenceRow]:
        return difference_rows(self._setting(group), self._side(judge_a), self._side(judge_b), kinds=("value",))

    def _differences(self, title: str, group: Group, scores: Scores) -> Table:
        best, *others = scores.judges
        rows = [row for judge in others for row in self._difference_rows(group, best, judge)]
        return tables.differences(f"{title}: {best} minus each other judge", rows)

    def _rated(self, group: Group, *judges: str) -> list[Sample]:
        setting = self._setting(group)
        return rated(setting.samples, group.rater, setting.key, *(self.tables[judge] for judge in judges))

    def _pictures(self, group: Group, scores: Scores) -> list[Heatmap]:
        key = f"{group.step}.{group.dimension}"
        pictures = []
        for judge in scores.judges:
            used = self._rated(group, judge)
            verdicts = judge_scores(used, self.tables[judge], key, "value")
            pictures.append(heatmap(judge, human_scores(used, group.rater, key), verdicts, self._scale(group)[1]))
        return pictures

    def _length_of_ratings(self, group: Group) -> float | None:
        used = [sample for sample in self._rated(group) if group.step in sample.responses]
        lengths = np.array([len(sample.responses[group.step]) for sample in used], dtype=np.float64)
        value = pearson(lengths, human_scores(used, group.rater, f"{group.step}.{group.dimension}"))
        return value if math.isfinite(value) else None

    def _costs(self) -> Table | None:
        settings = {judge.id: judge for judge in self.run.settings.judges}
        found = run_costs(self.run.path / STORE, self.run.judgements, settings)
        return tables.costs(found) if found else None


def _templates() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        # Judge ids, scenarios and settings come from files.
        autoescape=lambda name: name is not None and name.endswith(".html.jinja"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["md"] = escape_markdown
    environment.filters["fence"] = fence
    return environment


def escape_markdown(text: str) -> str:
    """`text` on one line, in which nothing is Markdown or HTML: it stays in its cell of a table."""
    return " ".join(text.split()).translate(_MARKDOWN)


_MARKDOWN = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", **{mark: f"\\{mark}" for mark in "\\`*[]|"}})
