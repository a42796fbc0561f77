"""An analyst's training to be killed: ``python kill_sot.py CONFIG STEP``.

Kills itself while the checkpoint of STEP is being written: weights and optimiser are there, the trainer's state is not.
"""

import os
import signal
import sys
from typing import Any

import torch

torch.set_num_threads(1)


def kill_while_saving(step: int) -> None:
    from transformers.trainer_callback import TrainerState

    save = TrainerState.save_to_json

    def save_or_die(state: TrainerState, path: Any) -> None:
        if state.global_step == step:
            os.kill(os.getpid(), signal.SIGKILL)
        save(state, path)

    TrainerState.save_to_json = save_or_die  # type: ignore[method-assign]


if __name__ == "__main__":
    from training.sot import main

    kill_while_saving(int(sys.argv[2]))
    sys.exit(main(["--config", sys.argv[1]]))
