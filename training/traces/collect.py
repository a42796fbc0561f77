"""Runs of an analyst, or the oracle of a simulation, → traces.

A run directory holds no texts, so responses and ratings are read again from the files that its settings name; a file
that has changed since the run is refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eval.benchmarks.cgpst.benchmark import CgpstConfig
from eval.benchmarks.cgpst.exchange import read_evidence
from eval.benchmarks.simulation.files import EVIDENCE, RATINGS, SCENARIO_FILE
from inference.adapters import file_digest
from inference.config import read_yaml, validate
from inference.errors import UserError, named, named_list
from inference.files import os_errors, parse_json
from inference.prompts import template_digest
from inference.prompts.compact import step_memory
from inference.records import Judgement, Sample, StepEvidence
from inference.rubric import Rubric, load_rubric
from training.sources import Source, SourceConfig
from training.splits import noted, training_part
from training.traces.records import Trace, TracesInfo, check_new, write_traces

ANALYSTS = ("creaeval", "compact_creaeval")
"""Methods whose evidence an analyst wrote before any score was given."""
ORACLE = "oracle"
UNSCORED, WITHOUT_TEXT, IN_TEST = "unscored", "no evidence", "not in the training part"


@dataclass
class Collection:
    """Traces of one kind, as they are gathered."""

    rubric: Rubric
    prompts: str
    simulated: bool
    traces: list[Trace] = field(default_factory=list)
    teachers: dict[str, str] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def collect_runs(
    runs: Sequence[Path], out: Path, *, judges: Sequence[str] = (), splits: str | None = None, split: str = "scenario"
) -> TracesInfo:
    """Write the traces of evaluation and judging runs into the new folder `out`.

    Args:
        judges: ids of the judges whose evidence is taken; by default all that have an analyst.
        splits, split: file and name of a split; answers of its test part are left out and counted.

    Raises UserError for a run without evidence, one that left every sample unscored, runs of different rubrics or
    prompts, and prompts that are not those of this program. Nothing has been written then.
    """
    check_new(out)
    if not runs:
        raise UserError("no run to collect from: name run directories, or a simulation with --oracle")
    found: Collection | None = None
    for run in runs:
        found = _add_run(found, run, judges)
    assert found is not None
    return _finish(found, out, splits, split)


def collect_oracle(
    folder: Path, out: Path, *, splits: str | None = None, split: str = "scenario", rubric: str = "cgpst"
) -> TracesInfo:
    """Write the oracle evidence of a simulation, made by ``python -m eval data synth-cgpst``, as traces."""
    check_new(out)
    needed = (RATINGS, SCENARIO_FILE, EVIDENCE)
    missing = [name for name in needed if not (folder / name).is_file()]
    if missing:
        raise UserError(
            f"{folder}: has no {named_list(missing)}; make it with `python -m eval data synth-cgpst --out {folder}`"
        )
    loaded = load_rubric(rubric)
    files = {"ratings": str(folder / RATINGS), "scenarios": str(folder / SCENARIO_FILE)}
    benchmark = CgpstConfig(name="cgpst", part="all", **files)
    source = SourceConfig(rubric=loaded, benchmark=benchmark).load()
    found = Collection(loaded, template_digest(), source.simulated)
    found.teachers[ORACLE] = "the oracle analyst of the simulation, which knows each response's properties"
    found.sources.append(str(folder))
    evidence = read_evidence(folder / EVIDENCE, loaded)
    for sample in source.samples:
        if sample.id not in evidence:
            found.left_out[WITHOUT_TEXT] += 1
            continue
        found.traces += traces_of(loaded, sample, evidence[sample.id], {}, ORACLE, 0, memory=True)
    return _finish(found, out, splits, split)


def _finish(found: Collection, out: Path, splits: str | None, split: str) -> TracesInfo:
    traces, chosen = found.traces, None
    if splits is not None:
        ids = {trace.sample_id for trace in traces}
        train, chosen = training_part(ids, splits, split), noted(splits, split)
        found.left_out[IN_TEST] += len(ids - train)
        traces = [trace for trace in traces if trace.sample_id in train]
    info = TracesInfo(
        teachers=found.teachers,
        sources=tuple(found.sources),
        rubric=found.rubric,
        rubric_digest=found.rubric.digest,
        prompts=found.prompts,
        simulated=found.simulated,
        split=chosen,
        left_out=dict(found.left_out),
    )
    write_traces(out, traces, info)
    return info


def _add_run(found: Collection | None, run: Path, judges: Sequence[str]) -> Collection:
    settings = run_settings(run)
    source = run_source(run, settings)
    _check_prompts(run, settings)
    if found is None:
        found = Collection(source.rubric, template_digest(), source.simulated)
    elif found.rubric.digest != source.rubric.digest:
        raise UserError(
            f"{run}: judged by the rubric {source.rubric.name}@{source.rubric.digest}, the runs before it by "
            f"{found.rubric.name}@{found.rubric.digest}; collect them into folders of their own"
        )
    found.simulated = found.simulated or source.simulated
    teachers = run_analysts(run, settings, judges)
    found.sources.append(str(run))
    samples = {sample.id: sample for sample in source.samples}
    before = len(found.traces)
    for judgement in run_judgements(run, source.rubric):
        if judgement.judge not in teachers:
            continue
        if judgement.sample_id not in samples:
            raise UserError(f"{run}: the sample {named(judgement.sample_id)} is not in the data that its settings name")
        if not judgement.evidence:
            found.left_out[WITHOUT_TEXT] += 1
        elif any(score.unscored is not None for score in judgement.scores):
            found.left_out[UNSCORED] += 1
        else:
            memory = teachers[judgement.judge].get("memory", True)
            found.traces += _of_judgement(source.rubric, samples[judgement.sample_id], judgement, memory=memory)
    if len(found.traces) == before:
        what = ", ".join(f"{count} {reason}" for reason, count in found.left_out.items() if count) or "none judged"
        raise UserError(
            f"{run}: no judgement of {named_list(teachers)} is whole ({what}), so there is nothing to learn from; "
            "start the run again to ask for them once more, or take another teacher"
        )
    found.teachers |= {name: _described(judge) for name, judge in teachers.items()}
    return found


def run_settings(run: Path) -> dict[str, Any]:
    """The settings in a run directory. Raises UserError where there are none."""
    for name in ("config.yaml", "judgements.jsonl"):
        if not (run / name).is_file():
            raise UserError(f"{run}: has no {name}, so it is no run; give the `out` of an evaluation or judging run")
    return read_yaml(run / "config.yaml")


def run_source(run: Path, settings: dict[str, Any]) -> Source:
    """The samples of a run, read again. Raises UserError where their files are not those that were judged."""
    config = validate(settings, SourceConfig, str(run / "config.yaml"))
    digests = settings.get("inputs_sha256") or {"input": settings.get("input_sha256")}
    for name, file in config.files.items():
        if file_digest(Path(file)) != digests.get(name):
            raise UserError(f"{run}: {file} has changed since the run; restore the file, or run the teacher again")
    return config.load()


def _check_prompts(run: Path, settings: dict[str, Any]) -> None:
    if settings.get("prompt_templates") != template_digest():
        raise UserError(
            f"{run}: was made with the prompt templates {settings.get('prompt_templates')}, but this program has "
            f"{template_digest()}; run the teacher again, or collect with the version that made the run"
        )


def run_analysts(run: Path, settings: dict[str, Any], wanted: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Id → settings of the judges that have an analyst of their own and are wanted."""
    listed = settings.get("judges") or []
    analysts = {
        str(judge["id"]): judge
        for judge in listed
        if judge.get("method") in ANALYSTS
        and judge.get("decoupled", True)
        and judge.get("evidence", True)
        and not judge.get("evidence_file")  # somebody else's evidence
    }
    if not analysts:
        raise UserError(f"{run}: none of its judges has an analyst; collect from runs of {named_list(ANALYSTS)}")
    unknown = [name for name in wanted if name not in analysts]
    if unknown:
        raise UserError(f"{run}: has no judge {named_list(unknown)} with an analyst; it has {named_list(analysts)}")
    return {name: judge for name, judge in analysts.items() if not wanted or name in wanted}


def _described(judge: dict[str, Any]) -> str:
    analyst = judge.get("analyst") or judge
    parts = [f"{judge['method']}, analyst {analyst.get('engine')} {analyst.get('model')}"]
    if analyst.get("adapter"):
        parts.append(f"adapter {analyst['adapter']}@{analyst.get('adapter_digest', '?')}")
    return ", ".join(parts)


def run_judgements(run: Path, rubric: Rubric) -> Iterator[Judgement]:
    """What the run has finished. Raises UserError for a damaged line, and a judgement by another rubric."""
    path = run / "judgements.jsonl"
    with os_errors(path, "cannot be read"):
        lines = path.read_bytes().split(b"\n")
    # What follows the last line end is a line that a run has not finished writing.
    for number, line in enumerate(lines[:-1], start=1):
        try:
            judgement = Judgement.model_validate(parse_json(line))
        except ValueError:
            raise UserError(f"{path}: line {number} is damaged; start the run again, it is written anew") from None
        if judgement.rubric != f"{rubric.name}@{rubric.digest}":
            raise UserError(
                f"{path}: line {number} was judged by the rubric {judgement.rubric}, but the run's settings hold "
                f"{rubric.name}@{rubric.digest}; the files are of two runs"
            )
        yield judgement


def _of_judgement(rubric: Rubric, sample: Sample, judgement: Judgement, *, memory: bool) -> list[Trace]:
    judged = {score.key: score.value for score in judgement.scores if score.value is not None}
    return traces_of(rubric, sample, judgement.evidence, judged, judgement.judge, judgement.repeat, memory=memory)


def traces_of(
    rubric: Rubric,
    sample: Sample,
    evidence: Sequence[StepEvidence],
    judged: Mapping[str, float],
    teacher: str,
    repeat: int,
    *,
    memory: bool,
) -> list[Trace]:
    """One trace per step that has evidence and a response: on an empty one nobody was asked."""
    found = []
    memories: dict[str, str] = {}
    noted: dict[str, str] = {}
    by_step = {part.step: part for part in evidence}
    for step in rubric.answered:
        part, response = by_step.get(step.name), sample.responses.get(step.name, "")
        if part is None or not response.strip():
            continue
        keys = {f"{s.name}.{d.name}" for s, d in rubric.unsummed if s.name == step.name}
        found.append(
            Trace(
                sample_id=sample.id,
                scenario_id=sample.scenario_id,
                scenario=sample.scenario,
                subject=sample.subject,
                step=step.name,
                response=response,
                memories=dict(memories) if memory else {},
                noted=dict(noted) if memory else {},
                evidence=part,
                items=tuple(range(1, len(part.items) + 1)),
                human={
                    rater: {key: score for key, score in scores.items() if key in keys}
                    for rater, scores in sample.human.items()
                },
                judged={key: score for key, score in judged.items() if key in keys},
                teacher=teacher,
                repeat=repeat,
            )
        )
        memories[step.name] = part.memory
        noted[step.name] = step_memory(step, part)
    return found
