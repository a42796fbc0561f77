"""Settings of a training run that are not transformers' or TRL's own, and their check before any heavy import."""

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, model_validator

from eval.benchmarks.cgpst.benchmark import CgpstConfig
from inference.adapter_notes import Recipe
from inference.config import FaultAt, Number, StrictModel, Whole, read_yaml, validate
from inference.errors import UserError
from inference.samples import Columns


class LaunchSettings(StrictModel):
    """How a run has to be launched: checked by `training.launch_check`."""

    expect_world_size: Whole | None = Field(default=None, ge=1)
    """Processes this run has to be launched with, of all machines together. Default: any number."""
    expect_wrapper: Literal["none", "ddp", "fsdp2", "deepspeed"] | None = None
    """What has to hold the model in training. accelerate falls back to less without a word. Default: anything."""


class DataSettings(LaunchSettings):
    """Which ratings a judge learns from, and which it is tested on."""

    rubric: str
    """A rubric file or the name of one, with variants behind a ``#``."""
    train_file: str | None = None
    """CSV or JSONL of rated responses."""
    benchmark: CgpstConfig | None = None
    """Rated answers with ratings of single items, in place of `train_file`: those in train of its split."""
    splits: str | None = None
    """With `train_file`: a file of splits. A test id of it in the training data stops the run."""
    split: str = "scenario"
    """Name of the split in that file."""
    recipe: Recipe = "sft_raw"
    """Whether a judge learns from raw responses, or from `evidence` on them."""
    evidence: str | None = None
    """`sft_evidence`: a file of evidence by answer id, or a folder of traces."""
    targets: Literal["mean", "each"] = "mean"
    """Of several raters: one row with their mean, or a row for each. Validation and test are held to the mean."""
    validation_file: str | None = None
    """Rated responses for validation, instead of `validation_share`."""
    validation_share: Number | None = Field(default=None, gt=0, lt=1)
    """Share of the training data held out for validation, such as 0.3 for a 7:3 split."""
    split_by: Literal["sample", "scenario"] = "sample"
    """What `validation_share` holds out: samples or whole scenarios."""
    split_seed: Whole = 0
    """Seed of the split and of the choice of `max_rows`."""
    test_file: str | None = None
    """Judged once after training, for the model card. None of its ids may occur in the other data."""
    columns: Columns = Columns()
    max_rows: Whole | None = Field(default=None, ge=1)
    """Train on this many samples, drawn with `split_seed`."""
    max_prompt_tokens: Whole = Field(default=128, ge=1)
    """Longer rows are left out of training and counted in the audit."""

    @model_validator(mode="after")
    def _one_validation(self) -> "DataSettings":
        if (self.validation_file is None) == (self.validation_share is None):
            raise ValueError(
                "give exactly one of validation_file and validation_share: a judge is validated as it learns"
            )
        return self

    @model_validator(mode="after")
    def _one_source(self) -> "DataSettings":
        if (self.train_file is None) == (self.benchmark is None):
            raise ValueError("give exactly one of train_file and benchmark: what the judge learns from")
        if self.benchmark is None:
            return self
        beside = [name for name in ("validation_file", "test_file", "splits") if getattr(self, name) is not None]
        if beside:
            raise FaultAt(f"belongs to train_file; benchmark has a test part of its own, remove {beside[0]}", beside[0])
        if "part" in self.benchmark.model_fields_set and self.benchmark.part != "train":
            raise FaultAt("a judge learns from the part train of the split; remove this key", "benchmark", "part")
        if self.benchmark.splits is None:
            raise FaultAt("needs `splits`, the file that says which answers are for training", "benchmark")
        return self

    @model_validator(mode="after")
    def _evidence_fits(self) -> "DataSettings":
        if (self.recipe == "sft_evidence") != (self.evidence is not None):
            raise FaultAt("is what the recipe sft_evidence needs, and no other: give both or neither", "evidence")
        return self

    @property
    def files(self) -> dict[str, str]:
        """The input files beside the rubric, by the key that names them."""
        own = {name: getattr(self, name) for name in ("train_file", "validation_file", "test_file", "splits")}
        of_benchmark = self.benchmark.files if self.benchmark else {}
        every = {**own, **of_benchmark, "evidence": self.evidence}
        return {name: path for name, path in every.items() if path is not None}


OURS = frozenset(DataSettings.model_fields)
S = TypeVar("S", bound=StrictModel)


def read_settings(path: Path | str, overrides: dict[str, Any]) -> tuple[dict[str, Any], DataSettings]:
    """The YAML settings with `overrides` on top, and the part that is ours: see `read_settings_of`."""
    return read_settings_of(DataSettings, path, overrides)


def read_settings_of(kind: type[S], path: Path | str, overrides: dict[str, Any]) -> tuple[dict[str, Any], S]:
    """The YAML settings with `overrides` on top, and the part that `kind` holds, checked without importing torch.

    Raises UserError for a missing file, missing keys, values of the wrong type and a model that is no directory.
    """
    settings = {**read_yaml(path), **overrides}
    for name in ("model_name_or_path", "output_dir"):
        if not isinstance(settings.get(name), str):
            raise UserError(f"{path}: {name} has to be a path; see configs/training/ for complete examples")
    for name in ("hub_token", "push_to_hub"):
        if settings.get(name):
            raise UserError(f"{path}: {name} is not used here: keys stay out of configs, and adapters stay local")
    data = validate({name: value for name, value in settings.items() if name in kind.model_fields}, kind, str(path))
    from inference.tokens import model_directory

    model_directory(settings["model_name_or_path"])
    return settings, data
