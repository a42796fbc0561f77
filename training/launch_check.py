"""Was a run launched as it was asked for? World size and wrapper of the model, checked before the first step.

accelerate falls back without a word: on a machine without GPUs ``--cpu --num_processes 2`` starts one process, and an
FSDP2 config becomes DDP. A run that goes on like that takes other batches, more memory and more time than planned.
"""

from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback

from inference.errors import UserError

if TYPE_CHECKING:
    from transformers import Trainer


def wrapper_of(model: Any) -> str:
    """What holds the model that takes the steps: none, ddp, fsdp2, fsdp1, deepspeed or data_parallel."""
    from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    kinds = {
        "fsdp2": FSDPModule,
        "fsdp1": FullyShardedDataParallel,
        "ddp": DistributedDataParallel,
        "data_parallel": DataParallel,
    }
    found = next((name for name, kind in kinds.items() if isinstance(model, kind)), "none")
    return "deepspeed" if type(model).__module__.startswith("deepspeed") else found


def check_world_size(expected: int | None, found: int) -> None:
    """Raise UserError where another number of processes runs than `expect_world_size` says."""
    if expected is not None and found != expected:
        raise UserError(
            f"expect_world_size is {expected}, but {found} {'process runs' if found == 1 else 'processes run'}: start "
            f"with `accelerate launch --config_file configs/accelerate/…yaml --num_processes {expected}`, or set "
            f"expect_world_size to {found}"
        )


def check_wrapper(expected: str | None, found: str) -> None:
    """Raise UserError where the model is wrapped otherwise than `expect_wrapper` says."""
    if expected is not None and found != expected:
        raise UserError(
            f"expect_wrapper is {expected}, but the model's wrapper is {found}: accelerate falls back where the "
            "machine has no GPUs or the config is not its own; choose the file of configs/accelerate/ that fits, or "
            f"set expect_wrapper to {found}"
        )


class LaunchCheck(TrainerCallback):
    """Prints world size, wrapper and device when training starts, and refuses a wrapper that was not asked for."""

    def __init__(self, trainer: "Trainer", expect_wrapper: str | None) -> None:
        self.trainer = trainer
        self.expect_wrapper = expect_wrapper

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        found = wrapper_of(self.trainer.model_wrapped)
        if state.is_world_process_zero:
            print(f"launched: world size {args.world_size}, wrapper {found}, device {args.device.type}", flush=True)
        check_wrapper(self.expect_wrapper, found)
