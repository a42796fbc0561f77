"""The command line of the training modules: ``--config FILE --key value …``, and ``--dry-run``."""

import sys
from collections.abc import Callable
from typing import Any

import yaml

from inference.errors import UserError, print_error
from training.dry_run import take_flag

Work = Callable[[str, dict[str, Any], bool, float | None], None]
"""Config file, overrides, whether to estimate only, FLOP rate in TFLOP/s → the work."""


def run_command(argv: list[str] | None, usage: str, work: Work) -> int:
    """Do `work` with the arguments, by default those of the process. Returns the exit code; 2 for a user's mistake."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or {"-h", "--help"} & set(arguments):
        print(usage)
        return 0
    try:
        arguments, dry_run, tflops = take_flag(arguments)
        path, overrides = parse(arguments)
        work(path, overrides, dry_run, tflops)
    except UserError as error:
        print_error(error)
        return 2
    return 0


def parse(arguments: list[str]) -> tuple[str, dict[str, Any]]:
    """``--config FILE --key value …`` → (FILE, {key: value}), values read as YAML reads them: 8 is a number."""
    pairs: dict[str, Any] = {}
    for name, value in zip(arguments[::2], arguments[1::2], strict=False):
        if not name.startswith("--") or value.startswith("--"):
            raise UserError(f"{name} {value}: options come as --key value")
        pairs[name.removeprefix("--")] = value
    if len(arguments) % 2:
        raise UserError(f"{arguments[-1]} has no value: options come as --key value")
    if "config" not in pairs:
        raise UserError("--config FILE is missing, such as --config configs/training/aut_smollm2.yaml")
    return pairs.pop("config"), {name: read_value(value) for name, value in pairs.items()}


def read_value(text: str) -> Any:
    """A value of the command line as a config file would hold it; what isn't YAML stays text."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
