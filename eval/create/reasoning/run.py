"""A generation's answers in, what their reasoning traces go through out.

    python -m eval create reasoning --config configs/eval/create_reasoning.yaml --dry-run
    python -m eval create reasoning --config configs/eval/create_reasoning.yaml

The run directory holds ``readings.jsonl`` (relations, entities and strategies of each trace) and ``report.json``. The
same command goes on where a run was interrupted; traces on which no reply came are asked about again.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group

from eval.create.generation.records import Answer
from eval.create.reasoning.asked import TraceWork, trace_call
from eval.create.reasoning.prompts import prompt_digest
from eval.create.reasoning.records import READINGS, Trace, TraceReadingFile, read_answers, traces
from eval.create.reasoning.report import trace_report
from eval.create.reasoning.settings import ReasoningConfig
from inference.adapters import file_digest
from inference.budget import checked_prices
from inference.config import load_config
from inference.engines.base import build_engine
from inference.engines.pool import BuildEngine
from inference.estimate import Asked, added_up
from inference.files import write_text
from inference.judge import run_to_end
from inference.judges import resolved_model
from inference.run_dir import RunDir
from inference.tables import estimate_table
from inference.work import run_works

REPORT = "report.json"


@dataclass(frozen=True)
class TracePlan:
    """What a config asks for, read and checked."""

    config: ReasoningConfig
    answers: Sequence[Answer]
    traces: Sequence[Trace]

    def estimated(self) -> Group:
        """Calls, tokens and price, to be printed; nothing is asked. Raises UserError for a missing local model."""
        checked_prices(self.config.budget, [self.config.extractor])
        asked = Asked(self.config.extractor)
        run_to_end(self._ask_all(asked))
        found = added_up({self.config.extractor.model: [asked]}, (), "extractor")
        return estimate_table(found, len(self.traces), self.config.budget, kind="extractor", items="traces")

    async def _ask_all(self, asked: Asked) -> None:
        for trace in self.traces:
            await asked.ask(trace_call(trace, self.config))


def read_plan(path: Path | str, out: Path | str | None = None) -> TracePlan:
    """Read and check everything that a config names; nothing is written. Raises UserError."""
    config = load_config(path, ReasoningConfig)
    config = config.model_copy(update={"out": str(out)}) if out else config
    answers = read_answers(config.input)
    return TracePlan(config, answers, traces(answers, config.longest_trace))


def read_traces(
    plan: TracePlan, *, quiet: bool = False, build: BuildEngine = build_engine
) -> tuple[Path, dict[str, Any]]:
    """Run or resume: the run directory, and its report (`trace_report`).

    Raises UserError where the run directory belongs to other settings, the engine doesn't answer, or the budget is
    spent; everything finished is kept.
    """
    with RunDir.open(plan.config.out, _settings(plan.config), judged=False) as run:
        sink = run.keep(TraceReadingFile(run.path / READINGS))
        pending = sink.pending([(trace.generator, trace.id) for trace in plan.traces])
        work = TraceWork(plan.config, plan.traces, sink, pending)
        run_to_end(run_works([work], run.store, quiet=quiet, budget=plan.config.budget, build=build))
        report = trace_report(plan.answers, list(sink.read()), plan.config.extractor, run.store)
        write_text(run.path / REPORT, json.dumps(report, indent=1, allow_nan=False) + "\n")
    failed = sum(row["failed"] for row in report["generators"])
    if failed:
        print(
            f"warning: no reply on {failed} traces; start the same command again to ask for them once more",
            file=sys.stderr,
        )
    return run.path, report


def _settings(config: ReasoningConfig) -> dict[str, Any]:
    """What determines the readings."""
    return {
        "kind": "create_reasoning",
        "input": config.input,
        "inputs_sha256": {"input": file_digest(Path(config.input))},
        "longest_trace": config.longest_trace,
        "extractor_prompt": prompt_digest(),
        # Under this name, as for every judge, what doesn't touch the replies may change between starts.
        "judges": [resolved_model(config.extractor)],
    }
