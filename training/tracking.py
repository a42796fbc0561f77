"""Where a training run is written down: local files first, Weights & Biases as a mirror of them."""

import json
import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from transformers import TrainerCallback

from inference.adapters import file_digest, model_digest
from inference.errors import UserError
from inference.rubric import rubric_file
from inference.run_dir import differences, environment
from training.traces.records import INFO
from training.validation import Figures

if TYPE_CHECKING:
    from transformers import TrainingArguments

    from training.settings import DataSettings
    from training.sot_settings import SotSettings


def contents(settings: dict[str, Any], data: "DataSettings | SotSettings") -> dict[str, Any]:
    """The settings with digests of all that they name: what a run directory belongs to."""
    # The variants of the rubric that are chosen stand in its name, so in the settings themselves.
    rubric = file_digest(rubric_file(data.rubric))
    digests = {name: _digest(Path(path)) for name, path in data.files.items()}
    plain: dict[str, Any] = json.loads(json.dumps(settings, default=str))
    model = model_digest(settings["model_name_or_path"])
    return {**plain, "sha256": {"rubric": rubric, **digests, "model": model}}


def _digest(path: Path) -> str | dict[str, str]:
    """Of a file, or of each file of a folder of traces that says what is learned."""
    if not path.is_dir():
        return file_digest(path)
    return {file.name: file_digest(file) for file in sorted([*path.glob("*.arrow"), *path.glob(INFO)])}


def check_directory(out: Path, settings: dict[str, Any]) -> None:
    """Raise UserError for a directory of other settings or data, and for a run that is finished."""
    config = out / "config.yaml"
    if not config.exists():
        return
    try:
        before = yaml.safe_load(config.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        raise UserError(f"{config} is damaged; choose another output_dir or delete this one") from None
    changed = differences(before, settings)
    if changed:
        raise UserError(
            f"{out} was trained with other settings (changed: {', '.join(changed)}); choose another output_dir, "
            "take the change back, or delete it"
        )
    if (out / "figures.json").exists():
        raise UserError(
            f"{out} is already trained, its adapter is {out / 'adapter'}; choose another output_dir or delete it"
        )


def note_settings(out: Path, settings: dict[str, Any]) -> None:
    """Write settings and environment, once model and data have proved usable."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "config.yaml").write_text(
            yaml.safe_dump(settings, sort_keys=False, allow_unicode=True), encoding="utf-8"
        )
        (out / "environment.json").write_text(json.dumps(environment(), indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError(f"{out}: cannot be written ({error.strerror}); choose another output_dir") from None


def set_up_wandb(out: Path, args: "TrainingArguments") -> None:
    """Offline unless the user asks for online; asking for it without a login fails here, not after an hour."""
    if "wandb" not in (args.report_to or ()):
        return
    os.environ.setdefault("WANDB_MODE", "offline")
    os.environ.setdefault("WANDB_PROJECT", "creajudge")
    os.environ.setdefault("WANDB_DIR", str(out))
    os.environ.setdefault("WANDB_NAME", args.run_name or out.name)
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        import wandb
    except ImportError:
        raise UserError(
            "report_to is wandb, but wandb is not installed: pip install wandb, or set report_to: none"
        ) from None
    if os.environ["WANDB_MODE"] == "online" and not wandb.login(prompt=False):
        raise UserError("WANDB_MODE is online, but W&B has no key: run `wandb login`, or leave WANDB_MODE unset")


class LocalLog(TrainerCallback):
    """Appends what the trainer logs to ``log.jsonl``; a resumed run drops the lines of steps that are done again."""

    def __init__(self, out: Path, settings: dict[str, Any]) -> None:
        self.path = out / "log.jsonl"
        self.settings = settings

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero:
            _describe_run(self.settings)
        if state.is_world_process_zero and self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= state.global_step]
            self.path.write_text("".join(kept), encoding="utf-8")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": state.global_step, **logs}) + "\n")


def _describe_run(settings: dict[str, Any]) -> None:
    """Data, split and digests for an active W&B run; transformers adds its own arguments only."""
    if "wandb" in sys.modules and (run := sys.modules["wandb"].run) is not None:
        run.config.update(settings, allow_val_change=True)


def close_run(out: Path, adapter: Path, figures: dict[str, Figures]) -> None:
    """Write ``figures.json``, the mark of a finished run, and hand figures and adapter to an active W&B run."""
    (out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if "wandb" not in sys.modules:
        return
    try:
        import wandb

        if wandb.run is None:
            return
        for part, values in figures.items():
            wandb.run.summary.update({f"{part}/{name}": value for name, value in values.items()})
        artifact = wandb.Artifact(f"{wandb.run.name}-adapter", type="model")
        artifact.add_dir(str(adapter))
        wandb.run.log_artifact(artifact)
        wandb.finish()
    except Exception as error:  # the mirror never costs a finished run
        warnings.warn(f"W&B did not take the results ({error}); they are in {out}", stacklevel=1)
