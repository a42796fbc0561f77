"""One training run of an analyst: settings → rows → TRL's trainer → adapter with card. Everything heavy is here."""

from pathlib import Path
from typing import Any

import torch
from transformers import set_seed

from inference.errors import UserError
from inference.run_dir import lock_directory
from inference.tokens import load_tokenizer, model_context
from training import tracking
from training.fit import lora_model, parse_arguments_of, print_audit, train
from training.launch_check import check_world_size
from training.sot_card import write_card
from training.sot_rows import SotRow, audit, build_rows, drawn
from training.sot_settings import SotSettings, TraceParts
from training.sot_trainer import SotArguments, SotTrainer

OURS = frozenset(SotSettings.model_fields)


def fit(settings: dict[str, Any], data: SotSettings, parts: TraceParts) -> Path:
    """Train, save the adapter with its card. Returns the adapter's directory."""
    args, model_args = parse_arguments_of(SotArguments, settings, OURS)
    check_world_size(data.expect_world_size, args.world_size)
    out, base = Path(settings["output_dir"]), str(settings["model_name_or_path"])
    main_process = args.process_index == 0
    contents = tracking.contents(settings, data)
    lock = lock_directory(out) if main_process else None
    if main_process:
        tracking.check_directory(out, contents)
        tracking.set_up_wandb(out, args)
    set_seed(args.seed)
    torch.set_flush_denormal(True)  # see `training.fit`
    tokenizer = load_tokenizer(base)
    rows, counts = prepare(parts, tokenizer, data)
    if main_process:
        print_audit(counts)
    check_context(base, data.max_row_tokens)
    if args.eval_strategy != "no" and not rows["validation"]:
        raise UserError("eval_strategy is set, but there is no validation part: give validation_share, or set it to no")
    trainer = SotTrainer(
        rows=rows["train"],
        validation=rows["validation"],
        model=lora_model(model_args),
        args=args,
        processing_class=tokenizer,
        callbacks=[tracking.LocalLog(out, contents)],
    )
    adapter = train(trainer, out, contents, base, data.expect_wrapper)
    figures: dict[str, dict[str, float | None]] = {}
    if rows["validation"]:
        figures["validation"] = {"loss": trainer.mean_loss()}
    if main_process:
        write_card(adapter, data=data, parts=parts, model=base, counts=counts, args=args, figures=figures)
        tracking.close_run(out, adapter, figures)
        for part, found in figures.items():
            print(f"{part}: loss {found['loss']:.4f}")
        print(f"adapter: {adapter}")
    if lock is not None:
        lock.close()
    return adapter


def prepare(
    parts: TraceParts, tokenizer: Any, data: SotSettings
) -> tuple[dict[str, list[SotRow]], list[dict[str, Any]]]:
    """Rows and audit counts of each part; the validation part may be empty."""
    rows: dict[str, list[SotRow]] = {"validation": []}
    counts = []
    for name, traces in (("train", parts.train), ("validation", parts.validation)):
        if name == "train" or traces:
            built = build_rows(traces, parts.rubric, tokenizer, data.profile)
            if name == "train":
                built = drawn(built, data.step_rows, data.split_seed)
            rows[name], count = audit(built, data.max_row_tokens, name)
            counts.append(count)
    return rows, counts


def check_context(model: str, max_row_tokens: int) -> None:
    """Raise UserError where rows may be longer than the model can read."""
    context = model_context(model)
    if context is not None and max_row_tokens > context:
        raise UserError(
            f"max_row_tokens is {max_row_tokens}, but {model} reads {context} tokens at most: lower it, or take a "
            "model with a longer context"
        )
