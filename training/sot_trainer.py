"""TRL's SFTTrainer on rows that are tokenised already, with batches of similar length."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from datasets import Dataset
from torch import nn
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from inference.grid import logits_only_at
from training.judge_trainer import BucketSampler, SetEpoch
from training.sot_rows import IGNORED, SotRow


@dataclass
class SotArguments(SFTConfig):
    """TRL's SFTConfig with what is ours."""

    bucket_by_length: bool = field(
        default=True,
        metadata={"help": "Batches of similar length in shuffled order: less padding, same rows an epoch."},
    )
    resume: bool = field(
        default=True, metadata={"help": "Go on from the newest complete checkpoint in output_dir, where there is one."}
    )

    def __post_init__(self) -> None:
        if self.packing or self.padding_free:
            raise ValueError("packing and padding_free are not used: rows are batched by length, remove them")
        super().__post_init__()  # type: ignore[no-untyped-call]
        # Rows come tokenised and masked, and none is longer than max_row_tokens.
        self.dataset_kwargs = {"skip_prepare_dataset": True}
        self.max_length = None
        self.prediction_loss_only = True


def as_dataset(rows: Sequence[SotRow]) -> Dataset:
    """Columns ``input_ids`` and ``labels``."""
    return Dataset.from_dict({"input_ids": [row.input_ids for row in rows], "labels": [row.labels for row in rows]})


class SotTrainer(SFTTrainer):
    """Trains an analyst on `SotRow`s: mean cross-entropy over the supervised tokens of a batch."""

    args: SotArguments

    def __init__(self, *, rows: Sequence[SotRow], validation: Sequence[SotRow], **kwargs: Any) -> None:
        self.sampler: BucketSampler | None = None
        self._lengths = [len(row.input_ids) for row in rows]
        super().__init__(
            train_dataset=as_dataset(rows), eval_dataset=as_dataset(validation) if validation else None, **kwargs
        )
        self.add_callback(SetEpoch(self))
        self.head: nn.Module = self.accelerator.unwrap_model(self.model).get_output_embeddings()

    def _get_train_sampler(self, train_dataset: Any = None) -> Any:
        if not self.args.bucket_by_length:
            return super()._get_train_sampler(train_dataset)
        seed = self.args.data_seed if self.args.data_seed is not None else self.args.seed
        self.sampler = BucketSampler(self._lengths, self.args.train_batch_size, seed)
        return self.sampler

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """TRL's loss: mean over the supervised tokens of the step. On a CPU, where TRL computes the logits of all
        positions (and twice), those of the supervised ones alone."""
        if inputs["input_ids"].device.type != "cpu":
            trl: Any = super()
            return trl.compute_loss(model, inputs, return_outputs, num_items_in_batch)
        labels = inputs["labels"][:, 1:]
        rows, columns = (labels != IGNORED).nonzero(as_tuple=True)
        with logits_only_at(self.head, rows, columns):
            logits = model(
                input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], use_cache=False
            ).logits
        wanted = labels[rows, columns]
        loss = nn.functional.cross_entropy(logits.float(), wanted, reduction="sum")
        loss = loss / (len(wanted) if num_items_in_batch is None else num_items_in_batch)
        if self.args.average_tokens_across_devices and num_items_in_batch is not None:
            loss = loss * self.accelerator.num_processes  # the gradients are averaged over the processes
        right = (logits.argmax(-1) == wanted).float().mean()
        mode = "train" if model.training else "eval"
        self._metrics[mode]["mean_token_accuracy"].append(self.accelerator.gather(right).mean().item())
        return (loss, {}) if return_outputs else loss

    def create_model_card(self, *args: Any, **kwargs: Any) -> None:
        """None at each checkpoint: the adapter's card is written at the end, with what it was trained on."""

    def floating_point_ops(self, inputs: Any) -> int:
        """0: transformers would walk all modules to count operations, a fifth of a step on a CPU."""
        return 0

    @torch.no_grad()
    def mean_loss(self) -> float:
        """Mean cross-entropy on the validation rows."""
        return float(self.evaluate()["eval_loss"])
