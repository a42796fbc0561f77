"""Train a local judge on human ratings: LoRA on a language model, loss at the score positions.

    accelerate launch --quiet -m training.sft --config configs/training/aut_smollm2.yaml [--key value ...]

Every key of the config can be overridden on the command line. A run that was stopped goes on from its newest complete
checkpoint when the same command is given again. The result is output_dir/adapter (PEFT format, with a model card).
With --dry-run [--tflops N] it prints the memory and time that the run would take, and stops: `training.dry_run`.
"""

import sys
from typing import Any

from eval.benchmarks.cgpst.benchmark import load, read_splits
from inference.records import Sample
from inference.rubric import Rubric, load_rubric
from inference.samples import read_samples
from training.command import run_command
from training.data import Evidence, choose, refuse_overlap, sequences, split
from training.dry_run import print_estimate
from training.evidence import load_evidence, need_evidence
from training.settings import DataSettings, read_settings

KEYS = "Keys: training/settings.py (data), training/arguments.py (losses), TRL's ModelConfig, TrainingArguments."


def main(argv: list[str] | None = None) -> int:
    return run_command(argv, f"{__doc__.strip()}\n\n{KEYS}", train)


def train(path: str, overrides: dict[str, Any], dry_run: bool, tflops: float | None) -> None:
    """Train as the config says, or estimate what that would take."""
    settings, data = read_settings(path, overrides)
    rubric, parts = load_parts(data)
    evidence = load_evidence_of(data, rubric, parts)
    if dry_run:
        estimate_run(settings, data, rubric, parts, evidence, tflops)
        return
    from training.fit import fit

    fit(settings, data, rubric, parts, evidence)


def estimate_run(
    settings: dict[str, Any],
    data: DataSettings,
    rubric: Rubric,
    parts: dict[str, list[Sample]],
    evidence: Evidence | None,
    tflops: float | None,
) -> None:
    """Print what the run would take."""

    def rows(tokenizer: Any) -> list[list[tuple[int, int]]]:
        made, _ = prepare({"train": parts["train"]}, rubric, tokenizer, data.max_prompt_tokens, evidence, data.targets)
        return sequences(made["train"], rubric)

    from training.arguments import JudgeTrainingArguments
    from training.fit import prepare

    print_estimate(JudgeTrainingArguments, settings, data, rows, tflops)


def load_parts(data: DataSettings) -> tuple[Rubric, dict[str, list[Sample]]]:
    """The rubric and the samples of train, validation and test. Test ids in the other parts stop the run."""
    rubric = load_rubric(data.rubric)

    def read(path: str) -> list[Sample]:
        return read_samples(path, rubric, data.columns, rated=True)

    train = read(data.train_file) if data.train_file is not None else _benchmark_train(data, rubric)
    if data.validation_file is not None:
        validation = read(data.validation_file)
    else:
        train, validation = split(train, data.validation_share or 0.0, data.split_by, data.split_seed)
    parts = {"train": choose(train, data.max_rows, data.split_seed), "validation": validation}
    refuse_overlap(parts["train"], {sample.id for sample in validation}, "validation", "training")
    if data.test_file is not None:
        parts["test"] = read(data.test_file)
    held_out = test_ids(data) | {sample.id for sample in parts.get("test", ())}
    for name in ("train", "validation"):
        refuse_overlap(parts[name], held_out, "test", name)
    return rubric, parts


def _benchmark_train(data: DataSettings, rubric: Rubric) -> list[Sample]:
    assert data.benchmark is not None
    return list(load(data.benchmark.model_copy(update={"part": "train"}), rubric).samples)


def test_ids(data: DataSettings) -> set[str]:
    """Answers that a split holds out for the test."""
    path = data.benchmark.splits if data.benchmark else data.splits
    if path is None:
        return set()
    return set(read_splits(path, data.benchmark.split if data.benchmark else data.split)["test"])


def load_evidence_of(data: DataSettings, rubric: Rubric, parts: dict[str, list[Sample]]) -> Evidence | None:
    """The evidence that a judge learns from and is validated on; None for raw responses."""
    if data.evidence is None:
        return None
    evidence = load_evidence(data.evidence, rubric, test_ids(data))
    for samples in parts.values():
        need_evidence(samples, evidence, data.evidence)
    return evidence


if __name__ == "__main__":
    sys.exit(main())
