"""``--dry-run``: what a training run would take, printed before any weights are loaded.

    python -m training.sft --config configs/training/cgpst_sft_evidence_qwen9b.yaml --dry-run --tflops 400

Needs the rows and the model's ``config.json``. Tokens are counted with the model's tokenizer where it is there, else
estimated as characters / 4.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inference.errors import UserError
from inference.estimate import CHARACTERS_PER_TOKEN
from inference.tokens import load_tokenizer, model_directory

if TYPE_CHECKING:
    from transformers import TrainingArguments
    from trl.trainer.model_config import ModelConfig

    from training.estimate import Plan
    from training.settings import LaunchSettings

FLAG, RATE = "--dry-run", "--tflops"
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json")


class RoughTokenizer:
    """Stands in for a tokenizer that is not there: each four characters of a line are a token, its id their code."""

    chat_template = "none"
    eos_token_id = 0
    all_special_tokens: tuple[str, ...] = ()

    def get_added_vocab(self) -> dict[str, int]:
        return {}

    def encode(self, text: str, **_: Any) -> list[int]:
        # By line, so that a prompt of which another one is the beginning has its tokens, too.
        size, lines = CHARACTERS_PER_TOKEN, text.splitlines(keepends=True)
        pieces = [line[start : start + size] for line in lines for start in range(0, len(line), size)]
        return [int.from_bytes(piece.encode(errors="surrogatepass")) for piece in pieces]

    def apply_chat_template(self, conversation: Sequence[dict[str, str]], **_: Any) -> list[int]:
        return [0] * sum(len(self.encode(message["content"])) + 5 for message in conversation)


def take_flag(arguments: list[str]) -> tuple[list[str], bool, float | None]:
    """(the other arguments, whether `--dry-run` is among them, the value of `--tflops`).

    Raises UserError for a rate that is no number above 0, and for a rate without `--dry-run`.
    """
    rest, dry, rate = list(arguments), FLAG in arguments, None
    if dry:
        rest.remove(FLAG)
    if RATE in rest:
        place = rest.index(RATE)
        given = rest[place + 1] if place + 1 < len(rest) else ""
        del rest[place : place + 2]
        try:
            rate = float(given)
        except ValueError:
            rate = 0.0
        if not 0 < rate < float("inf") or not dry:
            raise UserError(
                f"{RATE} {given}: goes with {FLAG}, and is a number above 0, such as 400 for an H100 in bf16"
            )
    return rest, dry, rate


def tokenizer_of(model: Path | str) -> Any:
    """The model's tokenizer, or a `RoughTokenizer` where the directory holds none."""
    folder = model_directory(model)
    if any((folder / name).is_file() for name in TOKENIZERS):
        return load_tokenizer(folder)
    return RoughTokenizer()


def print_estimate(
    kind: "type[TrainingArguments]",
    settings: dict[str, Any],
    data: "LaunchSettings",
    make_rows: Callable[[Any], Sequence[list[tuple[int, int]]]],
    tflops: float | None,
    *,
    tiled: bool = False,
) -> None:
    """Print the estimate of one run.

    `make_rows`: tokenizer → the sequences of each element of the training data, (tokens, positions with logits);
    `tiled`: see `Plan`.
    """
    from rich.console import Console
    from rich.table import Table

    from training.estimate import estimate, load, table
    from training.fit import parse_arguments_of
    from training.shape import read_shape

    shape = read_shape(settings["model_name_or_path"])
    # On a machine without a GPU transformers would refuse bf16 before anything can be said about it.
    args, model_args = parse_arguments_of(kind, {**settings, "use_cpu": True}, frozenset(type(data).model_fields))
    plan = plan_of(args, model_args, data, tiled)
    tokenizer = tokenizer_of(settings["model_name_or_path"])
    work = load(batches_of(make_rows(tokenizer), args))
    found = estimate(shape, plan, work)
    shown = Table("what", "estimate", title=f"Dry run: {settings['model_name_or_path']}", title_justify="left")
    for what, value in table(found, plan, work, tflops):
        shown.add_row(what, value)
    console = Console()
    console.print(shown)
    if isinstance(tokenizer, RoughTokenizer):
        console.print(f"{settings['model_name_or_path']} holds no tokenizer: tokens are characters / 4")


def plan_of(
    args: "TrainingArguments", model_args: "ModelConfig", data: "LaunchSettings", tiled: bool = False
) -> "Plan":
    """What decides memory and time. The launch is the one the config expects; without that, one process."""
    from training.estimate import Plan

    return Plan(
        dtype=model_args.dtype or "float32",
        mixed=bool(args.bf16 or args.fp16),
        rank=model_args.lora_r,
        targets=model_args.lora_target_modules or "all-linear",
        checkpointing=args.gradient_checkpointing,
        wrapper=data.expect_wrapper or "none",
        world_size=data.expect_world_size or 1,
        accumulation=args.gradient_accumulation_steps,
        epochs=args.num_train_epochs,
        max_steps=args.max_steps,
        tiled=tiled,
    )


def batches_of(rows: Sequence[list[tuple[int, int]]], args: Any) -> list[list[tuple[int, int]]]:
    """The sequences of each batch of the first epoch, batches formed as the trainer forms them."""
    from training.judge_trainer import BucketSampler

    size = args.per_device_train_batch_size
    order = list(range(len(rows)))
    if args.bucket_by_length:
        seed = args.data_seed if args.data_seed is not None else args.seed
        order = list(BucketSampler([max(tokens for tokens, _ in row) for row in rows], size, seed))
    chunks = [order[start : start + size] for start in range(0, len(order), size)]
    return [[sequence for index in chunk for sequence in rows[index]] for chunk in chunks]
