"""One training run on a tiny Qwen3.5, started by `test_scale.py` in one process or in several.

Arguments as JSON: out, model, wrapper (none, ddp or fsdp2), accumulation, max_steps. It goes on from a checkpoint in
out.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch


def rows(count: int = 48) -> list[Any]:
    from training.data import Row

    generator = torch.Generator().manual_seed(1)
    made = []
    for index in range(count):
        length = int(torch.randint(2, 12, (1,), generator=generator))
        ids = torch.randint(1, 200, (length,), generator=generator).tolist()
        made.append(Row(sample=index, input_ids=ids, reader=0, target=1 + 4 * (ids[-1] / 200)))
    return made


def shard_instead_of_ddp() -> None:
    """Make accelerate take its FSDP2 path on a CPU, where it would fall back to DDP: gloo can do the work."""
    from accelerate.state import AcceleratorState
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=2,
        auto_wrap_policy="transformer_based_wrap",
        transformer_cls_names_to_wrap=["Qwen3_5DecoderLayer"],
        state_dict_type="FULL_STATE_DICT",
    )
    original = AcceleratorState.__init__

    def patched(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.__dict__["distributed_type"] = DistributedType.FSDP
        self.__dict__["fsdp_plugin"] = plugin

    AcceleratorState.__init__ = patched  # type: ignore[method-assign]


def main(settings: dict[str, Any]) -> None:
    torch.set_num_threads(1)
    if settings["wrapper"] == "fsdp2":
        shard_instead_of_ddp()
    from inference.grid import GridReader
    from inference.tokens import load_tokenizer, score_token_ids
    from training.checkpoints import newest_complete
    from training.fit import lora_model, parse_arguments, save_adapter
    from training.judge_trainer import JudgeTrainer
    from training.launch_check import LaunchCheck, check_world_size

    out = Path(settings["out"])
    args, model_args = parse_arguments(
        {
            "model_name_or_path": settings["model"],
            "output_dir": str(out),
            "use_peft": True,
            "lora_r": 4,
            "lora_dropout": 0.0,  # masks would differ between one process and two
            "lora_target_modules": "all-linear",
            "per_device_train_batch_size": 4,
            "gradient_accumulation_steps": settings["accumulation"],
            "max_steps": settings["max_steps"],
            "learning_rate": 5e-3,
            "raft_weight": 4.0,
            "logging_steps": 1,
            "save_strategy": "steps",
            "save_steps": 2,
            "use_cpu": True,
            "bf16": False,
            "gradient_checkpointing": False,
            "dataloader_pin_memory": False,
            "report_to": "none",
            "disable_tqdm": True,
        }
    )
    check_world_size(1 if settings["wrapper"] == "none" else 2, args.world_size)
    torch.manual_seed(0)
    tokenizer = load_tokenizer(settings["model"])
    grid = tuple("12345")
    trainer = JudgeTrainer(
        model=lora_model(model_args),
        args=args,
        readers=[GridReader(grid, score_token_ids(tokenizer, grid))],
        ranges=[(1, 5)],
        pad_token_id=0,
        train_rows=rows(),
    )
    trainer.add_callback(LaunchCheck(trainer, settings["wrapper"]))
    checkpoint = newest_complete(out)
    print(f"from checkpoint {checkpoint.name if checkpoint else None}", flush=True)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    save_adapter(trainer, out / "adapter", settings["model"])
    scores = trainer.score(rows()[:8], batch_size=3)
    if args.process_index == 0:
        (out / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
        curve = [
            {name: entry[name] for name in ("step", "loss", "ce", "raft")}
            for entry in trainer.state.log_history
            if "loss" in entry
        ]
        (out / "curve.json").write_text(json.dumps(curve), encoding="utf-8")


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
