"""Settings of a SoT training run that are not transformers' or TRL's own, and what they name, read and checked."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from inference.errors import UserError
from inference.rubric import Rubric, load_rubric
from training.data import choose, split
from training.settings import LaunchSettings
from training.splits import side_of
from training.traces.records import Trace, TracesInfo, check_versions, read_info, read_traces, refuse_test_ids

Profile = Literal["compact", "chat"]


class SotSettings(LaunchSettings):
    """Which traces an analyst (SoT-LLM) learns from."""

    rubric: str
    """A rubric file; the traces have to be of it."""
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
    validation_share: float | None = Field(default=None, gt=0, lt=1)
    """Share of the responses held out for the validation loss. Default: none."""
    split_by: Literal["sample", "scenario"] = "sample"
    """What `validation_share` holds out."""
    split_seed: int = 0
    """Seed of `validation_share` and `max_samples`."""
    max_samples: int | None = Field(default=None, ge=1)
    """Train on the traces of this many responses, drawn with `split_seed`."""
    max_row_tokens: int = Field(default=1100, ge=8)
    """Longer rows, prompt and evidence together, are left out and counted: a cut one would teach no end."""

    @model_validator(mode="after")
    def _fold_of_folds(self) -> "SotSettings":
        if (self.folds is None) != (self.fold is None):
            raise ValueError("folds and fold belong together: give the file and the name of one fold in it, or neither")
        return self


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
    check_versions(read_info(folder), rubric, data.traces)  # before the table is read
    info, traces = read_traces(folder)
    if data.splits is not None:
        refuse_test_ids(traces, side_of(data.splits, data.split, "test"), data.traces, data.splits)
    if data.folds is not None and data.fold is not None:
        learned = side_of(data.folds, data.fold, "train")
        traces = [trace for trace in traces if trace.sample_id in learned]
        if not traces:
            raise UserError(f"{data.folds}: no trace is in train of {data.fold}; the file is of other data")
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
