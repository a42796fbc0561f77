"""The files of an evaluation in its run directory, and reading them back: all that metrics and reports are made from.

``samples.jsonl`` holds ids, human scores, lengths and splits, but no texts, so a run directory can be passed on where
the responses can't. Nothing here needs a model, the benchmark's data or the config that started the run.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, field_validator

from eval.benchmarks.base import Benchmark
from eval.resampling import FEWEST_RESAMPLES, MOST_RESAMPLES
from inference.config import StrictModel, read_yaml, validate
from inference.errors import UserError, quoted
from inference.files import parse_json, write_text
from inference.judgement_file import JobKey, job_key
from inference.judges import JudgeConfig
from inference.records import Finite, Judgement, Sample
from inference.rubric import Rubric

SAMPLES = "samples.jsonl"
JUDGEMENTS = "judgements.jsonl"
SETTINGS = "config.yaml"
ENVIRONMENT = "environment.json"
STORE = "calls.sqlite"
METRICS = "metrics.jsonl"
SCORES = "scores.csv"
KIND = "evaluation"
"""``kind`` in the settings of a run directory; tells evaluations from the runs of other commands."""
LONGEST_NAME = 60
"""Scenarios with more characters are texts; ``samples.jsonl`` names them by a digest."""
MOST_CHARACTERS = 200_000_000
"""In all responses of a run together. More are no lengths of texts that anybody judged, and fill the memory."""

M = TypeVar("M", bound=BaseModel)


class SampleRecord(StrictModel):
    """A line of ``samples.jsonl``."""

    id: str
    scenario: str
    """Cluster of the resampling: the scenario, or a digest of it where it is a text."""
    human: dict[str, dict[str, Finite]]
    """Rater → "step.dimension" → score."""
    length: dict[str, NonNegativeInt]
    """Characters of the response by step."""
    splits: tuple[str, ...]
    benchmark: str
    simulated: bool


class RunSettings(BaseModel):
    """What reports need of a run's ``config.yaml``."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    run: str
    rubric: Rubric
    judges: tuple[JudgeConfig, ...]
    seed: int = Field(ge=0)
    resamples: int = Field(ge=FEWEST_RESAMPLES, le=MOST_RESAMPLES)
    chosen: str = ""
    """How the samples were chosen from those of the benchmark; empty where all were taken."""

    @field_validator("judges", mode="before")
    @classmethod
    def _without_digests(cls, value: Any) -> Any:
        """Beside the settings of a judge, and of its analyst, a run directory holds digests of model and adapter."""
        return [_settings_alone(judge) for judge in value] if isinstance(value, list) else value


def _settings_alone(model: Any) -> Any:
    if not isinstance(model, dict):
        return model
    known = {key: part for key, part in model.items() if key in JudgeConfig.model_fields}
    return {**known, "analyst": _settings_alone(known["analyst"])} if known.get("analyst") else known


@dataclass(frozen=True)
class EvaluatedRun:
    """Everything that is known of an evaluation after its calls."""

    path: Path
    settings: RunSettings
    raw_settings: dict[str, Any]
    """The whole ``config.yaml``."""
    environment: dict[str, Any]
    """Empty where ``environment.json`` is missing."""
    benchmark: str
    simulated: bool
    samples: tuple[Sample, ...]
    """Without texts: each response is as many blanks as it had characters, a long scenario its digest."""
    splits: dict[str, frozenset[str]]
    judgements: list[Judgement]

    @property
    def judges(self) -> dict[str, str]:
        """Judge → method, in order of appearance."""
        return {judgement.judge: judgement.method for judgement in self.judgements}


def write_samples(path: Path, benchmark: Benchmark) -> None:
    """Write ``samples.jsonl``; the same benchmark gives the same bytes."""
    records = (_record(sample, benchmark) for sample in benchmark.samples)
    write_text(path, "".join(record.model_dump_json() + "\n" for record in records))


def _record(sample: Sample, benchmark: Benchmark) -> SampleRecord:
    return SampleRecord(
        id=sample.id,
        scenario=sample.scenario_id or _cluster(sample.scenario),
        human=sample.human,
        length={step: len(text) for step, text in sample.responses.items()},
        splits=tuple(name for name, ids in benchmark.splits.items() if sample.id in ids),
        benchmark=benchmark.name,
        simulated=benchmark.simulated,
    )


def _cluster(scenario: str) -> str:
    return scenario if len(scenario) <= LONGEST_NAME else f"sha256:{sha256(scenario.encode()).hexdigest()[:16]}"


def load_run(path: Path | str) -> EvaluatedRun:
    """Read an evaluation back. Raises UserError, with its place, where files are missing, damaged or of two runs."""
    path = Path(path)
    if not path.is_dir():
        raise UserError(f"{path}: no such run directory; give the `out` of an evaluation that was run")
    for name in (SETTINGS, SAMPLES, JUDGEMENTS):
        if not (path / name).is_file():
            raise UserError(f"{path}: has no {name}, so it holds no evaluation; `python -m eval run` makes one")
    raw = read_yaml(path / SETTINGS)
    if raw.get("kind") != KIND:
        raise UserError(f"{path}: was not made by `python -m eval run` (its {SETTINGS} is of another kind)")
    settings = validate(raw, RunSettings, str(path / SETTINGS))
    records = list(_lines(path / SAMPLES, SampleRecord))
    judgements = list(_lines(path / JUDGEMENTS, Judgement))
    _check_consistent(path, settings, records, judgements)
    return EvaluatedRun(
        path=path,
        settings=settings,
        raw_settings=raw,
        environment=_environment(path / ENVIRONMENT),
        benchmark=records[0].benchmark,
        simulated=any(record.simulated for record in records),
        samples=tuple(_sample(record) for record in records),
        splits=_splits(records),
        judgements=judgements,
    )


def _lines(path: Path, model: type[M]) -> Iterator[M]:
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    # What follows the last line end is a line that a run has not finished writing.
    for number, line in enumerate(lines[:-1], start=1):
        try:
            yield model.model_validate(parse_json(line))
        except ValueError:
            raise UserError(f"{path}: line {number} is damaged; {_ANEW}") from None


_ANEW = (
    "delete this file and start the evaluation again with the same config: it is written anew from the finished calls"
)


def _check_consistent(
    path: Path, settings: RunSettings, records: list[SampleRecord], judgements: list[Judgement]
) -> None:
    if not records or not judgements:
        empty = SAMPLES if not records else JUDGEMENTS
        raise UserError(f"{path}: {empty} has no finished line yet; start the evaluation again to go on with it")
    ids = _sample_ids(path / SAMPLES, records)
    _check_judgements(path / JUDGEMENTS, judgements)
    rubric = f"{settings.rubric.name}@{settings.rubric.digest}"
    methods: dict[str, str] = {}
    for number, judgement in enumerate(judgements, start=1):
        place = f"{path / JUDGEMENTS}: line {number}"
        if judgement.sample_id not in ids:
            raise UserError(f"{place}: sample {judgement.sample_id!r} is not in {SAMPLES}; the files are of two runs")
        if judgement.rubric != rubric:
            raise UserError(f"{place}: was judged by rubric {judgement.rubric}, but the run's settings hold {rubric}")
        if methods.setdefault(judgement.judge, judgement.method) != judgement.method:
            raise UserError(f"{place}: judge {judgement.judge!r} has two methods; each needs a name of its own")


def _sample_ids(path: Path, records: list[SampleRecord]) -> set[str]:
    first: dict[str, int] = {}
    characters = 0
    for number, record in enumerate(records, start=1):
        if first.setdefault(record.id, number) != number:
            raise UserError(
                f"{path}: line {number} repeats sample {quoted(record.id)} of line {first[record.id]}; {_ANEW}"
            )
        characters += sum(record.length.values())
        if characters > MOST_CHARACTERS:
            raise UserError(
                f"{path}: line {number}: the responses up to here have more than {MOST_CHARACTERS:,} characters, "
                f"which is more than a report can hold; {_ANEW}"
            )
    return set(first)


def _check_judgements(path: Path, judgements: list[Judgement]) -> None:
    first: dict[JobKey, int] = {}
    for number, judgement in enumerate(judgements, start=1):
        known = first.setdefault(job_key(judgement), number)
        judged = f"judge {quoted(judgement.judge)}, sample {quoted(judgement.sample_id)}, repeat {judgement.repeat}"
        what = f"line {number} ({judged})"
        if known != number:
            raise UserError(f"{path}: {what} repeats line {known}; {_ANEW}")
        if len({score.key for score in judgement.scores}) < len(judgement.scores):
            raise UserError(f"{path}: {what} has two scores of one dimension; {_ANEW}")


def _environment(path: Path) -> dict[str, Any]:
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _sample(record: SampleRecord) -> Sample:
    # Metrics read nothing of a response but its length.
    blanks = {step: " " * length for step, length in record.length.items()}
    return Sample(id=record.id, scenario=record.scenario, responses=blanks, human=record.human)


def _splits(records: list[SampleRecord]) -> dict[str, frozenset[str]]:
    members: dict[str, set[str]] = {}
    for record in records:
        for split in record.splits:
            members.setdefault(split, set()).add(record.id)
    return {split: frozenset(ids) for split, ids in members.items()}
