"""Score responses that nobody has rated: a CSV or JSONL file in, ``scores.csv`` out.

    python -m inference judge --config configs/judging/aut_learned.yaml --input mine.csv --out runs/mine
    python -m inference judge --config configs/judging/aut_openai.yaml --dry-run

In Python::

    from inference.judge import judge_samples
    judgements = judge_samples(samples, load_rubric("configs/rubrics/aut.yaml"), JudgeConfig(...))
"""

import asyncio
import sys
import tempfile
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from pydantic import model_validator
from rich.console import Console, Group

from inference.adapters import file_digest
from inference.budget import BudgetReached, checked_prices
from inference.config import load_config
from inference.estimate import estimate_all
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig, Judges, refuse_evidence_files, resolved_judge
from inference.methods.evidence import Evidence
from inference.records import Judgement, Sample
from inference.rubric import Rubric, load_rubric
from inference.run_dir import RunDir
from inference.runner import JudgeRun, run_judges
from inference.samples import Columns, read_samples
from inference.score_file import write_scores
from inference.store import Store
from inference.tables import estimate_table, summary_table

T = TypeVar("T")
SCORES = "scores.csv"


class JudgingConfig(Judges):
    """Settings of ``python -m inference judge``. Paths are relative to the working directory."""

    rubric: str
    """A rubric file."""
    input: str
    """Responses to judge, ``.csv`` or ``.jsonl``."""
    columns: Columns = Columns()
    out: str
    """Run directory. Starting again with the same settings resumes it."""

    @model_validator(mode="after")
    def _has_judges(self) -> "JudgingConfig":
        if not self.asked:
            raise ValueError("no judge: fill `judges`, `grid` or both")
        refuse_evidence_files(self.asked)
        return self


def judge_file(
    config_path: Path,
    input_path: Path | None = None,
    out: Path | None = None,
    dry_run: bool = False,
    limit: int | None = None,
) -> None:
    """The command: judge a file, or with `dry_run` print what that would ask. The paths override the config's.

    `limit`: judge the first so many samples only, in a run of its own.
    """
    config = load_config(config_path, JudgingConfig)
    changed = {"input": input_path and str(input_path), "out": out and str(out)}
    config = config.model_copy(update={key: value for key, value in changed.items() if value})
    rubric = load_rubric(config.rubric)
    samples = read_samples(config.input, rubric, config.columns)[:limit]
    console = Console()
    if dry_run:
        console.print(estimated(samples, config, rubric))
        return
    with RunDir.open(config.out, _resolved(config, rubric, limit)) as run:
        work = run_judges(samples, config.asked, rubric, run.store, run.judgements, budget=config.budget)
        try:
            runs = run_to_end(work)
        except BudgetReached as stop:
            raise BudgetReached(f"{stop}; {_write_partly(run, samples, rubric, stop.waiting)}") from None
        judgements = list(run.judgements.read())
        # A damaged store shows here, before the old scores are replaced.
        table = summary_table(config.asked, runs, judgements, run.store)
        scores = run.path / SCORES
        write_scores(scores, samples, rubric, judgements)
        console.print(table)
    warn_of_failures(runs)
    console.print(f"scores: {scores}", soft_wrap=True, highlight=False, markup=False)


def estimated(
    samples: Sequence[Sample], judges: Judges, rubric: Rubric, evidence: Mapping[str, Evidence] | None = None
) -> Group:
    """What judging `samples` would ask, to be printed. Raises UserError for a budget that needs a missing price.

    `evidence`: as `run_judges` takes it.
    """
    checked_prices(judges.budget, [model for judge in judges.asked for model in judge.models])
    found = run_to_end(estimate_all(samples, judges.asked, rubric, evidence))
    return estimate_table(found, len(samples), judges.budget)


def _write_partly(run: RunDir, samples: Sequence[Sample], rubric: Rubric, waiting: Sequence[Judgement]) -> str:
    """Write the scores that a stopped run has, and say what they are."""
    judgements = [*run.judgements.read(), *waiting]
    if not judgements:
        return "no judgement is finished, so there are no scores yet"
    write_scores(run.path / SCORES, samples, rubric, judgements)
    return f"partial scores ({len(judgements)} finished judgements): {run.path / SCORES}"


def warn_of_failures(runs: Sequence[JudgeRun]) -> None:
    """A line on stderr for each judge with judgements that failed."""
    for done in runs:
        if done.failed:
            print(
                f"warning: judge {done.judge}: {done.failed} of {done.judgements} judgements failed and are unscored; "
                "start the same command again to ask for them once more",
                file=sys.stderr,
            )


def judge_samples(samples: Sequence[Sample], rubric: Rubric, judge: JudgeConfig) -> list[Judgement]:
    """Judge samples in memory: judgements in the order of `samples`, in it by repeat. Nothing is kept on disk.

    Raises UserError where the engine cannot be built or doesn't answer, or every judgement fails.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        Store(Path(folder) / "calls.sqlite") as store,
        JudgementFile(Path(folder) / "judgements.jsonl") as sink,
    ):
        run_to_end(run_judges(samples, [judge], rubric, store, sink, quiet=True))
        return list(sink.read())


def run_to_end(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, also where an event loop already runs, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as executor:
        return executor.submit(asyncio.run, work).result()


def _resolved(config: JudgingConfig, rubric: Rubric, limit: int | None) -> dict[str, Any]:
    return {
        "rubric": rubric.model_dump(mode="json", exclude_defaults=True),
        "input": config.input,
        "input_sha256": file_digest(Path(config.input)),
        **({} if limit is None else {"limit": limit}),
        # What is not set stays unset when the settings are read again: a default is no wish.
        "columns": config.columns.model_dump(mode="json", exclude_defaults=True),
        "judges": [resolved_judge(judge) for judge in config.asked],
    }
