"""One training run: arguments → rows → trainer → adapter, card and scores. Everything heavy is imported here."""

import io
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, TypeVar

import torch
from peft import PeftModel, get_peft_model
from transformers import AutoModelForCausalLM, Trainer, TrainerCallback, TrainingArguments, set_seed
from trl.scripts.utils import TrlParser
from trl.trainer.model_config import ModelConfig
from trl.trainer.utils import get_peft_config

from inference.adapter_notes import judge_note, write_note
from inference.adapters import note_base
from inference.errors import UserError
from inference.grid import GridReader
from inference.records import Sample
from inference.rubric import Rubric
from inference.run_dir import lock_directory
from inference.score_file import write_scores
from inference.tokens import load_tokenizer, score_token_ids
from training import tracking
from training.arguments import JudgeTrainingArguments
from training.card import write_card
from training.checkpoints import newest_complete
from training.data import Evidence, Row, Targets, audit, build_rows, check_all_taught
from training.export import rename_to_base
from training.judge_trainer import JudgeTrainer
from training.launch_check import LaunchCheck, check_world_size
from training.settings import OURS, DataSettings
from training.validation import Figures, figures, judge_rows, judgements

POSITIVE = ("learning_rate", "per_device_train_batch_size", "per_device_eval_batch_size", "num_train_epochs")
A = TypeVar("A", bound=TrainingArguments)
DTYPES = (None, "float32", "bfloat16", "float16")


def fit(
    settings: dict[str, Any],
    data: DataSettings,
    rubric: Rubric,
    parts: dict[str, list[Sample]],
    evidence: Evidence | None = None,
) -> Path:
    """Train, save the adapter with its card, judge the test part. Returns the adapter's directory.

    `evidence`: on every sample of `parts`, for a judge of evidence.
    """
    args, model_args = parse_arguments(settings)
    check_world_size(data.expect_world_size, args.world_size)
    out = Path(settings["output_dir"])
    base = str(settings["model_name_or_path"])
    main_process = args.process_index == 0
    contents = tracking.contents(settings, data)
    lock = lock_directory(out) if main_process else None
    if main_process:
        tracking.check_directory(out, contents)
        tracking.set_up_wandb(out, args)
    set_seed(args.seed)
    # A judge that has learned to answer in scores gives other tokens probabilities too small for a normal float32, and
    # a CPU multiplies such numbers 70 times slower. Set before the first product, so that all threads take it over.
    torch.set_flush_denormal(True)
    tokenizer = load_tokenizer(base)
    rows, counts = prepare(parts, rubric, tokenizer, data.max_prompt_tokens, evidence, data.targets)
    if main_process:
        print_audit(counts)
    trainer = build_trainer(args, model_args, contents, tokenizer, rubric, rows, parts["validation"], evidence)
    adapter = train(trainer, out, contents, base, data.expect_wrapper)
    if main_process:
        write_note(adapter, judge_note(rubric, data.recipe, [*parts["train"], *parts["validation"]]))
    results = final_figures(trainer, rubric, rows, parts, out, evidence)
    if main_process:
        write_card(
            adapter,
            data=data,
            model=base,
            rubric=rubric,
            counts=counts,
            args=args,
            figures=results,
        )
        tracking.close_run(out, adapter, results)
        for part, found in results.items():
            print(f"{part}: " + ", ".join(f"{name} {'–' if x is None else f'{x:.3f}'}" for name, x in found.items()))
        print(f"adapter: {adapter}")
    if lock is not None:
        lock.close()
    return adapter


def parse_arguments(settings: dict[str, Any]) -> tuple[JudgeTrainingArguments, ModelConfig]:
    """Typed arguments of the settings of a judge: see `parse_arguments_of`."""
    return parse_arguments_of(JudgeTrainingArguments, settings, OURS)


def parse_arguments_of(kind: type[A], settings: dict[str, Any], ours: frozenset[str]) -> tuple[A, ModelConfig]:
    """Typed arguments of the settings but for `ours`; an unknown key or a value of the wrong type is a UserError."""
    types: Any = (kind, ModelConfig)
    parser = TrlParser(types)
    _no_truth_values(parser, settings)
    unknown = parser.set_defaults_with_config(**{key: value for key, value in settings.items() if key not in ours})
    if unknown:
        raise UserError(
            f"unknown key {unknown[0].removeprefix('--')} in the training config: correct its spelling or remove it"
        )
    said = io.StringIO()
    try:
        with redirect_stderr(said):  # argparse prints pages of options before its one line
            args, model_args = parser.parse_args_into_dataclasses(args=[])
    except SystemExit:
        raise UserError(f"the training config cannot be used: {said.getvalue().split('error: ')[-1].strip()}") from None
    except (ValueError, TypeError) as error:
        raise UserError(f"the training config cannot be used: {' '.join(str(error).split())}") from None
    _check_ranges(args, model_args)
    if not model_args.use_peft:
        raise UserError(
            "use_peft is not true: judges are trained as LoRA adapters, set use_peft, lora_r and lora_target_modules"
        )
    return args, model_args


def _no_truth_values(parser: TrlParser, settings: dict[str, Any]) -> None:
    """Raise UserError for a truth value in place of a number: to Python it is one."""
    numbers = {action.dest for action in parser._actions if action.type in (int, float)}
    wrong = sorted(name for name in numbers if isinstance(settings.get(name), bool))
    if wrong:
        raise UserError(f"{wrong[0]} is {str(settings[wrong[0]]).lower()}, a truth value in YAML; write a number")


def _check_ranges(args: TrainingArguments, model_args: ModelConfig) -> None:
    positive = {name: getattr(args, name) for name in POSITIVE} | {"lora_r": model_args.lora_r}
    for name, value in positive.items():
        if not value > 0:
            raise UserError(f"{name} is {value}; it has to be above 0")
    unknown = sorted({*(args.report_to or ())} - {"none", "wandb"})
    if unknown:
        raise UserError(f"report_to is {unknown[0]}; it has to be none or wandb")


def prepare(
    parts: dict[str, list[Sample]],
    rubric: Rubric,
    tokenizer: Any,
    max_tokens: int,
    evidence: Evidence | None = None,
    targets: Targets = "mean",
) -> tuple[dict[str, list[Row]], list[dict[str, Any]]]:
    """Rows and audit counts of each part.

    Only training rows are held to `max_tokens` and to what is rated: a served judge reads all, and is asked all.
    """
    rows, counts = {}, []
    for name, samples in parts.items():
        learned = name == "train"
        made = build_rows(
            samples,
            rubric,
            tokenizer,
            evidence=evidence,
            targets=targets if learned else "mean",
            unrated=not learned,
        )
        rows[name], count = audit(made, max_tokens if learned else 1_000_000, name, rubric)
        if learned:
            check_all_taught(rows[name], rubric, evidence)
        counts.append(count)
    return rows, counts


def print_audit(counts: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title="Token audit: rows, those too long, what is computed, supervised positions", title_justify="left"
    )
    for name in counts[0]:
        table.add_column(name, justify="left" if name == "split" else "right")
    for count in counts:
        table.add_row(*(str(value) for value in count.values()))
    Console().print(table)


def lora_model(model_args: ModelConfig) -> Any:
    """The base model with a fresh LoRA adapter. Raises UserError where it cannot be loaded."""
    if model_args.dtype not in DTYPES:
        raise UserError(f"dtype is {model_args.dtype!r}; it has to be one of {', '.join(map(str, DTYPES))}")
    path = str(model_args.model_name_or_path)
    try:
        base = AutoModelForCausalLM.from_pretrained(
            path,
            dtype=getattr(torch, model_args.dtype or "float32"),
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
        )
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: the model cannot be loaded ({str(error).splitlines()[0]})") from None
    lora = get_peft_config(model_args)
    assert lora is not None  # parse_arguments refuses use_peft: false
    return get_peft_model(base, lora)


def build_trainer(
    args: JudgeTrainingArguments,
    model_args: ModelConfig,
    contents: dict[str, Any],
    tokenizer: Any,
    rubric: Rubric,
    rows: dict[str, list[Row]],
    validation: Sequence[Sample],
    evidence: Evidence | None = None,
) -> JudgeTrainer:
    """`validation`: the samples of ``rows["validation"]``."""

    def validate(trainer: JudgeTrainer) -> Figures:
        scores = judge_rows(trainer, rows["validation"], rubric, args.per_device_eval_batch_size)
        return figures(rows["validation"], scores, validation, rubric, evidence)

    readers = [
        GridReader(dimension.grid, score_token_ids(tokenizer, dimension.grid)) for _, dimension, _ in rubric.learned
    ]
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    callbacks: list[TrainerCallback] = [tracking.LocalLog(Path(str(args.output_dir)), contents)]
    return JudgeTrainer(
        model=lora_model(model_args),
        args=args,
        readers=readers,
        ranges=[dimension.range for _, dimension, _ in rubric.learned],
        pad_token_id=pad,
        train_rows=rows["train"],
        eval_dataset=rows["validation"],
        validate=validate,
        callbacks=callbacks,
    )


def train(trainer: Any, out: Path, contents: dict[str, Any], base: str, expect_wrapper: Any) -> Path:
    """Train to the end, from the newest complete checkpoint where there is one. Returns the saved adapter."""
    main_process = trainer.args.process_index == 0
    trainer.add_callback(LaunchCheck(trainer, expect_wrapper))
    if main_process:
        tracking.note_settings(out, contents)
    checkpoint = newest_complete(out) if trainer.args.resume else None
    if checkpoint and main_process:
        print(f"resuming from {checkpoint}")
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    adapter = out / "adapter"
    save_adapter(trainer, adapter, base)
    return adapter


def final_figures(
    trainer: JudgeTrainer,
    rubric: Rubric,
    rows: dict[str, list[Row]],
    parts: dict[str, list[Sample]],
    out: Path,
    evidence: Evidence | None = None,
) -> dict[str, Figures]:
    """Metrics of validation and test, the scores of both beside the adapter (ids and numbers, no texts)."""
    found: dict[str, Figures] = {}
    for name in ("validation", "test"):
        if name not in rows:
            continue
        scores = judge_rows(trainer, rows[name], rubric, trainer.args.per_device_eval_batch_size)
        found[name] = figures(rows[name], scores, parts[name], rubric, evidence)
        if trainer.args.process_index == 0:
            judge = trainer.args.run_name or out.name
            judged = judgements(rows[name], scores, parts[name], rubric, judge, evidence)
            write_scores(out / f"{name}_scores.csv", parts[name], rubric, judged)
    return found


def save_adapter(trainer: Trainer, adapter: Path, base: str) -> None:
    """Weights as safetensors, the PEFT config and the digest of the base model that the weights belong to.

    Unlike Trainer.save_model without a pickled copy of the arguments.
    """
    state = trainer.accelerator.get_state_dict(trainer.model)  # a collective call: every process takes part
    if trainer.args.process_index == 0:
        model: PeftModel = trainer.accelerator.unwrap_model(trainer.model)
        model.save_pretrained(str(adapter), state_dict=state)
        rename_to_base(adapter, base)
        note_base(adapter, base)
    trainer.accelerator.wait_for_everyone()
