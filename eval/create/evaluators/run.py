"""Answers in, the same answers with judgements on each path out, and what they are worth.

    python -m eval create evaluate --config configs/eval/create_evaluate.yaml

The run directory holds ``evaluated.jsonl`` (what ``python -m eval create score`` takes), ``readings.jsonl`` (one line
per evaluator and different path), ``report.json``, and ``scores.jsonl`` with ``summary.json``. The same command goes on
where a run was interrupted.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.create.embedding import Embedder, minilm
from eval.create.evaluators.asked import EvaluatorWork, load_evaluator_rubric
from eval.create.evaluators.kinds import KINDS, Kind, KindName
from eval.create.evaluators.plan import Job, PlannedRow, distinct_jobs, read_plan
from eval.create.evaluators.prompts import prompts_digest
from eval.create.evaluators.readings import READINGS, Reading, ReadingFile
from eval.create.evaluators.recorded import RecordedReplies, read_recorded
from eval.create.evaluators.report import Evaluated, costs, counts
from eval.create.evaluators.settings import (
    AskedEvaluator,
    EvaluateConfig,
    LearnedEvaluator,
    RecordedEvaluator,
    as_judge,
)
from eval.create.files import plain, write_results
from eval.create.rows import BadRow, make_row
from eval.create.scoring import Result, paper, score_rows
from eval.create.summary import summarise
from inference.adapter_notes import check_trained_for
from inference.adapters import file_digest
from inference.config import load_config
from inference.engines.base import build_engine
from inference.engines.pool import BuildEngine
from inference.errors import UserError, printable
from inference.files import write_text
from inference.judge import run_to_end
from inference.judges import JudgeConfig, resolved_judge
from inference.run_dir import RunDir
from inference.work import run_works

EVALUATED, REPORT = "evaluated.jsonl", "report.json"


@dataclass(frozen=True)
class Plan:
    """What a config asks for, read and checked."""

    config: EvaluateConfig
    rows: list[PlannedRow]
    asked: dict[KindName, tuple[AskedEvaluator, list[Job]]]
    """Judgements that are asked for, with the different paths."""
    recorded: dict[KindName, RecordedReplies]
    settings: dict[str, Any]

    @property
    def judges(self) -> dict[str, JudgeConfig]:
        return {kind: as_judge(kind, evaluator) for kind, (evaluator, _) in self.asked.items()}

    def shown(self) -> list[str]:
        """What would be asked, a line each."""
        paths = sum(path is not None for row in self.rows for path in row.paths)
        lines = [f"{len(self.rows)} rows, {sum(len(row.paths) for row in self.rows)} paths, {paths} to be evaluated"]
        for kind, (evaluator, jobs) in self.asked.items():
            learned = isinstance(evaluator, LearnedEvaluator)
            calls = sum(len(job.path) for job in jobs) if learned else len(jobs)
            lines.append(f"{kind}: {len(jobs)} different paths, {calls} calls to {evaluator.model}")
        return [*lines, *(f"{kind}: recorded replies" for kind in self.recorded)]


@dataclass(frozen=True)
class Evaluation:
    """What a run has found."""

    path: Path
    report: dict[str, Any]
    results: list[Result]
    """Scores of the rows."""


def read_evaluation(path: Path | str, out: Path | str | None = None) -> Plan:
    """Read and check everything that a config names; nothing is written. Raises UserError."""
    config = load_config(path, EvaluateConfig)
    config = config.model_copy(update={"out": str(out)}) if out else config
    rows = read_plan(config.input, config.evaluated)
    asked: dict[KindName, tuple[AskedEvaluator, list[Job]]] = {}
    recorded: dict[KindName, RecordedReplies] = {}
    for kind in KINDS:
        evaluator = config.evaluator(kind.name)
        if isinstance(evaluator, RecordedEvaluator):
            recorded[kind.name] = read_recorded(evaluator.recorded, kind)
        else:
            asked[kind.name] = evaluator, distinct_jobs(rows, connected=isinstance(evaluator, LearnedEvaluator))
    return Plan(config, rows, asked, recorded, _settings(config))


def evaluate(
    plan: Plan,
    *,
    quiet: bool = False,
    build: BuildEngine = build_engine,
    embedder: Callable[[], Embedder] = minilm,
) -> Evaluation:
    """Run or resume an evaluation, and write its files.

    Raises UserError where the run directory belongs to another evaluation, an engine doesn't answer, or the budget is
    spent; everything finished is kept.
    """
    with RunDir.open(plan.config.out, plan.settings, judged=False) as run:
        sink = run.keep(ReadingFile(run.path / READINGS))
        _ask(plan, run, sink, quiet=quiet, build=build)
        readings = list(sink.read())
        evaluated = Evaluated(plan.rows, _by_row(plan, readings))
        contents = [evaluated.content(index) for index in range(len(plan.rows))]
        write_text(run.path / EVALUATED, "".join(json.dumps(plain(content)) + "\n" for content in contents))
        results = _scores(plan, contents, embedder)
        report = {
            **counts(evaluated),
            "distinct": {kind: len(jobs) for kind, (_, jobs) in plan.asked.items()},
            "costs": costs(readings, plan.judges, run.store),
            "utility": summarise(results, "paper").as_json() if results else None,
        }
        write_text(run.path / REPORT, json.dumps(report, indent=1, allow_nan=False) + "\n")
        if results:
            write_results(run.path, results, "paper")
    _warn(report)
    return Evaluation(run.path, report, results)


def _ask(plan: Plan, run: RunDir, sink: ReadingFile, *, quiet: bool, build: BuildEngine) -> None:
    """Bring ``readings.jsonl`` to its end."""
    pending = sink.pending([(kind, job.id) for kind, (_, jobs) in plan.asked.items() for job in jobs])
    works: list[EvaluatorWork] = []
    first = 0
    for kind in KINDS:
        if kind.name in plan.asked:
            evaluator, jobs = plan.asked[kind.name]
            works.append(EvaluatorWork(kind, evaluator, jobs, sink, first, pending))
            first += len(jobs)
    run_to_end(run_works(works, run.store, quiet=quiet, budget=plan.config.budget, build=build))


def _by_row(plan: Plan, readings: Sequence[Reading]) -> dict[str, list[list[Reading | None]]]:
    by_job = {(reading.evaluator, reading.job): reading for reading in readings}

    def reading(kind: Kind, row: PlannedRow, index: int) -> Reading | None:
        path = row.paths[index]
        if path is None:
            return None
        if kind.name in plan.recorded:
            return plan.recorded[kind.name].reading(row, path)
        connected = isinstance(plan.asked[kind.name][0], LearnedEvaluator)
        return by_job[kind.name, row.job(path, connected=connected).id]

    return {
        kind.name: [[reading(kind, row, index) for index in range(len(row.paths))] for row in plan.rows]
        for kind in KINDS
    }


def _scores(plan: Plan, contents: Sequence[Mapping[str, Any]], embedder: Callable[[], Embedder]) -> list[Result]:
    """Scores of the rows; none where no embedder is there, which is said."""
    rows = [
        row.row if isinstance(row.row, BadRow) else make_row(dict(content), f"row {number}")
        for number, (row, content) in enumerate(zip(plan.rows, contents, strict=True), 1)
    ]
    try:
        return score_rows(rows, paper(plan.config.rules), plan.config.patience, embedder)
    except UserError as error:
        print(
            printable(
                f"note: no utility: {error}; every judgement is kept, so `python -m eval create score --input "
                f"{Path(plan.config.out) / EVALUATED}` has it later"
            ),
            file=sys.stderr,
        )
        return []


def _settings(config: EvaluateConfig) -> dict[str, Any]:
    """What determines the judgements: the input, the evaluators, their rubrics and prompts."""
    settings: dict[str, Any] = {
        "kind": "create_evaluation",
        "input": config.input,
        "evaluated": config.evaluated,
        "evaluator_prompts": prompts_digest(),
        "inputs_sha256": {"input": file_digest(Path(config.input))},
        "judges": [],
        "rubrics": {},
    }
    for kind in KINDS:
        evaluator = config.evaluator(kind.name)
        if isinstance(evaluator, RecordedEvaluator):
            settings["inputs_sha256"][kind.name] = file_digest(Path(evaluator.recorded))
            continue
        judge = as_judge(kind.name, evaluator)
        if isinstance(evaluator, LearnedEvaluator):
            rubric = load_evaluator_rubric(kind, evaluator.rubric)
            check_trained_for([judge], rubric)
            settings["rubrics"][kind.name] = rubric.model_dump(mode="json", exclude_defaults=True)
        settings["judges"].append(resolved_judge(judge))
    return settings


def _warn(report: Mapping[str, Any]) -> None:
    for kind in KINDS:
        found = report[kind.name]
        if found["failed"]:
            print(
                f"warning: {kind.name}: no answer on {found['failed']} paths, which have no judgement; start the same "
                "command again to ask for them once more",
                file=sys.stderr,
            )
