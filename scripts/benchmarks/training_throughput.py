"""Training tokens per second: JudgeTrainer beside TRL's plain SFTTrainer, same rows, LoRA and batch, in one run.

    python scripts/benchmarks/training_throughput.py [--steps 15] [--rounds 3] [--data FILE.csv]

float32, no gradient checkpointing, CPU or GPU as found. Counted are prompt tokens without padding. The trainers take
turns, and each figure is the median over the rounds, so that a busy machine meets all of them alike. Beside it stands
the share of the matmul rate measured in the same run that the model's own work reaches (LoRA: 4 × non-embedding
parameters × tokens floating-point operations: forward pass and gradients of the activations).
"""

import argparse
import json
import statistics
import tempfile
import time
from typing import Any

import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, TrainerCallback
from trl import SFTConfig, SFTTrainer

from inference.grid import GridReader
from inference.rubric import load_rubric
from inference.samples import Columns, read_samples
from inference.tokens import load_tokenizer, score_token_ids
from training.arguments import JudgeTrainingArguments
from training.data import Row, build_rows
from training.judge_trainer import JudgeTrainer

BATCH = 32
WARM_UP = 2


class StepTimes(TrainerCallback):
    """Seconds of each optimiser step."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.ends.append(time.perf_counter())

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.ends.append(time.perf_counter())

    def seconds(self) -> float:
        """Of all steps after the warm-up."""
        return self.ends[-1] - self.ends[WARM_UP]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="models/smollm2-135m")
    parser.add_argument("--data", default="eval/benchmarks/samples/aut_demo_train.csv")
    parser.add_argument("--steps", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rubric = load_rubric("configs/rubrics/aut.yaml")
    tokenizer = load_tokenizer(options.model)
    samples = read_samples(options.data, rubric, Columns(scenario="object"), rated=True)
    token_ids = score_token_ids(tokenizer, rubric.scored[0][1].grid)
    rows = build_rows(samples, rubric, tokenizer)
    setups = {
        "trl SFTTrainer": lambda: sft(rows, token_ids, tokenizer, options),
        "JudgeTrainer, equal padding": lambda: judge(rows, token_ids, options, bucketed=False),
        "JudgeTrainer, length buckets": lambda: judge(rows, token_ids, options, bucketed=True),
    }
    rates: dict[str, list[float]] = {name: [] for name in setups}
    for _ in range(options.rounds):
        for name, run in setups.items():
            rates[name].append(run())
    report(rates, options.model)


def model(path: str) -> Any:
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, local_files_only=True)
    return get_peft_model(base, LoraConfig(r=16, lora_alpha=32, target_modules="all-linear"))


def common(folder: str, steps: int) -> dict[str, Any]:
    return {
        "output_dir": folder,
        "per_device_train_batch_size": BATCH,
        "max_steps": steps + WARM_UP,
        "learning_rate": 5e-4,
        "logging_strategy": "no",
        "save_strategy": "no",
        "report_to": "none",
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "disable_tqdm": True,
        "use_cpu": not torch.cuda.is_available(),
    }


def sft(rows: list[Row], token_ids: dict[str, int], tokenizer: Any, options: argparse.Namespace) -> float:
    """Tokens per second of the plain trainer: loss on the (rounded) score token after each prompt, random batches."""
    data = Dataset.from_list(
        [
            {
                "input_ids": [*row.input_ids, token_ids[str(round(row.target))]],
                "labels": [*(-100 for _ in row.input_ids), token_ids[str(round(row.target))]],
            }
            for row in rows
        ]
    )
    times = StepTimes()
    counted = CountTokens(extra=1)
    with tempfile.TemporaryDirectory() as folder:
        args = SFTConfig(**common(folder, options.steps), dataset_kwargs={"skip_prepare_dataset": True}, packing=False)
        trainer = SFTTrainer(
            model=model(options.model), args=args, train_dataset=data, processing_class=tokenizer, callbacks=[times]
        )
        trainer.data_collator = counted.wrap(trainer.data_collator)
        trainer.train()
    return counted.after(WARM_UP, options.steps) / times.seconds()


def judge(rows: list[Row], token_ids: dict[str, int], options: argparse.Namespace, *, bucketed: bool) -> float:
    """Tokens per second of JudgeTrainer with both losses."""
    times = StepTimes()
    counted = CountTokens()
    rubric = load_rubric("configs/rubrics/aut.yaml")
    dimension = rubric.scored[0][1]
    with tempfile.TemporaryDirectory() as folder:
        args = JudgeTrainingArguments(**common(folder, options.steps), raft_weight=16.0, bucket_by_length=bucketed)
        trainer = JudgeTrainer(
            model=model(options.model),
            args=args,
            readers=[GridReader(dimension.grid, token_ids)],
            ranges=[dimension.range],
            pad_token_id=0,
            train_rows=rows,
            callbacks=[times],
        )
        trainer.data_collator = counted.wrap(trainer.data_collator)
        trainer.train()
    return counted.after(WARM_UP, options.steps) / times.seconds()


class CountTokens:
    """Prompt tokens of each batch, counted where the batch is formed."""

    def __init__(self, extra: int = 0) -> None:
        self.extra = extra
        self.counts: list[int] = []

    def wrap(self, collate: Any) -> Any:
        def counting(elements: Any) -> Any:
            # Those of the judge are chains of rows, computed as long as the last one is.
            ids = [one["input_ids"] if isinstance(one, dict) else one[-1].input_ids for one in elements]
            self.counts.append(sum(len(one) - self.extra for one in ids))
            return collate(elements)

        return counting

    def after(self, first: int, steps: int) -> int:
        return sum(self.counts[first : first + steps])


def matmul_rate(seconds: float = 2.0) -> float:
    """Floating-point operations per second of a 1024 × 1024 float32 product."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    one = torch.randn(1024, 1024, device=device)
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        (one @ one).sum().item()
        done += 1
    return done * 2 * 1024**3 / (time.perf_counter() - start)


def report(rates: dict[str, list[float]], path: str) -> None:
    base = AutoModelForCausalLM.from_pretrained(path, local_files_only=True)
    inner = sum(p.numel() for name, p in base.named_parameters() if "embed" not in name and "lm_head" not in name)
    peak = matmul_rate()
    plain = statistics.median(rates["trl SFTTrainer"])
    for name, values in rates.items():
        median = statistics.median(values)
        print(
            json.dumps(
                {
                    "trainer": name,
                    "tokens_per_second": round(median, 1),
                    "ratio_to_trl": round(median / plain, 2),
                    "share_of_matmul_rate": round(4 * inner * median / peak, 3),
                    "rounds": [round(value, 1) for value in values],
                }
            )
        )
    print(json.dumps({"matmul_gflops": round(peak / 1e9, 1), "non_embedding_parameters": inner}))


if __name__ == "__main__":
    main()
