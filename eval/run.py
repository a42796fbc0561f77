"""One evaluation: judges on a benchmark's samples, beside recorded judges, into a run directory with its report.

    python -m eval run --config configs/eval/aut_published.yaml

The same command goes on where a run was interrupted. All files but ``calls.sqlite`` and ``log.txt`` depend on the
config, the data and the completions alone.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator
from rich.console import ConsoleRenderable

from eval.benchmarks import aut
from eval.benchmarks.base import Benchmark
from eval.benchmarks.cgpst import benchmark as cgpst
from eval.benchmarks.cgpst.exchange import read_evidence
from eval.create import triples
from eval.recorded import RecordedConfig, read_recorded
from eval.report import Report, write_report
from eval.resampling import FEWEST_RESAMPLES, MOST_RESAMPLES, RESAMPLES
from eval.run_files import KIND, SAMPLES, SCORES, write_samples
from inference.adapter_notes import refuse_trained_on
from inference.adapters import file_digest
from inference.config import Whole, load_config
from inference.engines.base import build_engine
from inference.engines.pool import BuildEngine
from inference.errors import UserError, named_list, quoted
from inference.judge import estimated, run_to_end, warn_of_failures
from inference.judgement_file import job_key
from inference.judges import Judges, resolved_judge
from inference.methods.evidence import Evidence
from inference.records import Judgement
from inference.rubric import Rubric, load_rubric
from inference.run_dir import RunDir
from inference.runner import check_judges, job_keys, run_judges
from inference.score_file import write_scores

BenchmarkConfig = aut.AutConfig | cgpst.CgpstConfig | triples.TriplesConfig


class EvalConfig(Judges):
    """An evaluation config, ``configs/eval/*.yaml``."""

    run: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$", max_length=80)
    """Name of the run in tables."""
    out: str
    """Run directory."""
    rubric: str
    """A rubric file."""
    benchmark: BenchmarkConfig
    """Which of them says its `name`; without a name it is aut."""
    recorded: tuple[RecordedConfig, ...] = ()
    """Judges whose scores exist already."""
    seed: Whole = Field(default=0, ge=0)
    resamples: Whole = Field(default=RESAMPLES, ge=FEWEST_RESAMPLES, le=MOST_RESAMPLES)
    """Resamples behind each interval and p-value."""

    @field_validator("benchmark", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> BenchmarkConfig:
        return value if isinstance(value, BenchmarkConfig) else benchmark_config(value)

    @model_validator(mode="after")
    def _has_judges(self) -> "EvalConfig":
        if not self.recorded and not self.asked:
            raise ValueError("no judge to evaluate: fill `judges`, `grid` or `recorded`")
        return self


@dataclass(frozen=True)
class _Inputs:
    """What a config names, read and checked."""

    rubric: Rubric
    benchmark: Benchmark
    evidence: Mapping[str, Evidence]
    recorded: list[Judgement]
    notes: list[str]
    settings: dict[str, Any]


def evaluate(
    config_path: Path | str,
    *,
    out: Path | str | None = None,
    limit: int | None = None,
    quiet: bool = False,
    build: BuildEngine = build_engine,
) -> Report:
    """Run or resume the evaluation of a config, and write its metrics and report.

    Args:
        out: run directory in place of the config's.
        limit: judge the first `limit` samples only.
        quiet: no progress on stderr.
        build: how engines are made.

    Raises:
        UserError: something in the config is wrong (nothing has been written), the run directory belongs to another
            evaluation (left as it is), or an engine stopped answering (everything finished is kept).
    """
    config = load_config(config_path, EvalConfig)
    inputs = _read_inputs(config, limit)
    with RunDir.open(Path(out or config.out), inputs.settings) as run:
        for note in inputs.notes:
            run.log(note)
            print(f"note: {note}", file=sys.stderr)
        write_samples(run.path / SAMPLES, inputs.benchmark)
        _judge(config, inputs, run, quiet=quiet, build=build)
        write_scores(run.path / SCORES, inputs.benchmark.samples, inputs.rubric, run.judgements.read())
        return write_report(run.path)


def dry_run(config_path: Path | str, limit: int | None = None) -> ConsoleRenderable:
    """What `evaluate` would ask, to be printed; nothing is asked or written. Raises UserError where that would."""
    config = load_config(config_path, EvalConfig)
    inputs = _read_inputs(config, limit)
    return estimated(inputs.benchmark.samples, config, inputs.rubric, inputs.evidence)


def _read_inputs(config: EvalConfig, limit: int | None) -> _Inputs:
    """Read and check everything before the run directory is touched."""
    rubric = load_rubric(config.rubric)
    benchmark = _limited(load_benchmark(config.benchmark, rubric), limit)
    if not any(scores for sample in benchmark.samples for scores in sample.human.values()):
        larger = "" if limit is None else ", or a larger --limit"
        raise UserError(
            f"benchmark: nobody has rated any of its {len(benchmark.samples)} samples, so there is nothing to compare "
            f"judges with; name a file that holds ratings{larger}"
        )
    evidence = {judge.id: read_evidence(judge.evidence_file, rubric) for judge in config.asked if judge.evidence_file}
    check_judges(benchmark.samples, config.asked, rubric, evidence)
    refuse_trained_on(config.asked, benchmark.samples)
    recorded, notes = _read_recorded(config, benchmark, rubric)
    # With a limit most lines of the files are without a sample, as was asked for.
    notes = notes if limit is None else []
    notes += [note for judge, given in evidence.items() for note in _without_evidence(judge, given, benchmark)]
    return _Inputs(rubric, benchmark, evidence, recorded, notes, _settings(config, rubric, limit, benchmark))


def _read_recorded(config: EvalConfig, benchmark: Benchmark, rubric: Rubric) -> tuple[list[Judgement], list[str]]:
    """The recorded judges, and notes on what their files have too much or too little."""
    recorded: list[Judgement] = []
    notes: list[str] = []
    for entry in config.recorded:
        found = read_recorded(entry.file, benchmark.samples, rubric, entry.judges)
        recorded += found.judgements
        notes += found.notes
    once = {(judgement.judge, judgement.sample_id): judgement.judge for judgement in recorded}
    if len(once) < len(recorded):
        raise UserError("recorded: two files hold the same judge; name the wanted ones of each file under `judges:`")
    taken = sorted(set(once.values()) & {judge.id for judge in config.asked})
    if taken:
        raise UserError(f"the judges {taken} are both recorded and to be asked; give one of them another id")
    return recorded, notes


def _without_evidence(judge: str, given: Evidence, benchmark: Benchmark) -> Iterator[str]:
    without = [sample.id for sample in benchmark.samples if not sample.blank and not given.get(sample.id)]
    if without:
        yield (
            f"judge {judge}: its evidence_file has nothing on {len(without)} of {len(benchmark.samples)} responses "
            f"({named_list(without)}), which stay unscored"
        )


def benchmark_config(value: Any) -> BenchmarkConfig:
    """``benchmark:`` of a config. Raises ValueError for an unknown name, pydantic's own for other faults."""
    # A discriminated union would need the name written out, and would stand in the places of all faults.
    known: dict[str, type[BenchmarkConfig]] = {
        "aut": aut.AutConfig,
        "cgpst": cgpst.CgpstConfig,
        "create_triples": triples.TriplesConfig,
    }
    name = str(value.get("name", "aut")) if isinstance(value, dict) else "aut"
    if name not in known:
        raise ValueError(f"name: {quoted(name)} is no benchmark; those are {named_list(known)}")
    return known[name].model_validate(value)


def load_benchmark(config: BenchmarkConfig, rubric: Rubric) -> Benchmark:
    """The samples that a config's ``benchmark:`` names."""
    if isinstance(config, cgpst.CgpstConfig):
        return cgpst.load(config, rubric)
    return triples.load(config, rubric) if isinstance(config, triples.TriplesConfig) else aut.load(config, rubric)


def _limited(benchmark: Benchmark, limit: int | None) -> Benchmark:
    if limit is None:
        return benchmark
    samples = benchmark.samples[:limit]
    ids = {sample.id for sample in samples}
    return replace(benchmark, samples=samples, splits={name: held & ids for name, held in benchmark.splits.items()})


def _settings(config: EvalConfig, rubric: Rubric, limit: int | None, loaded: Benchmark) -> dict[str, Any]:
    """The resolved settings: the config with the rubric itself and digests of all that it names."""
    benchmark = config.benchmark
    if isinstance(benchmark, aut.AutConfig):
        inputs = {"test": benchmark.test, "overlap": benchmark.overlap}
    else:
        inputs = benchmark.files
    inputs |= {f"recorded.{number}": entry.file for number, entry in enumerate(config.recorded)}
    return {
        "kind": KIND,
        **config.model_dump(mode="json", exclude={"out", "rubric", "judges", "grid"}),
        **({"chosen": loaded.chosen} if loaded.chosen else {}),
        "limit": limit,
        "inputs_sha256": {name: file_digest(Path(file)) for name, file in inputs.items() if file is not None},
        "judges": [resolved_judge(judge) for judge in config.asked],
        "rubric": rubric.model_dump(mode="json", exclude_defaults=True),
    }


def _judge(config: EvalConfig, inputs: _Inputs, run: RunDir, *, quiet: bool, build: BuildEngine) -> None:
    """Bring ``judgements.jsonl`` to its end: the judges that are asked first, then the recorded ones."""
    samples, judges = inputs.benchmark.samples, config.asked
    live = len(job_keys(samples, judges))
    jobs = [*job_keys(samples, judges), *map(job_key, inputs.recorded)]
    if any(position < live for position in run.judgements.pending(jobs)):
        run.judgements.cut(live)  # the runner accepts only its own lines, and the recorded ones are at hand
        runs = run_to_end(
            run_judges(
                samples,
                judges,
                inputs.rubric,
                run.store,
                run.judgements,
                quiet=quiet,
                budget=config.budget,
                build=build,
                evidence=inputs.evidence,
            )
        )
        warn_of_failures(runs)
    run.judgements.append(inputs.recorded[run.judgements.length - live :])
    run.judgements.settle()
