"""Evidence written by a trained analyst on responses that it has not learned from, through the engines.

    python -m training traces write --analyst RUN/adapter --benchmark-config FILE --splits FILE --fold fold0 --out DIR

Stopped and started again, finished calls are not repeated. ``evidence.json`` has the official layout.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from eval.benchmarks.cgpst.exchange import read_evidence, write_evidence
from eval.evidence import Quality, quality
from inference.adapter_notes import AnalystNote, read_analyst, weights_of
from inference.adapters import check_base, read_adapter
from inference.asking import Asker
from inference.budget import Meter
from inference.engines.base import EngineError, build_engine
from inference.engines.pool import BuildEngine
from inference.errors import UserError, named_list
from inference.files import write_text
from inference.judge import run_to_end
from inference.judges import ModelConfig, resolved_model
from inference.methods import Settings
from inference.methods.compact import analyse_compact
from inference.methods.creaeval import analyse
from inference.progress import ProgressReport
from inference.records import Sample, StepEvidence
from inference.rubric import Rubric
from inference.run_dir import RunDir
from inference.tokens import model_directory
from training.sot_rows import prompt_version
from training.sources import Source
from training.splits import need_known, side_of
from training.traces.filter import FilterConfig

OUT = "evidence.json"
QUALITY = "quality.json"


def check_analyst(model: ModelConfig, source: Source, ids: frozenset[str]) -> AnalystNote:
    """What is noted beside the weights of an analyst.

    Raises UserError for an adapter of another base, rubric or prompts, and where it has learned from one of `ids`.
    """
    adapter = weights_of(model)
    note = read_analyst(adapter)
    rubric = f"{source.rubric.name}@{source.rubric.digest}"
    if note.rubric != rubric:
        raise UserError(f"{adapter}: was trained for the rubric {note.rubric}, but the data's is {rubric}")
    here = prompt_version(source.rubric, note.profile)
    if note.prompts != here:
        raise UserError(
            f"{adapter}: was trained on the prompts {note.prompts}, but this program has {here}; train it again"
        )
    seen = sorted(ids & set(note.trained_on))
    if seen:
        raise UserError(
            f"{adapter}: has learned from {len(seen)} of the answers it shall write on ({named_list(seen)}); name the "
            "fold that was left out of its training"
        )
    if model.adapter:
        check_base(read_adapter(adapter), model_directory(model.model))
    return note


def write_fold(
    model: ModelConfig,
    source: Source,
    splits: str,
    fold: str,
    out: Path,
    check: FilterConfig,
    *,
    side: Literal["train", "test"] = "test",
    limit: int | None = None,
    quiet: bool = False,
    build: BuildEngine = build_engine,
) -> dict[str, Quality]:
    """Write evidence on the answers on one side of `fold` into the run directory `out`; its quality by step."""
    ids = side_of(splits, fold, side)
    need_known(ids, source.samples, splits)
    samples = [sample for sample in source.samples if sample.id in ids][:limit]
    note = check_analyst(model, source, frozenset(sample.id for sample in samples))
    with RunDir.open(out, _resolved(model, source.rubric, note, samples)) as run:
        work = _write_all(samples, source.rubric, model, note, run, quiet=quiet, build=build)
        found = run_to_end(work)
        write_evidence(out / OUT, found, source.rubric)
    measured = quality(source.rubric, samples, found, no_choice=check.no_choice, unquoted_steps=check.unquoted_steps)
    write_text(out / QUALITY, json.dumps({name: asdict(part) for name, part in measured.items()}, indent=1) + "\n")
    return measured


def _resolved(model: ModelConfig, rubric: Rubric, note: AnalystNote, samples: Sequence[Sample]) -> dict[str, Any]:
    return {
        "kind": "evidence",
        "rubric": rubric.model_dump(mode="json", exclude_defaults=True),
        "analyst": resolved_model(model),
        "profile": note.profile,
        "prompts": note.prompts,
        "samples": [sample.id for sample in samples],
    }


async def _write_all(
    samples: Sequence[Sample],
    rubric: Rubric,
    model: ModelConfig,
    note: AnalystNote,
    run: RunDir,
    *,
    quiet: bool,
    build: BuildEngine,
) -> dict[str, tuple[StepEvidence, ...]]:
    engine = build(model)
    asker = Asker("analyst", model, engine, run.store, Meter(None, [model], run.store))
    settings = Settings(temperature=model.temperature, max_tokens=model.max_tokens, analysis_tokens=model.max_tokens)
    found: dict[str, tuple[StepEvidence, ...]] = {}
    waiting = iter(samples)
    with ProgressReport("analyst", len(samples), 0, quiet) as report:

        async def work() -> None:
            for sample in waiting:
                found[sample.id] = await _evidence(sample, rubric, note, asker, settings, run)
                asker.check_health()
                report.advance()

        workers = [asyncio.create_task(work()) for _ in range(min(len(samples), model.calls_in_flight))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            await asker.close()
            await engine.close()
    return {sample.id: found[sample.id] for sample in samples}


async def _evidence(
    sample: Sample, rubric: Rubric, note: AnalystNote, asker: Asker, settings: Settings, run: RunDir
) -> tuple[StepEvidence, ...]:
    """The evidence that can be read; a call that failed leaves the sample without any, as an unreadable answer does."""
    try:
        if note.profile == "compact":
            return tuple((await analyse_compact(rubric, sample, asker, settings))[0])
        found = await analyse(rubric, sample, asker, settings)
        return tuple(part for part in found.values() if isinstance(part, StepEvidence))
    except EngineError as error:
        run.log(f"{sample.id}: {error}")
        return ()


def merge(files: Sequence[Path], out: Path, rubric: Rubric) -> int:
    """Write the evidence of several files, such as those of all folds, into a new one; the number of answers.

    Raises UserError where two files have evidence on the same answer.
    """
    if out.exists():
        raise UserError(f"{out} exists; choose another name, nothing is overwritten")
    merged: dict[str, tuple[StepEvidence, ...]] = {}
    for file in files:
        found = read_evidence(file, rubric)
        both = sorted(set(found) & set(merged))
        if both:
            raise UserError(f"{file}: has evidence on {named_list(both)}, and so has a file before it; give each once")
        merged |= found
    write_evidence(out, merged, rubric)
    return len(merged)
