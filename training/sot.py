"""Train an analyst (SoT-LLM) on evidence traces: LoRA on a language model, loss on the evidence alone.

    accelerate launch --quiet -m training.sot --config configs/training/cgpst_sot_smollm2.yaml [--key value ...]

Every key of the config can be overridden on the command line. A run that was stopped goes on from its newest complete
checkpoint when the same command is given again. The result is output_dir/adapter (PEFT format, with a model card).
With --dry-run [--tflops N] it prints the memory and time that the run would take, and stops: `training.dry_run`.
"""

import sys
from dataclasses import replace
from typing import Any

from training.command import run_command
from training.dry_run import print_estimate
from training.settings import read_settings_of
from training.sot_settings import SotSettings, TraceParts, load_parts

KEYS = "Keys: training/sot_settings.py (traces), TRL's ModelConfig and SFTConfig."


def main(argv: list[str] | None = None) -> int:
    return run_command(argv, f"{__doc__.strip()}\n\n{KEYS}", train)


def train(path: str, overrides: dict[str, Any], dry_run: bool, tflops: float | None) -> None:
    """Train as the config says, or estimate what that would take."""
    settings, data = read_settings_of(SotSettings, path, overrides)
    parts = load_parts(data)
    if dry_run:
        estimate_run(settings, data, parts, tflops)
        return
    from training.sot_fit import fit

    fit(settings, data, parts)


def estimate_run(settings: dict[str, Any], data: SotSettings, parts: TraceParts, tflops: float | None) -> None:
    """Print what the run would take."""

    def rows(tokenizer: Any) -> list[list[tuple[int, int]]]:
        made, _ = prepare(replace(parts, validation=[]), tokenizer, data)
        return [[(len(row.input_ids), row.taught)] for row in made["train"]]

    from training.sot_fit import prepare
    from training.sot_trainer import SotArguments

    print_estimate(SotArguments, settings, data, rows, tflops, tiled=True)


if __name__ == "__main__":
    sys.exit(main())
