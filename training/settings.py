"""Settings of a training run that are not transformers' or TRL's own, and their check before any heavy import."""

from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from inference.config import read_yaml, validate
from inference.errors import UserError
from inference.samples import Columns


@dataclass
class DataArguments:
    """Which ratings a judge learns from, and which it is tested on."""

    rubric: str = field(metadata={"help": "Rubric file, such as configs/rubrics/aut.yaml."})
    train_file: str = field(metadata={"help": "CSV or JSONL of rated responses."})
    validation_file: str | None = field(
        default=None, metadata={"help": "Rated responses for validation, instead of validation_share."}
    )
    validation_share: float | None = field(
        default=None, metadata={"help": "Share of train_file held out for validation, such as 0.3 for a 7:3 split."}
    )
    split_by: str = field(
        default="sample",
        metadata={"help": "What validation_share holds out: `sample` or whole scenarios (`scenario`)."},
    )
    split_seed: int = field(default=0, metadata={"help": "Seed of the split and of the choice of max_rows."})
    test_file: str | None = field(
        default=None,
        metadata={
            "help": "Judged once after training, for the model card. None of its ids may occur in the other data."
        },
    )
    columns: dict[str, Any] = field(
        default_factory=dict, metadata={"help": "Names of the columns: id, scenario, response, scores."}
    )
    max_rows: int | None = field(default=None, metadata={"help": "Train on this many rows, drawn with split_seed."})
    max_prompt_tokens: int = field(
        default=128, metadata={"help": "Longer rows are left out of training and counted in the audit."}
    )

    def __post_init__(self) -> None:
        if (self.validation_file is None) == (self.validation_share is None):
            raise UserError(
                "give exactly one of validation_file and validation_share: a judge is validated while it learns"
            )

    def column_names(self) -> Columns:
        return validate(self.columns, Columns, "columns")


def read_settings(path: Path | str, overrides: dict[str, str]) -> tuple[dict[str, Any], DataArguments]:
    """The YAML settings with `overrides` on top, and the part that is ours, checked without importing torch.

    Raises UserError for a missing file, a missing key or a model that is no directory.
    """
    settings = {**read_yaml(path), **overrides}
    own = {item.name: settings[item.name] for item in fields(DataArguments) if item.name in settings}
    for name in ("rubric", "train_file", "model_name_or_path", "output_dir"):
        if not settings.get(name):
            raise UserError(f"{path}: {name} is missing; see configs/training/ for complete examples")
    for name in ("max_rows", "split_seed", "max_prompt_tokens"):
        if own.get(name) is not None:
            own[name] = _whole(name, own[name])
    if own.get("validation_share") is not None:
        own["validation_share"] = float(own["validation_share"])
    from inference.tokens import model_directory

    model_directory(settings["model_name_or_path"])
    return settings, DataArguments(**own)


def _whole(name: str, value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        raise UserError(f"{name} is {value!r}; it has to be a whole number") from None
