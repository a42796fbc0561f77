"""Settings of a SoT training run that are not transformers' or TRL's own, and what they name, read and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator, model_validator

from inference.adapter_notes import Profile
from inference.config import Number, Whole
from inference.errors import UserError, named_list
from inference.rubric import Rubric, load_rubric
from training.data import choose, split
from training.settings import LaunchSettings
from training.splits import side_of, training_part
from training.traces.records import Trace, TracesInfo, check_versions, read_info, read_traces, refuse_test_ids


class SotSettings(LaunchSettings):
    """Which traces an analyst (SoT-LLM) learns from."""

    rubric: str
    """A rubric file or the name of one, with variants behind a ``#``; the traces have to be of it."""
    traces: str
    """A folder of traces."""
    splits: str | None = None
    """File of splits: a trace of its test part stops the run."""
    split: str = "scenario"
    """Name of the split in the file."""
    folds: str | None = None
    """File of folds, for evidence on answers that an analyst has not learned from."""
    fold: str | None = None
    """Name of a fold in the file: its answers are left out of training."""
    profile: Profile = "compact"
    """`compact`: plain prompts, an item or a step a row. `chat`: chat template, rubric and JSON, a step a row."""
    validation_share: Number | None = Field(default=None, gt=0, lt=1)
    """Share of the responses held out for the validation loss. Default: none."""
    split_by: Literal["sample", "scenario"] = "sample"
    """What `validation_share` holds out."""
    split_seed: Whole = 0
    """Seed of `validation_share`, `max_samples` and `step_rows`."""
    max_samples: Whole | None = Field(default=None, ge=1)
    """Train on the traces of this many responses, drawn with `split_seed`."""
    step_rows: dict[str, Whole] = Field(default_factory=dict)
    """Step → rows of it an epoch: drawn with `split_seed` where it has more, repeated where it has fewer. A step has a
    row a response, or as many as it has items, which would take most of the time. Default: each row once."""
    max_row_tokens: Whole = Field(default=1100, ge=8)
    """Longer rows, prompt and evidence together, are left out and counted: a cut one would teach no end."""

    @model_validator(mode="after")
    def _fold_of_folds(self) -> "SotSettings":
        if (self.folds is None) != (self.fold is None):
            raise ValueError("folds and fold belong together: give the file and the name of one fold in it, or neither")
        return self

    @field_validator("step_rows")
    @classmethod
    def _at_least_one(cls, value: dict[str, int]) -> dict[str, int]:
        few = [step for step, rows in value.items() if rows < 1]
        if few:
            raise ValueError(f"{few[0]}: {value[few[0]]} rows teach nothing; give 1 or more")
        return value

    @property
    def files(self) -> dict[str, str]:
        """The input files and the folder of traces, by the key that names them."""
        own = {name: getattr(self, name) for name in ("traces", "splits", "folds")}
        return {name: path for name, path in own.items() if path is not None}


@dataclass(frozen=True)
class TraceParts:
    """What a run trains and validates on."""

    rubric: Rubric
    info: TracesInfo
    train: list[Trace]
    validation: list[Trace]


def load_parts(data: SotSettings) -> TraceParts:
    """The traces of both parts.

    Raises UserError for traces of another rubric or of other prompts, a test id among them, and where nothing is left.
    """
    rubric, folder = load_rubric(data.rubric), Path(data.traces)
    known = [step.name for step in rubric.answered]
    unknown = [step for step in data.step_rows if step not in known]
    if unknown:
        raise UserError(f"step_rows: {named_list(unknown)} is no step that is answered; those are {named_list(known)}")
    check_versions(read_info(folder), rubric, data.traces)  # before the table is read
    info, traces = read_traces(folder)
    if data.splits is not None:
        refuse_test_ids(traces, side_of(data.splits, data.split, "test"), data.traces, data.splits)
    if data.folds is not None and data.fold is not None:
        learned = training_part({trace.sample_id for trace in traces}, data.folds, data.fold)
        traces = [trace for trace in traces if trace.sample_id in learned]
    samples = list({trace.sample_id: trace.sample for trace in traces}.values())
    held: list[str] = []
    if data.validation_share is not None:
        samples, validation = split(samples, data.validation_share, data.split_by, data.split_seed)
        held = [sample.id for sample in validation]
    chosen = {sample.id for sample in choose(samples, data.max_samples, data.split_seed)}
    return TraceParts(
        rubric,
        info,
        train=[trace for trace in traces if trace.sample_id in chosen],
        validation=[trace for trace in traces if trace.sample_id in set(held)],
    )
