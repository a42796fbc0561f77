"""Where a training run is written down: local files first, Weights & Biases as a mirror of them."""

import json
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from transformers import TrainerCallback

from inference.errors import UserError
from inference.run_dir import environment

if TYPE_CHECKING:
    from training.arguments import JudgeTrainingArguments


def open_run(out: Path, settings: dict[str, Any], args: "JudgeTrainingArguments") -> None:
    """Write settings and environment, set W&B up where asked for. UserError for a directory of other settings."""
    config = out / "config.yaml"
    plain = json.loads(json.dumps(settings, default=str))
    if config.exists():
        before = yaml.safe_load(config.read_text(encoding="utf-8"))
        changed = sorted(key for key in {*before, *plain} if before.get(key) != plain.get(key))
        if changed:
            raise UserError(
                f"{out} was trained with other settings (changed: {', '.join(changed)}); choose another output_dir, "
                "take the change back, or delete it"
            )
        if (out / "figures.json").exists():
            raise UserError(
                f"{out} is already trained; its adapter is {out / 'adapter'}. Choose another output_dir or delete it"
            )
    out.mkdir(parents=True, exist_ok=True)
    config.write_text(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True), encoding="utf-8")
    (out / "environment.json").write_text(json.dumps(environment(), indent=2) + "\n", encoding="utf-8")
    if "wandb" in (args.report_to or ()):
        _set_up_wandb(out)


def _set_up_wandb(out: Path) -> None:
    """Offline unless the user asks for online; asking for it without a key fails here, not after an hour."""
    os.environ.setdefault("WANDB_MODE", "offline")
    os.environ.setdefault("WANDB_PROJECT", "creajudge")
    os.environ.setdefault("WANDB_DIR", str(out))
    os.environ.setdefault("WANDB_NAME", out.name)
    os.environ.setdefault("WANDB_SILENT", "true")
    try:
        import wandb
    except ImportError:
        raise UserError(
            "report_to is wandb, but wandb is not installed: pip install wandb, or set report_to: none"
        ) from None
    if os.environ["WANDB_MODE"] == "online" and not wandb.api.api_key:
        raise UserError("WANDB_MODE is online, but no W&B key is set: run `wandb login`, or leave WANDB_MODE unset")


class LocalLog(TrainerCallback):
    """Appends what the trainer logs to ``log.jsonl``; a resumed run drops the lines of steps that are done again."""

    def __init__(self, out: Path) -> None:
        self.path = out / "log.jsonl"

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        if state.is_world_process_zero and self.path.exists():
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= state.global_step]
            self.path.write_text("".join(kept), encoding="utf-8")

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **kwargs: Any) -> None:
        if state.is_world_process_zero and logs:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": state.global_step, **logs}) + "\n")


def close_run(out: Path, adapter: Path, figures: dict[str, dict[str, float]]) -> None:
    """Write ``figures.json``, the mark of a finished run, and hand figures and adapter to an active W&B run."""
    (out / "figures.json").write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    if os.environ.get("WANDB_MODE") == "disabled":
        return
    try:
        import wandb

        if wandb.run is None:
            return
        for part, values in figures.items():
            wandb.run.summary.update({f"{part}/{name}": value for name, value in values.items()})
        artifact = wandb.Artifact(f"{out.name}-adapter", type="model")
        artifact.add_dir(str(adapter))
        wandb.run.log_artifact(artifact)
        wandb.finish()
    except Exception as error:  # the mirror never costs a finished run
        warnings.warn(f"W&B did not take the results ({error}); they are in {out}", stacklevel=1)
