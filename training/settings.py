"""Settings of a training run that are not transformers' or TRL's own, and their check before any heavy import."""

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from inference.config import StrictModel, read_yaml, validate
from inference.errors import UserError
from inference.samples import Columns


class DataSettings(StrictModel):
    """Which ratings a judge learns from, and which it is tested on."""

    rubric: str
    """A rubric file."""
    train_file: str
    """CSV or JSONL of rated responses."""
    validation_file: str | None = None
    """Rated responses for validation, instead of `validation_share`."""
    validation_share: float | None = Field(default=None, gt=0, lt=1)
    """Share of `train_file` held out for validation, such as 0.3 for a 7:3 split."""
    split_by: Literal["sample", "scenario"] = "sample"
    """What `validation_share` holds out: samples or whole scenarios."""
    split_seed: int = 0
    """Seed of the split and of the choice of `max_rows`."""
    test_file: str | None = None
    """Judged once after training, for the model card. None of its ids may occur in the other data."""
    columns: Columns = Columns()
    max_rows: int | None = Field(default=None, ge=1)
    """Train on this many samples, drawn with `split_seed`."""
    max_prompt_tokens: int = Field(default=128, ge=1)
    """Longer rows are left out of training and counted in the audit."""

    @model_validator(mode="after")
    def _one_validation(self) -> "DataSettings":
        if (self.validation_file is None) == (self.validation_share is None):
            raise ValueError(
                "give exactly one of validation_file and validation_share: a judge is validated as it learns"
            )
        return self


OURS = frozenset(DataSettings.model_fields)


def read_settings(path: Path | str, overrides: dict[str, Any]) -> tuple[dict[str, Any], DataSettings]:
    """The YAML settings with `overrides` on top, and the part that is ours, checked without importing torch.

    Raises UserError for a missing file, missing keys, values of the wrong type and a model that is no directory.
    """
    settings = {**read_yaml(path), **overrides}
    for name in ("model_name_or_path", "output_dir"):
        if not isinstance(settings.get(name), str):
            raise UserError(f"{path}: {name} has to be a path; see configs/training/ for complete examples")
    for name in ("hub_token", "push_to_hub"):
        if settings.get(name):
            raise UserError(f"{path}: {name} is not used here: keys stay out of configs, and adapters stay local")
    data = validate({name: value for name, value in settings.items() if name in OURS}, DataSettings, str(path))
    from inference.tokens import model_directory

    model_directory(settings["model_name_or_path"])
    return settings, data
