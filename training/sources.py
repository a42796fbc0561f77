"""Rated samples of any config: ``benchmark:`` of an evaluation, ``input:`` of a judging run, ``train_file:``."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from eval.benchmarks.cgpst.benchmark import CgpstConfig
from eval.run import BenchmarkConfig, benchmark_config, load_benchmark
from inference.config import read_yaml, validate
from inference.records import Sample
from inference.rubric import Rubric, load_rubric
from inference.samples import Columns, read_samples


@dataclass(frozen=True)
class Source:
    """Samples, and what they are."""

    rubric: Rubric
    samples: tuple[Sample, ...]
    simulated: bool


class SourceConfig(BaseModel):
    """The part of a config that names samples; its other keys are not read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    rubric: str | Rubric
    """A rubric file, or in the settings of a run the rubric itself."""
    benchmark: BenchmarkConfig | None = None
    input: str | None = None
    train_file: str | None = None
    columns: Columns = Columns()

    @field_validator("benchmark", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return benchmark_config(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _one(self) -> "SourceConfig":
        if sum(part is not None for part in (self.benchmark, self.input, self.train_file)) != 1:
            raise ValueError("needs one of benchmark, input and train_file, to name the samples")
        return self

    @property
    def files(self) -> dict[str, str]:
        """The files that are read, as the settings of a run name them in their digests."""
        if isinstance(self.benchmark, CgpstConfig):
            return {name: file for name, file in self.benchmark.files.items() if file is not None}
        if self.benchmark is not None:
            return {"test": self.benchmark.test}
        return {"input": self.input or self.train_file or ""}

    def load(self, *, whole: bool = False) -> Source:
        """Read the samples; with `whole` all of a benchmark, whichever part of a split the config names."""
        rubric = self.rubric if isinstance(self.rubric, Rubric) else load_rubric(self.rubric)
        if self.benchmark is None:
            path = self.input or self.train_file or ""
            return Source(rubric, tuple(read_samples(path, rubric, self.columns)), simulated=False)
        chosen = self.benchmark
        if whole and isinstance(chosen, CgpstConfig):
            chosen = chosen.model_copy(update={"splits": None, "part": "all", "choose": None})
        found = load_benchmark(chosen, rubric)
        return Source(rubric, found.samples, found.simulated)


def read_source(config: Path, *, whole: bool = False) -> Source:
    """The samples that a YAML config names. Raises UserError for a config that names none, or unreadable files."""
    return validate(read_yaml(config), SourceConfig, str(config)).load(whole=whole)
